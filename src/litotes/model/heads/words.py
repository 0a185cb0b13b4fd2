"""Heads that answer words: tagging, a label for every word; span, where a stretch begins and ends.

    h_w = 1/|w| Σ_{t ∈ w} h_t              a word is the mean of its pieces
    tagging:  y_w = W h_w + b
    span:     (s_w, e_w) = W h_w + b,  w = 0: the first piece, [CLS], for "there is none"
              p(i, j) = softmax(s)_i · softmax(e)_j,  i ≤ j

Devlin et al. 2019, arXiv 1810.04805, §4.2–4.3 and §5.3, who read a word at its first piece instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from litotes.encoder.encoding import Encoding
from litotes.encoder.word_pieces import WordPlaces
from litotes.model.heads.pooling import mean_by_text


class WordHead(nn.Module, ABC):
    """Hidden states of all pieces → logits (word, n_outputs).

    reads_first: whether each text has one word more, before its others, that is its first piece.
    """

    reads_first: ClassVar[bool] = False

    def __init__(self, width: int, n_labels: int, *, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(width, self.n_outputs(n_labels))

    @staticmethod
    @abstractmethod
    def n_outputs(n_labels: int) -> int: ...

    def forward(self, encoding: Encoding, places: WordPlaces) -> Tensor:
        pieces = encoding.hidden[places.pieces]  # (piece of a word, width)
        words = mean_by_text(pieces, places.words)  # (word, width)
        return self.output(self.dropout(words))


class Tagging(WordHead):
    """y_w = W (1/n Σ_t h_t) + b over the n pieces of each word: a label for every word."""

    @staticmethod
    def n_outputs(n_labels: int) -> int:
        return n_labels


class Span(WordHead):
    """(s_w, e_w) = W (1/n Σ_t h_t) + b over the n pieces of each word, and over [CLS] for "no
    stretch": where it begins, where it ends.
    """

    reads_first: ClassVar[bool] = True

    @staticmethod
    def n_outputs(n_labels: int) -> int:
        return 2
