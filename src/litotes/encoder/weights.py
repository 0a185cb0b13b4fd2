"""Reading and writing encoder weights under a family's own names; safetensors only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load
from torch import Tensor
from torch.overrides import TorchFunctionMode

from litotes.core.errors import UserError
from litotes.core.json_text import load_json
from litotes.core.text import is_utf8
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import FAMILIES
from litotes.encoder.spec import EncoderSpec
from litotes.encoder.weight_names import weight_names

_MOST_LAYERS = 1000  # some families use a layer's weights again
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.h5", "*.msgpack")


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder, shards in order; pickled weights are refused."""
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if whole.is_file():
        return [whole]
    if index.is_file():
        return [folder / name for name in _shard_names(index)]
    pickled = sorted(path.name for pattern in _PICKLED for path in folder.glob(pattern))
    if pickled:
        raise UserError(
            f"{folder}: {pickled[0]} is a pickle (or the like), which can run code when it is"
            " opened; litotes reads safetensors only. Convert it on a machine you trust with"
            " `save_pretrained(…, safe_serialization=True)`."
        )
    raise UserError(
        f"{folder}: there is no model.safetensors. Give a folder with config.json,"
        " model.safetensors and tokenizer.json."
    )


def _shard_names(index: Path) -> list[str]:
    try:
        names = sorted(set(load_json(index)["weight_map"].values()))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(
            f"{index}: not a list of shards ({error}). Download or save the model again."
        ) from error
    if any(not isinstance(name, str) or Path(name).name != name for name in names):
        raise UserError(
            f"{index}: a shard lies outside the folder; litotes reads only files of the folder"
            " itself."
        )
    return names


def read_tensors(file: Path, content: bytes | None = None) -> dict[str, Tensor]:
    """All tensors of a safetensors file; a broken one is a UserError.

    content: what was read from it already; None: the file is mapped.
    """
    try:
        if content is not None:
            return load(content)
        with safe_open(file, framework="pt") as tensors:
            names = tensors.keys()
            return {name: tensors.get_tensor(name) for name in names}
    except (SafetensorError, OSError) as error:
        if not is_utf8(str(file)):
            raise UserError(
                f"{file}: not readable, since its path is not UTF-8. Rename it."
            ) from error
        raise UserError(
            f"{file}: not a whole safetensors file ({error}). Download or save it again."
        ) from error


class _SkipInitialisation(TorchFunctionMode):
    """In this thread no random numbers are drawn: new parameters hold whatever is in memory."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.__name__ in ("kaiming_uniform_", "uniform_", "normal_"):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def empty_encoder(spec: EncoderSpec) -> Encoder:
    """An encoder whose weights are all about to be loaded: drawing random ones first would take
    longer than loading them.
    """
    with _SkipInitialisation():
        return Encoder(spec)


def check_fits(spec: EncoderSpec, n_bytes: int, where: str) -> None:
    """Refuses an encoder of more weights than files of `n_bytes` can hold, before it is built: a
    damaged description must not make us take the memory for it.
    """
    n_inner = (2 + spec.is_gated) * spec.width * spec.inner_width
    n_per_block = 4 * spec.width * spec.width + n_inner
    n_embeddings = spec.n_vocabulary + spec.has_positions * spec.n_positions + 2 * spec.n_distances
    n_weights = n_embeddings * (spec.embedding_width or spec.width) + spec.n_blocks * n_per_block
    if n_weights > n_bytes or spec.n_layers > _MOST_LAYERS:
        raise UserError(
            f"{where} describes an encoder of {spec.n_layers} layers and {n_weights:,} weights,"
            " more than its files hold. Copy the folder again."
        )


def load_family_tensors(encoder: Encoder, tensors: Mapping[str, Tensor], where: str) -> None:
    """Copies a family's tensors into the encoder, fusing query, key and value; other tensors
    (poolers, task heads) are ignored.
    """
    state = encoder.state_dict()
    tensors = normalise_names(tensors, FAMILIES[encoder.spec.family].prefix)
    with torch.no_grad():
        for ours, theirs in weight_names(encoder.spec):
            missing = [name for name in theirs if name not in tensors]
            if missing:
                raise UserError(
                    f"{where}: the weight {missing[0]!r} is missing; this is not a whole"
                    f" {encoder.spec.family} encoder."
                )
            value = torch.cat([tensors[name] for name in theirs])
            if value.shape != state[ours].shape:
                raise UserError(
                    f"{where}: {theirs[0]!r} has shape {tuple(value.shape)}, its description says"
                    f" {tuple(state[ours].shape)}."
                )
            state[ours].copy_(value)


def to_family_tensors(encoder: Encoder) -> dict[str, Tensor]:
    """The encoder's tensors under the family's names, as `transformers` wants them."""
    state = encoder.state_dict()
    tensors = {}
    for ours, theirs in weight_names(encoder.spec):
        parts = state[ours].chunk(len(theirs))  # query, key and value of a fused projection
        for name, part in zip(theirs, parts, strict=True):
            tensors[name] = part.detach().cpu().contiguous().clone()
    return tensors


def extra_tensors(encoder: Encoder) -> dict[str, Tensor]:
    """Parameters of a weighting or a pruning, which no family has a name for, as `encoder.…`."""
    named = {ours for ours, _ in weight_names(encoder.spec)}
    tensors = {}
    for name, tensor in encoder.state_dict().items():
        if name not in named:
            tensors[f"encoder.{name}"] = tensor.detach().cpu().clone()
    return tensors


def load_extra_tensors(encoder: Encoder, tensors: Mapping[str, Tensor]) -> None:
    """Copies `extra_tensors` back into the encoder; a missing one is an error."""
    for name in extra_tensors(encoder):
        if name not in tensors:
            raise UserError(
                f"The weight {name!r} is missing from model.safetensors. Copy the model folder"
                " again, or train it again."
            )
        with torch.no_grad():
            encoder.state_dict()[name.removeprefix("encoder.")].copy_(tensors[name])


def normalise_names(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Names without a task model's prefix and without the gamma/beta of the oldest checkpoints."""
    normalised = {}
    for name, tensor in tensors.items():
        name = name.removeprefix(prefix)
        name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
        name = name.replace("LayerNorm.beta", "LayerNorm.bias")
        normalised[name] = tensor
    return normalised
