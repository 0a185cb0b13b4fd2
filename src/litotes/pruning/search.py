"""Which shares of the pieces should go on after each layer, for a given saving? Found by trying.

For a target (so many times fewer operations) every candidate is a shape, how early pieces leave,
scaled until the operations counted on real lengths meet the target. The best of a few plain shapes
is then changed layer by layer. What counts is how far the answers move from the dense model's, mean
KL over training texts: that needs no labels, and leaves the held-out ones for the choice between
targets.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from litotes.encoder.attention.learned import Learned
from litotes.encoder.packing import TextSet
from litotes.model.classifier import Classifier
from litotes.pruning.cost import flops
from litotes.training.inputs import Inputs, all_logits
from litotes.training.teacher import Teacher

POWERS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
"""Shapes to begin with: what has left after layer l of L grows as (l / L)^p, so small p lets pieces
leave early.
"""

N_CHANGES = 14
SMALLEST = 0.02


@dataclass(frozen=True)
class FoundShares:
    """Shares for a target, and how far they move the answers."""

    shares: tuple[float, ...]
    divergence: float


class Search:
    """Tries shares on a classifier whose pruning is `learned` and which was trained to bear many of
    them.

    dense: the classifier that savings are counted against.
    """

    def __init__(
        self,
        classifier: Classifier,
        inputs: Inputs,
        teacher: Teacher,
        *,
        dense: Classifier,
        seed: int,
    ) -> None:
        self.classifier, self.inputs, self.teacher = classifier, inputs, teacher
        self.random = random.Random(seed)
        self.pruning = learned_pruning(classifier)
        self.dense = flops(dense.encoder, inputs.texts.lengths, firsts_only=dense.firsts_only).total

    def for_target(self, ratio: float, *, watch: Callable[[int], None]) -> FoundShares:
        """The best shares found that save `ratio` times the operations."""
        tried = []
        for number, power in enumerate(POWERS):
            shape = self._power_shape(power)
            tried.append((self._try(shape, ratio), shape))
            watch(number + 1)
        best, shape = min(tried, key=lambda pair: pair[0].divergence)
        for number in range(N_CHANGES):
            other = self._change(shape)
            found = self._try(other, ratio)
            if found.divergence < best.divergence:
                best, shape = found, other
            watch(len(POWERS) + number + 1)
        return best

    def _power_shape(self, power: float) -> list[float]:
        n_layers = self.pruning.n_layers
        return [((layer + 1) / n_layers) ** power for layer in range(n_layers)]

    def _change(self, shape: Sequence[float]) -> list[float]:
        """More or fewer pieces leave at one layer and after it."""
        layer = self.random.randrange(len(shape))
        gone = list(shape)
        gone[layer] *= self.random.choice((0.5, 0.75, 1.33, 2.0))
        return [max(gone[: place + 1]) for place in range(len(gone))]

    def _try(self, shape: Sequence[float], ratio: float) -> FoundShares:
        shares = self._scale(shape, ratio)
        self.pruning.shares = shares
        logits = all_logits(self.inputs, self.classifier)
        distances = [self._distance(task, values) for task, values in logits.items()]
        return FoundShares(shares, float(torch.stack(distances).mean()))

    def _distance(self, task: str, logits: Tensor) -> Tensor:
        return self.teacher.differences(logits, self.teacher.logits[task][: len(logits)]).mean()

    def _scale(self, shape: Sequence[float], ratio: float) -> tuple[float, ...]:
        """The shares of this shape that just reach the target; as few as possible where it cannot
        be reached.
        """
        low, high = 0.0, 1.0 / max(min(value for value in shape if value), 1e-3)
        for _ in range(18):
            middle = (low + high) / 2
            if self.dense / self._flops(_shares(shape, middle)) < ratio:
                low = middle
            else:
                high = middle
        return _shares(shape, high)

    def _flops(self, shares: tuple[float, ...]) -> int:
        self.pruning.shares = shares
        return flops(
            self.classifier.encoder,
            self.inputs.texts.lengths,
            firsts_only=self.classifier.firsts_only,
        ).total


def learned_pruning(classifier: Classifier) -> Learned:
    """The classifier's pruning, which must be `learned`."""
    pruning = classifier.encoder.pruning
    assert isinstance(pruning, Learned)
    return pruning


def first_texts(texts: TextSet, n: int) -> TextSet:
    """The first texts of a set."""
    targets = {task: values[:n] for task, values in texts.targets.items()}
    return TextSet(texts.pieces[:n], targets, texts.groups[:n], texts.group_names)


def _shares(shape: Sequence[float], scale: float) -> tuple[float, ...]:
    return tuple(round(max(1 - scale * value, SMALLEST), 3) for value in shape)
