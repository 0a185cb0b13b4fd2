"""How well pieces of held-out texts are guessed, always the same pieces.

    perplexity = exp(−1/n Σ log p(piece | the text around it))

over the n pieces that are chosen once, when the run begins. It compares runs with the same
tokenizer on the same texts; it is not the perplexity of a model that reads from left to right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from litotes.core.errors import UserError
from litotes.core.one_line import one_line
from litotes.core.values import MISSING
from litotes.evaluation.scores import N_RESAMPLES, interval
from litotes.pretraining.language_model import Guesses, LanguageModel
from litotes.pretraining.masking import MaskedBatch, MaskedText, pack_masked
from litotes.text.packing import batches_without_gradients


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


@dataclass
class _Sums:
    """Over the texts so far."""

    losses: list[Tensor] = field(default_factory=list)  # of each (text,)
    n_right: int = 0
    n_pairs: int = 0
    n_pairs_right: int = 0

    def add(self, guesses: Guesses, masked: MaskedBatch) -> None:
        logits = guesses.pieces.float()
        losses = functional.cross_entropy(logits, masked.targets, reduction="none")
        by_text = torch.zeros(masked.batch.layout.n_texts, device=losses.device)
        self.losses.append(by_text.index_add(0, masked.texts, losses).cpu())
        self.n_right += int((logits.argmax(-1) == masked.targets).sum())
        if guesses.follows is not None:
            is_pair = masked.follows != MISSING
            right = guesses.follows.argmax(-1) == masked.follows
            self.n_pairs += int(is_pair.sum())
            self.n_pairs_right += int((is_pair & right).sum())


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

    def measure(self, model: LanguageModel) -> GuessScores:
        """In evaluation mode, without gradients, in float32."""
        model.eval()
        sums = _Sums()
        lengths = [len(text.ids) for text in self.texts]
        device = model.encoder.device
        with torch.no_grad():
            for places in batches_without_gradients(lengths, device):
                masked = pack_masked([self.texts[place] for place in places], device)
                sums.add(model(masked), masked)
        losses = torch.cat(sums.losses).double().numpy()  # (text,)
        n_pieces = int(self.n_chosen.sum())
        return GuessScores(
            n_texts=len(self.texts),
            n_pieces=n_pieces,
            perplexity=float(np.exp(losses.sum() / n_pieces)),
            interval=self._interval(losses),
            unigram=self.unigram,
            accuracy=sums.n_right / n_pieces,
            next_sentence=sums.n_pairs_right / sums.n_pairs if sums.n_pairs else None,
        )

    def _interval(self, losses: NDArray[np.float64]) -> tuple[float, float]:
        """Texts are drawn with replacement."""
        generator = np.random.default_rng(0)
        found = np.empty(N_RESAMPLES)
        for number in range(N_RESAMPLES):
            drawn = generator.integers(len(losses), size=len(losses))
            found[number] = losses[drawn].sum() / max(self.n_chosen[drawn].sum(), 1)
        return interval(np.exp(found))
