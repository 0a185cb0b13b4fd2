"""What a run begins with: a tokenizer, and an encoder-decoder of new weights or around an encoder
that is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch

from litotes.core.errors import UserError
from litotes.core.registry import check_options
from litotes.data.parallel import Pair
from litotes.encoder import pretrained
from litotes.encoder.attention import WEIGHTINGS
from litotes.encoder.encoder import Encoder
from litotes.encoder.spec import EncoderSpec
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.training.translation.attention import require_rows_alone
from litotes.training.translation.decoder import fix_positions
from litotes.training.translation.model import EncoderDecoder, draw_weights
from litotes.training.translation.recipe import TranslationRecipe
from litotes.training.translation.spec import DecoderSpec
from litotes.training.translation.vocabulary import PADDING, train_byte_pairs

WIDTH = 256
"""Of a model from scratch, where the recipe does not say."""


class Start:
    """Where a run begins. What cannot begin is refused before any text is read."""

    def __init__(self, recipe: TranslationRecipe) -> None:
        self.recipe, settings = recipe, recipe.model
        check_options(WEIGHTINGS, settings.weighting, "weighting", settings.weighting_options)
        require_rows_alone(settings.weighting)
        self.loaded: pretrained.Pretrained | None = None
        if settings.encoder is not None:
            self.loaded = pretrained.load(
                settings.encoder,
                weighting=settings.weighting,
                weighting_options=settings.weighting_options,
            )
            self._check_width(self.loaded.encoder.spec)

    def choose_tokenizer(self, pairs: Iterable[Pair]) -> PieceTokenizer:
        """That of the encoder, or one learned from both sides of the pairs."""
        settings = self.recipe.model
        if self.loaded is not None:
            tokenizer = self.loaded.tokenizer
            most = min(settings.max_pieces, tokenizer.max_pieces)
            content = tokenizer.to_json().encode()
            return PieceTokenizer(Path("tokenizer.json"), max_pieces=most, content=content)
        learned = train_byte_pairs(
            _all_texts(pairs), n_vocabulary=settings.n_vocabulary, lower_case=settings.lower_case
        )
        file = Path("tokenizer.json")
        return PieceTokenizer(file, max_pieces=settings.max_pieces, content=learned.encode())

    def make_model(self, tokenizer: PieceTokenizer) -> EncoderDecoder:
        """The model before its first step, the same for the same seed."""
        torch.manual_seed(self.recipe.seed)
        if self.loaded is not None:
            encoder = self.loaded.encoder
            model = EncoderDecoder(encoder, self._decoder_spec(encoder.spec))
            draw_weights(model.decoder, keep=encoder.embeddings.piece)
        else:
            encoder = Encoder(self._encoder_spec(tokenizer))
            if self.recipe.model.positions == "sinusoidal":
                assert encoder.embeddings.position is not None
                fix_positions(encoder.embeddings.position)
            model = EncoderDecoder(encoder, self._decoder_spec(encoder.spec))
            draw_weights(model)
        if model.output is not None:
            draw_weights(model.output)
        return model

    def _check_width(self, spec: EncoderSpec) -> None:
        settings = self.recipe.model
        width = settings.width or spec.width
        if width % settings.n_attention_heads:
            raise UserError(
                f"The decoder's width {width} is not a multiple of {settings.n_attention_heads}"
                " attention heads. Set model.n_attention_heads or model.width."
            )

    def _encoder_spec(self, tokenizer: PieceTokenizer) -> EncoderSpec:
        settings = self.recipe.model
        width = settings.width or WIDTH
        return EncoderSpec(
            family="bert",
            n_vocabulary=tokenizer.n_vocabulary,
            width=width,
            n_layers=settings.n_layers,
            n_attention_heads=settings.n_attention_heads,
            inner_width=settings.inner_width or 2 * width,
            n_positions=settings.max_pieces,
            activation="relu",
            norm_epsilon=1e-6,
            dropout=settings.dropout,
            attention_dropout=settings.attention_dropout,
            padding_piece=tokenizer.find_piece(PADDING) or 0,
            norm_first=settings.norm_first,
            weighting=settings.weighting,
            weighting_options=settings.weighting_options,
        )

    def _decoder_spec(self, encoder: EncoderSpec) -> DecoderSpec:
        settings = self.recipe.model
        width = settings.width or encoder.width
        return DecoderSpec(
            n_vocabulary=encoder.n_vocabulary,
            width=width,
            source_width=encoder.width,
            n_layers=settings.n_layers,
            n_attention_heads=settings.n_attention_heads,
            inner_width=settings.inner_width or 2 * width,
            n_positions=settings.max_pieces,
            positions=settings.positions,
            norm_first=settings.norm_first,
            tied=settings.tied,
            dropout=settings.dropout,
            attention_dropout=settings.attention_dropout,
            weighting=settings.weighting,
            weighting_options=settings.weighting_options,
        )


def _all_texts(pairs: Iterable[Pair]) -> Iterable[str]:
    for pair in pairs:
        yield pair.source
        yield from pair.targets
