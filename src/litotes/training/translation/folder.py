"""The folder of a translation model, and of the run that makes it.

litotes.json        what the model is: kind, encoder, decoder, recipe; written last
manifest.json       the hashes of all files
model.safetensors   all weights, under our own names
tokenizer.json      the pieces of both sides
scores.json         validation loss, BLEU and chrF
translations.jsonl  what the model makes of the test texts
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors.torch import save as to_bytes
from torch import Tensor

from litotes.core.errors import UserError, reason_of
from litotes.core.storage import write_bytes, write_json, write_text
from litotes.core.values import TRANSLATION
from litotes.core.version import __version__
from litotes.encoder.config import spec_from_json
from litotes.encoder.pretrained import read_tokenizer
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.encoder.weights import check_fits, empty_encoder, read_tensors
from litotes.model.checkpoint import write_description
from litotes.model.folder import (
    ADVICE,
    DESCRIPTION,
    FORMAT,
    TOKENIZER,
    WEIGHTS,
    Manifest,
    changed_file,
    read_description,
)
from litotes.training.translation.model import EncoderDecoder
from litotes.training.translation.recipe import search_of
from litotes.training.translation.spec import decoder_spec_from_json

SCORES, OUTPUTS = "scores.json", "translations.jsonl"
_KEYS = {"format", "litotes", "kind", "encoder", "decoder", "max_pieces", "search", "facts"}


@dataclass(frozen=True)
class TranslationModel:
    """An encoder-decoder with its tokenizer. search: how texts are found, where nobody says.

    facts: the key of the run, its recipe, and what the texts were.
    """

    network: EncoderDecoder
    tokenizer: PieceTokenizer
    search: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)


def save_translation(model: TranslationModel, folder: Path, scores: Mapping[str, Any]) -> None:
    """Writes the model folder; `litotes.json` comes last, so a folder that has it is whole."""
    network = model.network
    tensors = {}
    for name, parameter in network.named_parameters():  # a table that is shared comes once
        tensors[name] = parameter.detach().cpu().contiguous().clone()
    write_bytes(folder / WEIGHTS, to_bytes(tensors, metadata={"format": "pt"}))
    write_text(folder / TOKENIZER, model.tokenizer.to_json())
    write_json(folder / SCORES, scores)
    description = {
        "format": FORMAT,
        "litotes": __version__,
        "kind": TRANSLATION,
        "encoder": network.encoder.spec.as_json(),
        "decoder": network.spec.as_json(),
        "max_pieces": model.tokenizer.max_pieces,
        "search": dict(model.search),
        "facts": dict(model.facts),
    }
    write_description(folder, description)


def load_translation(path: str | Path) -> TranslationModel:
    """Reads a folder, in evaluation mode; every file is checked against its hash first."""
    folder = Path(path)
    description, manifest = read_description(folder)
    if description.get("kind") != TRANSLATION or manifest is None:
        raise UserError(
            f"{folder} is not a translation model: make one with `litotes train` and kind ="
            ' "translation" in the recipe.'
        )
    try:
        return _load(folder, description, manifest)
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        RuntimeError,
    ) as error:
        file = folder / DESCRIPTION
        raise UserError(f"{file}: damaged ({reason_of(error)}). {ADVICE}") from error


def _load(folder: Path, description: Mapping[str, Any], manifest: Manifest) -> TranslationModel:
    if set(description) != _KEYS:
        odd = sorted(set(description) ^ _KEYS)[0]
        raise ValueError(f"the key {odd!r:.60} is missing or unknown")
    contents = {}
    for name in (WEIGHTS, TOKENIZER):
        file = folder / name
        if not file.is_file():
            raise changed_file(file)
        contents[name] = file.read_bytes()
        manifest.check(file, hashlib.sha256(contents[name]).hexdigest())
    tensors = read_tensors(folder / WEIGHTS, contents[WEIGHTS])
    network = _build(description, tensors, str(folder))
    max_pieces = int(description["max_pieces"])
    if max_pieces > network.spec.n_positions:
        raise ValueError(f"the decoder has no positions for {max_pieces} pieces")
    tokenizer = read_tokenizer(
        folder, network.encoder.spec, max_pieces=max_pieces, content=contents[TOKENIZER]
    )
    for key in ("search", "facts"):
        if not isinstance(description[key], dict):
            raise ValueError(f"{key} is not a table")
    search_of(description["search"], f"{folder / DESCRIPTION}, search")
    return TranslationModel(network, tokenizer, description["search"], description["facts"])


def _build(
    description: Mapping[str, Any], tensors: Mapping[str, Tensor], where: str
) -> EncoderDecoder:
    encoder, decoder = (
        spec_from_json(description["encoder"]),
        decoder_spec_from_json(description["decoder"]),
    )
    n_bytes = sum(tensor.nbytes for tensor in tensors.values())
    check_fits(encoder, n_bytes, where)  # first: a description may ask for an endless model
    if decoder.n_weights > n_bytes:
        raise ValueError("the decoder has more weights than the files hold")
    if (decoder.source_width, decoder.n_vocabulary) != (encoder.width, encoder.n_vocabulary):
        raise ValueError("the decoder does not fit the width or the vocabulary of the encoder")
    network = EncoderDecoder(empty_encoder(encoder), decoder)
    wanted = {name for name, _ in network.named_parameters()}
    if wanted != set(tensors):
        odd = sorted(wanted ^ set(tensors))[0]
        raise ValueError(f"the weight {odd!r:.80} is missing or unknown")
    network.load_state_dict(dict(tensors), strict=False)
    return network.eval()
