"""What a pretraining begins with: a tokenizer, and a language model from a checkpoint or new."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from litotes.core.errors import UserError
from litotes.core.progress import Watch
from litotes.encoders import pretrained
from litotes.encoders.encoder import Encoder
from litotes.encoders.pretrained import choose_max_pieces, find_encoder, load_tokenizer
from litotes.encoders.spec import EncoderSpec
from litotes.encoders.weights import read_tensors, weight_files
from litotes.pretraining.language_model import LanguageModel, draw_weights, load_heads
from litotes.pretraining.output_names import output_names
from litotes.pretraining.recipe import TRAINED, PretrainRecipe, ScratchSettings
from litotes.pretraining.sources import Texts
from litotes.pretraining.wordpiece import train_wordpiece
from litotes.text.tokenizer import PieceTokenizer

DEFAULT = "minilm"
_PADDINGS = ("[PAD]", "<pad>")
_BETWEEN_REPORTS = 1000


class _WatchedTexts:
    """The texts alone, as often as they are asked for."""

    def __init__(self, texts: Texts, watch: Watch) -> None:
        self._texts, self._watch = texts, watch

    def __iter__(self) -> Iterator[str]:
        for number, line in enumerate(self._texts):
            if number % _BETWEEN_REPORTS == 0:
                self._watch("learning a tokenizer", number, number, "texts read")
            yield line.text


def choose_tokenizer(recipe: PretrainRecipe, texts: Texts, watch: Watch) -> PieceTokenizer:
    """That of the encoder, or of another one, or one learned from the texts."""
    scratch = recipe.model.scratch
    if scratch is None:
        return load_tokenizer(recipe.model.encoder or DEFAULT)
    if scratch.tokenizer != TRAINED:
        return load_tokenizer(scratch.tokenizer)
    watched = _WatchedTexts(texts, watch)
    content = train_wordpiece(
        watched, n_vocabulary=scratch.n_vocabulary, lower_case=scratch.lower_case
    )
    return _parse_tokenizer(content.encode(), max_pieces=scratch.n_positions)


def read_tokenizer(file: Path, recipe: PretrainRecipe, spec: EncoderSpec) -> PieceTokenizer:
    """The tokenizer of a run that has begun, cutting where this encoder must."""
    return _parse_tokenizer(
        file.read_bytes(), max_pieces=choose_max_pieces(recipe.model.max_pieces, spec.max_pieces)
    )


def _parse_tokenizer(content: bytes, *, max_pieces: int) -> PieceTokenizer:
    return PieceTokenizer(Path("tokenizer.json"), max_pieces=max_pieces, content=content)


def start_model(recipe: PretrainRecipe, tokenizer: PieceTokenizer) -> tuple[LanguageModel, str]:
    """The language model before its first step, and a sentence about where it comes from."""
    torch.manual_seed(recipe.seed)  # what is new
    settings, next_sentence = recipe.model, recipe.objective.next_sentence
    if settings.scratch is not None:
        encoder = Encoder(_scratch_spec(recipe, settings.scratch, tokenizer))
        draw_weights(encoder)
        return LanguageModel(encoder, next_sentence=next_sentence), ""
    name = settings.encoder or DEFAULT
    found = pretrained.load(
        name,
        max_pieces=settings.max_pieces,
        weighting=settings.weighting,
        weighting_options=settings.weighting_options,
    )
    output_names(found.encoder.spec.family)
    model = LanguageModel(found.encoder, next_sentence=next_sentence)
    return model, " ".join(load_heads(model, _read_all(name), found.name))


def check_start(recipe: PretrainRecipe) -> None:
    """Refuses an encoder that is not there before anything is read or written."""
    scratch = recipe.model.scratch
    if scratch is None:
        find_encoder(recipe.model.encoder or DEFAULT)
    elif scratch.tokenizer != TRAINED:
        find_encoder(scratch.tokenizer)


def _read_all(name: str) -> dict[str, Tensor]:
    folder, _, _ = find_encoder(name)
    tensors: dict[str, Tensor] = {}
    for file in weight_files(folder):
        tensors |= read_tensors(file)
    return tensors


def _scratch_spec(
    recipe: PretrainRecipe, scratch: ScratchSettings, tokenizer: PieceTokenizer
) -> EncoderSpec:
    paddings = [tokenizer.find_piece(written) for written in _PADDINGS]
    padding = next((number for number in paddings if number is not None), None)
    if padding is None:
        raise UserError(
            f"The tokenizer of {scratch.tokenizer} has no {' or '.join(_PADDINGS)}. Choose another,"
            ' or model.scratch.tokenizer = "trained".'
        )
    return EncoderSpec(
        family="bert",
        n_vocabulary=tokenizer.n_vocabulary,
        width=scratch.width,
        n_layers=scratch.n_layers,
        n_attention_heads=scratch.n_attention_heads,
        inner_width=scratch.inner_width or 4 * scratch.width,
        n_positions=scratch.n_positions,
        n_segments=2,
        dropout=scratch.dropout,
        attention_dropout=scratch.dropout,
        padding_piece=padding,
        weighting=recipe.model.weighting,
        weighting_options=recipe.model.weighting_options,
    )
