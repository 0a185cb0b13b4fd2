"""What every attribution method has in common: an answer in, a weight for every word out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from litotes.encoder.tokenizer import ReadText
from litotes.explanation.attribution.question import Question

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class WordWeights:
    """A weight for every word of a text, and what the method knows of its own error, by name."""

    weights: tuple[float, ...]
    error: Mapping[str, float] = field(default_factory=dict)


class Method(ABC):
    """Says how much each word counts for an answer.

    The docstring's first line is what `litotes list methods` shows.

    A word's weight does not depend on the texts beside it in a batch. What a method gives to pieces
    is added up over a word's pieces.
    is_signed: weights above 0 speak for the answer and weights below 0 against it; otherwise they
    only say how much.
    """

    is_signed: ClassVar[bool]

    @abstractmethod
    def weigh(self, question: Question) -> WordWeights:
        """A weight for every word of the text, in order."""


def by_weight(weights: Sequence[float]) -> tuple[int, ...]:
    """The numbers of the words, the one that speaks most for the answer first; of two that are
    alike, the earlier one.
    """
    return tuple(sorted(range(len(weights)), key=lambda word: -weights[word]))


def by_word(read: ReadText, by_piece: Tensor) -> tuple[float, ...]:
    """What the pieces of each word have together; special pieces belong to none.

    by_piece: (piece,)
    """
    values = by_piece.tolist()
    return tuple(sum(values[place] for place in word.pieces) for word in read.words)
