"""What a pretraining begins with: a tokenizer, and a language model from a checkpoint or new."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from litotes.core.errors import UserError
from litotes.core.progress import Watch
from litotes.encoder import pretrained
from litotes.encoder.encoder import Encoder
from litotes.encoder.pretrained import choose_max_pieces, find_encoder, load_tokenizer
from litotes.encoder.spec import EncoderSpec
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.encoder.weights import read_tensors, weight_files
from litotes.training.pretraining.language_model import LanguageModel, draw_weights, load_heads
from litotes.training.pretraining.masking import find_mask
from litotes.training.pretraining.recipe import TRAINED, PretrainRecipe, ScratchSettings
from litotes.training.pretraining.sources import Texts
from litotes.training.pretraining.wordpiece import train_wordpiece

DEFAULT = "minilm"
_PADDINGS = ("[PAD]", "<pad>")
_BETWEEN_REPORTS = 1000


class Start:
    """Where a run begins. What cannot begin is refused before any text is read."""

    def __init__(self, recipe: PretrainRecipe) -> None:
        self.recipe = recipe
        self.loaded: _Loaded | None = None
        settings = recipe.model
        if settings.scratch is None:
            self.loaded = _load(recipe)
            return
        choose_max_pieces(settings.max_pieces, settings.scratch.n_positions)
        if settings.scratch.tokenizer != TRAINED:
            find_mask(load_tokenizer(settings.scratch.tokenizer))

    def choose_tokenizer(self, texts: Texts, watch: Watch) -> PieceTokenizer:
        """That of the encoder, or of another one, or one learned from the texts."""
        scratch = self.recipe.model.scratch
        if self.loaded is not None:
            return self.loaded.tokenizer
        assert scratch is not None
        if scratch.tokenizer != TRAINED:
            return load_tokenizer(scratch.tokenizer)
        content = train_wordpiece(
            _WatchedTexts(texts, watch),
            n_vocabulary=scratch.n_vocabulary,
            lower_case=scratch.lower_case,
        )
        file = Path("tokenizer.json")
        return PieceTokenizer(file, max_pieces=scratch.n_positions, content=content.encode())

    def make_model(self, tokenizer_file: Path) -> tuple[LanguageModel, list[str]]:
        """The language model before its first step, and notes about where it comes from."""
        if self.loaded is not None:
            return self.loaded.model, self.loaded.notes
        scratch = self.recipe.model.scratch
        assert scratch is not None
        torch.manual_seed(self.recipe.seed)
        tokenizer = PieceTokenizer(tokenizer_file, max_pieces=scratch.n_positions)
        encoder = Encoder(_scratch_spec(self.recipe, scratch, tokenizer))
        draw_weights(encoder)
        return LanguageModel(encoder, next_sentence=self.recipe.objective.next_sentence), []


@dataclass(frozen=True)
class _Loaded:
    """A language model around an encoder that was there, with notes about its output layer."""

    model: LanguageModel
    tokenizer: PieceTokenizer
    notes: list[str]


def _load(recipe: PretrainRecipe) -> _Loaded:
    settings = recipe.model
    name = settings.encoder or DEFAULT
    found = pretrained.load(
        name,
        max_pieces=settings.max_pieces,
        weighting=settings.weighting,
        weighting_options=settings.weighting_options,
    )
    find_mask(found.tokenizer)
    torch.manual_seed(recipe.seed)  # for an output layer that is new
    model = LanguageModel(found.encoder, next_sentence=recipe.objective.next_sentence)
    folder, _, _ = find_encoder(name)
    tensors: dict[str, Tensor] = {}
    for file in weight_files(folder):
        tensors |= read_tensors(file)
    return _Loaded(model, found.tokenizer, load_heads(model, tensors, found.name))


class _WatchedTexts:
    """The texts alone, as often as they are asked for."""

    def __init__(self, texts: Texts, watch: Watch) -> None:
        self._texts, self._watch = texts, watch

    def __iter__(self) -> Iterator[str]:
        for number, line in enumerate(self._texts):
            if number % _BETWEEN_REPORTS == 0:
                self._watch("learning a tokenizer", number, number, "texts read")
            yield line.text


def read_tokenizer(file: Path, recipe: PretrainRecipe, spec: EncoderSpec) -> PieceTokenizer:
    """The tokenizer of a run that has begun, cutting where this encoder must."""
    most = choose_max_pieces(recipe.model.max_pieces, spec.max_pieces)
    return PieceTokenizer(file, max_pieces=most)


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
