"""The tensors of a model folder, of whatever kind: what is written, what is read and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from litotes.core.errors import UserError
from litotes.core.storage import MANIFEST
from litotes.encoder import pretrained
from litotes.encoder.attention import PRUNINGS, WEIGHTINGS
from litotes.encoder.bundled import BUNDLED, bundled_weights
from litotes.encoder.difference import from_difference, to_difference
from litotes.encoder.encoder import Encoder
from litotes.encoder.spec import EncoderSpec
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.encoder.weights import (
    check_fits,
    empty_encoder,
    extra_tensors,
    load_extra_tensors,
    load_family_tensors,
    read_tensors,
    to_family_tensors,
)
from litotes.model.folder import DESCRIPTION, HASHED, TOKENIZER, WEIGHTS, FileContent, ModelFolder
from litotes.model.manifest import changed_file

_HEADS = "heads."


def tensors_to_save(
    encoder: Encoder,
    heads: nn.Module,
    *,
    base_name: str,
    base_sha256: str | None,
    compact: bool = False,
) -> tuple[dict[str, Tensor], bool]:
    """Those of an encoder and its heads, of any kind of model."""
    base: dict[str, Tensor] = {}
    if base_sha256 is not None:
        base = pretrained.bundled_tensors(base_name, sha256=base_sha256)
    kept, n_omitted = {}, 0
    for name, tensor in to_family_tensors(encoder).items():
        if name in base and torch.equal(tensor, base[name]):  # training has left it as it was
            n_omitted += 1
        else:
            kept[name] = tensor
    compact = compact and bool(base)  # from any other encoder nobody could complete it
    if compact:
        kept = to_difference(kept, base)
    kept |= extra_tensors(encoder)
    for name, tensor in heads.state_dict().items():
        kept[f"{_HEADS}{name}"] = tensor.detach().cpu().clone()
    return kept, compact or n_omitted > 0


def saved_tensors(folder: ModelFolder, files: Mapping[Path, FileContent]) -> dict[str, Tensor]:
    """All weights of a folder, with those of the bundled encoder it rests on; checked first."""
    _check_hashes(folder, files)
    base = _base_tensors(folder.description["base"], files)
    weights = folder.path / WEIGHTS
    return base | from_difference(read_tensors(weights, files[weights].content), base)


def saved_tokenizer(
    folder: ModelFolder, spec: EncoderSpec, files: Mapping[Path, FileContent]
) -> PieceTokenizer:
    return pretrained.read_tokenizer(
        folder.path,
        spec,
        max_pieces=int(folder.description["max_pieces"]),
        content=files[folder.path / TOKENIZER].content,
    )


def saved_encoder(folder: ModelFolder, spec: EncoderSpec, tensors: Mapping[str, Tensor]) -> Encoder:
    n_bytes = sum(tensor.nbytes for tensor in tensors.values())
    check_fits(spec, n_bytes, str(folder))  # first: a description may ask for an endless encoder
    check_known(folder, "weighting", spec.weighting, WEIGHTINGS)
    check_known(folder, "pruning", spec.pruning, PRUNINGS)
    encoder = empty_encoder(spec)
    load_family_tensors(encoder, tensors, str(folder))
    load_extra_tensors(encoder, tensors)
    return encoder


def check_known(folder: ModelFolder, kind: str, name: str, known: Iterable[str]) -> None:
    """Refuses a model with a part that was added elsewhere: no folder brings its code along."""
    names = sorted(known)
    if name not in names:
        raise UserError(
            f"{folder} was made with the {kind} {name!r:.60}, which this litotes does not have"
            f" (known: {', '.join(names)}). Use the litotes that made it, or add the {kind} here."
        )


def load_heads(heads: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    heads.load_state_dict(without_prefix(tensors, _HEADS))


def _check_hashes(folder: ModelFolder, files: Mapping[Path, FileContent]) -> None:
    """The files must be those that the folder was written with."""
    stated = folder.stated_hashes
    if set(stated) != set(HASHED):
        listing = folder.path / (DESCRIPTION if folder.manifest is None else MANIFEST)
        raise UserError(
            f"{listing}: must give the hashes of {' and '.join(HASHED)}. Copy it again, or train"
            " the model again."
        )
    for name, sha256 in stated.items():
        file = folder.path / name
        if file not in files or files[file].sha256 != sha256:
            raise changed_file(file)


def without_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The weights saved under a prefix, without it."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def _base_tensors(base: Mapping[str, Any], files: Mapping[Path, FileContent]) -> dict[str, Tensor]:
    """The weights of the bundled encoder that a model was saved without; none, if it is whole."""
    if set(base) != {"name", "sha256", "omitted"} or not isinstance(base["omitted"], bool):
        raise ValueError(f"the base must have a name, a sha256 and omitted, not {base!r:.60}")
    if not base["omitted"]:
        return {}
    name = base["name"]
    # a model folder must not send us to other folders or to the network
    if name not in BUNDLED:
        raise UserError(
            f"This model is a difference from {name!r}, which is not a bundled encoder; it cannot"
            " be completed."
        )
    weights = files[bundled_weights(name)]
    pretrained.check_bundled(name, base["sha256"], found=weights.sha256)
    return read_tensors(bundled_weights(name), weights.content)
