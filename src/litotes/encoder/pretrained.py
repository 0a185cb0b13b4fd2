"""Encoders and their weights: bundled with a package, fetched once, in a folder, or on the Hugging
Face Hub. Weights are read and written under their family's own names, as safetensors only.

A name is `minilm`, `mpnet`, a path, or `OWNER/NAME@REVISION`. The Hub is asked only for the last
kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor
from torch.overrides import TorchFunctionMode

from litotes.core.errors import UserError
from litotes.core.json_text import read_json_table
from litotes.core.registry import pick, unknown_name
from litotes.core.storage import sha256_of, write_bytes, write_json, write_text
from litotes.core.text import is_utf8, one_line
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import (
    FAMILIES,
    EncoderSpec,
    config_from_spec,
    spec_from_config,
    weight_names,
)
from litotes.encoder.fetching import (
    BUNDLED,
    FETCHABLE,
    NEEDED,
    WEIGHTS,
    bundled_weights,
    describe_fetchable,
    fetch_snapshot,
    find_damage,
    find_folder,
    installed_folder,
    own_folder,
    require_fetched,
)
from litotes.encoder.packing import pack
from litotes.encoder.tokenizer import PieceTokenizer

_AGAIN = "Download or save it again."
_MOST_LAYERS = 1000  # some families use a layer's weights again
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.h5", "*.msgpack")


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder, shards in order; pickled weights are refused."""
    index = folder / "model.safetensors.index.json"
    if index.is_file() and not (folder / WEIGHTS).is_file():
        return [folder / name for name in _shard_names(index)]
    pickled = sorted(path.name for pattern in _PICKLED for path in folder.glob(pattern))
    if pickled and not (folder / WEIGHTS).is_file():
        raise UserError(
            f"{folder}: {pickled[0]} is a pickle (or the like), which can run code when it is"
            " opened; litotes reads safetensors only. Convert it on a machine you trust with"
            " `save_pretrained(…, safe_serialization=True)`."
        )
    return [_require(folder / WEIGHTS)]


def _shard_names(index: Path) -> list[str]:
    content = read_json_table(index, advice=_AGAIN)
    shards = content.get("weight_map")
    names: list[Any] = list(shards.values()) if isinstance(shards, dict) else [None]
    # a shard elsewhere could be any file of the machine
    if any(not isinstance(name, str) or Path(name).name != name for name in names):
        raise UserError(
            f"{index}: not a list of shards in the folder itself; litotes reads no others. {_AGAIN}"
        )
    return sorted(set(names))


def read_tensors(file: Path, content: bytes | None = None) -> dict[str, Tensor]:
    """Reads all tensors of a safetensors file; a broken one is a UserError.

    content: what was read from it already; None: the file is mapped.
    """
    try:
        if content is not None:
            return from_bytes(content)
        with safe_open(file, framework="pt") as tensors:
            names = tensors.keys()
            return {name: tensors.get_tensor(name) for name in names}
    except (SafetensorError, OSError) as error:
        if is_utf8(str(file)):
            reason = f"not a whole safetensors file ({error}). {_AGAIN}"
        else:
            reason = "not readable, since its path is not UTF-8. Rename it."
        raise UserError(f"{file}: {reason}") from error


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
    state = encoder.state_dict()
    for ours, _ in weight_names(encoder.spec):
        del state[ours]
    return {f"encoder.{name}": tensor.detach().cpu().clone() for name, tensor in state.items()}


def load_extra_tensors(encoder: Encoder, tensors: Mapping[str, Tensor]) -> None:
    """Copies `extra_tensors` back into the encoder; a missing one is an error."""
    wanted = extra_tensors(encoder).keys()
    if missing := wanted - tensors.keys():
        raise UserError(
            f"The weight {min(missing)!r} is missing from model.safetensors. Copy the model folder"
            " again, or train it again."
        )
    found = {name.removeprefix("encoder."): tensors[name] for name in wanted}
    encoder.load_state_dict(found, strict=False)


