"""How well pieces of held-out texts are guessed, always the same pieces.

    perplexity = exp(−1/n Σ log p(piece | the text around it))

over the n pieces that are chosen once, when the run begins. It compares runs with the same
tokenizer on the same texts; it is not the perplexity of a model that reads from left to right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from litotes.core.errors import UserError
from litotes.core.text import one_line
from litotes.core.values import MISSING
from litotes.encoder.packing import batches_without_gradients
from litotes.evaluation.scores import N_RESAMPLES, interval
from litotes.training.pretraining.language_model import Guesses, LanguageModel
from litotes.training.pretraining.masking import MaskedBatch, MaskedText, pack_masked


@dataclass(frozen=True)
class GuessScores:
    """What a model makes of the held-out texts.

    interval: 95 % bootstrap interval of the perplexity, over texts. unigram: the perplexity of
    guessing each piece by how common it is in the texts learned from. accuracy: of the likeliest
    piece. next_sentence: accuracy of what follows what, None where it is not asked.
    """

    n_texts: int
    n_pieces: int
    perplexity: float
    interval: tuple[float, float]
    unigram: float
    accuracy: float
    next_sentence: float | None = None

    def __repr__(self) -> str:
        return one_line(self, **self.as_json())

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Measurement:
    """The losses of the chosen pieces, summed by text (text,), and how many were guessed right."""

    losses: NDArray[np.float64]
    n_pieces: int
    n_right: int
    n_pairs: int
    n_pairs_right: int

    @property
    def perplexity(self) -> float:
        return float(np.exp(self.losses.sum() / self.n_pieces))

    @property
    def accuracy(self) -> float:
        return self.n_right / self.n_pieces

    @property
    def next_sentence(self) -> float | None:
        return self.n_pairs_right / self.n_pairs if self.n_pairs else None


class HeldOut:
    """Masked texts that stay the same for a whole run.

    counts: how often each piece occurs in the texts learned from. (piece of the vocabulary,)
    """

    def __init__(self, texts: Sequence[MaskedText], counts: NDArray[np.int64]) -> None:
        self.texts = texts
        self.n_chosen = np.array([len(text.places) for text in texts])  # (text,)
        if not self.n_chosen.any():
            raise UserError(
                "The held-out texts are so few that no piece of them was chosen. Give more texts,"
                " or raise data.held_out."
            )
        targets = torch.cat([text.targets for text in texts]).numpy()
        # one more of each: a piece may be new
        shares = (counts + 1) / (counts.sum() + len(counts))  # (piece of the vocabulary,)
        self.unigram = float(np.exp(-np.log(shares[targets]).mean()))

    def measure(self, model: LanguageModel) -> Measurement:
        """In evaluation mode, without gradients, in float32."""
        model.eval()
        device = model.encoder.device
        lengths = [len(text.ids) for text in self.texts]
        losses, counts = [], np.zeros(3, dtype=np.int64)
        with torch.no_grad():
            for places in batches_without_gradients(lengths, device):
                masked = pack_masked([self.texts[place] for place in places], device)
                guesses = model(masked)
                losses.append(_losses_by_text(guesses, masked).double().cpu().numpy())
                counts += _count_right(guesses, masked)
        return Measurement(np.concatenate(losses), int(self.n_chosen.sum()), *counts.tolist())

    def score(self, found: Measurement) -> GuessScores:
        """A measurement with what is needed to judge it."""
        return GuessScores(
            n_texts=len(self.texts),
            n_pieces=found.n_pieces,
            perplexity=found.perplexity,
            interval=self._interval(found.losses),
            unigram=self.unigram,
            accuracy=found.accuracy,
            next_sentence=found.next_sentence,
        )

    def _interval(self, losses: NDArray[np.float64]) -> tuple[float, float]:
        """Texts are drawn with replacement."""
        generator = np.random.default_rng(0)
        found = np.empty(N_RESAMPLES)
        for number in range(N_RESAMPLES):
            drawn = generator.integers(len(losses), size=len(losses))
            found[number] = losses[drawn].sum() / max(self.n_chosen[drawn].sum(), 1)
        return interval(np.exp(found))


def _losses_by_text(guesses: Guesses, masked: MaskedBatch) -> Tensor:
    """(text,)"""
    losses = functional.cross_entropy(guesses.pieces.float(), masked.targets, reduction="none")
    by_text = torch.zeros(masked.batch.layout.n_texts, device=losses.device)
    return by_text.index_add(0, masked.texts, losses)


def _count_right(guesses: Guesses, masked: MaskedBatch) -> list[int]:
    """Pieces guessed right, pairs, pairs guessed right."""
    n_right = int((guesses.pieces.argmax(-1) == masked.targets).sum())
    if guesses.follows is None:
        return [n_right, 0, 0]
    is_pair = masked.follows != MISSING
    is_right = guesses.follows.argmax(-1) == masked.follows
    return [n_right, int(is_pair.sum()), int((is_pair & is_right).sum())]