def normalise_names(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Names without a task model's prefix and without the gamma/beta of the oldest checkpoints."""
    return {
        name.removeprefix(prefix)
        .replace("LayerNorm.gamma", "LayerNorm.weight")
        .replace("LayerNorm.beta", "LayerNorm.bias"): tensor
        for name, tensor in tensors.items()
    }


_STEPS, _SIZE = "difference.steps.", "difference.size."
_MOST = 127
_TINIEST = torch.finfo(torch.float32).tiny


def to_difference(tensors: Mapping[str, Tensor], base: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Fine-tuned weights as a small difference from a bundled encoder's: matrices that the base has
    as well become steps away from it, the others stay as they are.

    Training moves a weight by a hundredth of its size, so the difference D = W − W₀ of a matrix can
    be stored in coarser steps than W itself. Row by row

        W ≈ W₀ + s · q,    s = max |D| / 127,    q = round(D / s) in −127 … 127

    takes one byte per weight instead of four, and is off by at most s / 2: a few millionths of a
    typical weight's size.
    """
    result: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.ndim != 2 or name not in base or base[name].shape != tensor.shape:
            result[name] = tensor
            continue
        moved = tensor - base[name]
        size = (moved.abs().amax(1, keepdim=True) / _MOST).clamp_min(_TINIEST)  # (row, 1)
        result[_SIZE + name], result[_STEPS + name] = size, (moved / size).round().to(torch.int8)
    return result


def from_difference(tensors: Mapping[str, Tensor], base: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as they were, to within half a step."""
    whole = {name: one for name, one in tensors.items() if not name.startswith((_STEPS, _SIZE))}
    for key in tensors.keys() - whole.keys():
        name = key.removeprefix(_STEPS)
        if name == key:
            continue
        steps, size, start = tensors[key], tensors.get(_SIZE + name), base.get(name)
        if (
            size is None
            or start is None
            or steps.dtype != torch.int8
            or (steps.shape, size.shape) != (start.shape, (len(start), 1))
        ):
            raise UserError(
                f"The difference of {name!r} does not fit the encoder it is taken from. Copy the"
                " model folder again."
            )
        whole[name] = start + steps * size  # (row, column)
    return whole


_HUB_NAME = re.compile(r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*@[A-Za-z0-9][\w./-]*$")
_OLDER_TOKENIZERS = ("spm.model", "sentencepiece.bpe.model", "vocab.txt", "vocab.json")


@dataclass(frozen=True)
class Pretrained:
    """An encoder with the tokenizer that belongs to it, and where both came from.

    sha256: the hash of the weights if the encoder is bundled, so that a model can be kept as a
    difference from it.
    """

    encoder: Encoder
    tokenizer: PieceTokenizer
    name: str
    sha256: str | None

    def __repr__(self) -> str:
        spec = self.encoder.spec
        return one_line(self, name=self.name, n_layers=spec.n_layers, width=spec.width)


def load(name: str = "minilm", *, max_pieces: int | None = None, **choices: Any) -> Pretrained:
    """Reads a pretrained encoder, in evaluation mode: one of `litotes encoders list`, a folder of
    Hugging Face's, or OWNER/NAME@REVISION.

    max_pieces: where texts are cut; None: at the longest the encoder can read, at most 512.
    choices: of the seams of attention, as `EncoderSpec` names them.

    >>> load().encoder.spec.n_layers
    6
    """
    folder, label, sha256 = find_encoder(name)
    spec = replace(_read_spec(folder), **choices)
    files = weight_files(folder)
    if sha256 is not None:
        _check_hash(name, files[0], sha256, sha256_of(files[0]))
    tensors: dict[str, Tensor] = {}
    for file in files:
        tensors |= read_tensors(file)
    check_fits(spec, sum(tensor.nbytes for tensor in tensors.values()), str(folder))
    encoder = Encoder(spec)
    load_family_tensors(encoder, tensors, str(folder))
    if extra_tensors(encoder).keys() <= tensors.keys():
        load_extra_tensors(encoder, tensors)  # what a weighting learned in pretraining
    tokenizer = read_tokenizer(folder, spec, max_pieces=max_pieces)
    # a model is kept as a difference only from what every installation has
    return Pretrained(encoder.eval(), tokenizer, label, sha256 if name in BUNDLED else None)


load_encoder = load
"""Its public name."""


def bundled_tensors(name: str, *, sha256: str) -> dict[str, Tensor]:
    """The weights of a bundled encoder, to keep a model as a difference from them.

    sha256: of the weights that the model was trained from.
    """
    file = bundled_weights(name)
    check_bundled(name, sha256, found=sha256_of(file))
    return read_tensors(file)


def check_bundled(name: str, sha256: str, *, found: str) -> None:
    """Refuses weights that are not those a model was trained from. found: of the installed ones."""
    if sha256 != BUNDLED[name].sha256:
        raise UserError(
            f"This model is a difference from {name!r} with sha256 {sha256}, which is not the one"
            " this litotes uses."
        )
    _check_hash(name, bundled_weights(name), sha256, found)


def load_tokenizer(name: str) -> PieceTokenizer:
    """The tokenizer of the encoder called `name`, cutting where the encoder would; its weights are
    not read.
    """
    folder, _, _ = find_encoder(name)
    return read_tokenizer(folder, _read_spec(folder), max_pieces=None)


def find_encoder(name: str) -> tuple[Path, str, str | None]:
    """The folder that holds the encoder, its exact name (a Hub id with its commit), and the hash
    its weights must have.
    """
    if name in FETCHABLE:
        return require_fetched(name), name, FETCHABLE[name].sha256
    if Path(name).is_dir():
        return Path(name), name, None
    if _HUB_NAME.match(name) and not name.startswith("."):
        folder = fetch_snapshot(name)
        return folder, f"{name.split('@')[0]}@{folder.name}", None
    if re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        raise UserError(
            f"There is no folder {name!r}. For an encoder of the Hugging Face Hub say which"
            f" revision: {name}@REVISION."
        )
    raise UserError(
        unknown_name(name, FETCHABLE, "encoder")
        + " A folder or OWNER/NAME@REVISION of the Hugging Face Hub will do as well."
    )


def save(pretrained: Pretrained, folder: Path) -> None:
    """Writes a folder that `transformers` (AutoModel) and `load` read."""
    write_json(folder / "config.json", config_from_spec(pretrained.encoder.spec))
    write_text(folder / "tokenizer.json", pretrained.tokenizer.to_json())
    write_bytes(
        folder / "model.safetensors",
        to_bytes(to_family_tensors(pretrained.encoder), metadata={"format": "pt"}),
    )


def tokenizer_config(tokenizer: PieceTokenizer, spec: EncoderSpec) -> dict[str, Any]:
    """The `tokenizer_config.json` with which `transformers` reads texts as we do."""
    inputs = ["input_ids", "attention_mask"]
    if spec.n_segments > 1:
        inputs.append("token_type_ids")
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": tokenizer.max_pieces,
        "model_input_names": inputs,
    }
    padding = tokenizer.piece_string(spec.padding_piece)
    return config if padding is None else config | {"pad_token": padding}


def choose_max_pieces(wanted: int | None, possible: int) -> int:
    """Chooses how many pieces a text is cut to: what is wanted, if the position table has room."""
    if wanted is None:
        return min(512, possible)
    if not 3 <= wanted <= possible:
        raise UserError(
            f"max_pieces = {wanted} is out of range: this encoder reads 3 to {possible} pieces."
        )
    return wanted


def _read_spec(folder: Path) -> EncoderSpec:
    file = _require(folder / "config.json")
    return spec_from_config(read_json_table(file, advice=_AGAIN), str(file))


def read_tokenizer(
    folder: Path, spec: EncoderSpec, *, max_pieces: int | None, content: bytes | None = None
) -> PieceTokenizer:
    """The tokenizer in a folder, if it is one for such an encoder.

    content: of its file, if it has been read already.
    """
    file, max_pieces = folder / "tokenizer.json", choose_max_pieces(max_pieces, spec.max_pieces)
    # DeBERTa-v3 was published like this
    older = [name for name in _OLDER_TOKENIZERS if (folder / name).is_file()]
    if older and not file.is_file():
        raise UserError(
            f"{folder}: there is a {older[0]} but no tokenizer.json. Write it once, where"
            f" transformers is installed: AutoTokenizer.from_pretrained({str(folder)!r})"
            f".save_pretrained({str(folder)!r})."
        )
    tokenizer = PieceTokenizer(_require(file), max_pieces=max_pieces, content=content)
    if tokenizer.n_vocabulary > spec.n_vocabulary:
        raise UserError(
            f"{folder}: tokenizer.json knows {tokenizer.n_vocabulary} pieces, the encoder"
            f" {spec.n_vocabulary}; they do not belong together."
        )
    return tokenizer


def _check_hash(name: str, file: Path, sha256: str, found: str) -> None:
    if found != sha256:
        is_installed = name in BUNDLED and installed_folder(name) is not None
        again = "Reinstall the package" if is_installed else f"Run `litotes encoders get {name}`"
        raise UserError(
            f"{file}: its sha256 is {found}, expected {sha256}. {again}; the file is damaged or was"
            " replaced."
        )


def _require(file: Path) -> Path:
    if not file.is_file():
        raise UserError(
            f"{file.parent}: there is no {file.name}. Give a folder with config.json,"
            " model.safetensors and tokenizer.json."
        )
    return file


# Encoders that have a name: which are on this machine, and whether they are whole

SENTENCE = "Lovely queue, I only aged a year in it."


def named_encoders() -> list[dict[str, Any]]:
    """Lists the encoders a recipe can name; `folder` is None where one was not fetched."""
    folders = {name: find_folder(name) for name in FETCHABLE}
    return [
        {
            "name": name,
            "folder": None if folder is None else str(folder),
            "download_bytes": FETCHABLE[name].n_download,
            "hub": f"{FETCHABLE[name].hub_name}@{FETCHABLE[name].revision or 'REVISION'}",
            "about": describe_fetchable(name),
        }
        for name, folder in folders.items()
    ]


def is_here(name: str) -> bool:
    """Tells whether this is the name of an encoder that can be loaded without a network."""
    return name in FETCHABLE and find_folder(name) is not None


def check_encoder(name: str) -> dict[str, Any]:
    """Compares the hashes of what is there and computes the hidden states of one sentence."""
    wanted = pick(FETCHABLE, name, "encoder")
    folder = require_fetched(name)
    # the Hub's cache has only those that are read
    files = list(wanted.files) if folder == own_folder(name) else list(NEEDED)
    damaged = find_damage(folder, wanted, files=files)
    if damaged:
        run = "Run"
        if name in BUNDLED and folder == installed_folder(name):  # it comes before what is fetched
            run = f"Uninstall it: `pip uninstall {wanted.packages[0].name}`. Then run"
        raise UserError(
            f"{folder}: {', '.join(damaged)} missing or damaged. {run} `litotes encoders get"
            f" {name}`."
        )
    loaded = load(name)
    with torch.no_grad():
        hidden = loaded.encoder(pack(loaded.tokenizer.encode([SENTENCE]))).hidden
    if not hidden.isfinite().all():
        raise UserError(f"The encoder {name!r} computes numbers that are not finite.")
    states = list(hidden.shape)  # (piece, width)
    return {"name": name, "folder": str(folder), "files_verified": len(files), "states": states}
