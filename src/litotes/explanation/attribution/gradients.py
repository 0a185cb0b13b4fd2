"""Methods that ask how the answer would change: gradients at h₀, the output of the embeddings.

A pruned model is explained as it answers: gradients go through the pieces still there, and the
choice of who leaves has none. A piece that left has a gradient through what the others had gathered
from it by then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from litotes.encoder.layout import Layout
from litotes.encoder.packing import pack
from litotes.encoder.tokenizer import Pieces
from litotes.explanation.attribution.method import Method, WordWeights, by_word
from litotes.explanation.attribution.question import Question

_MOST_PIECES = 2048
"""That go through the model together when gradients are kept."""


class GradientInput(Method):
    """How the answer would move if a piece were a little more itself, h₀ · ∂F/∂h₀.

    Shrikumar et al. 2017, arXiv 1605.01713. One step forward and one back; exact for a linear
    model. Norms on the way do not mind a length, so much of what a piece means is not seen.
    """

    is_signed: ClassVar[bool] = True

    def weigh(self, question: Question) -> WordWeights:
        hidden, layout = embed(question, question.read.pieces)
        gradient = gradient_of(question, hidden, layout)
        return WordWeights(by_word(question.read, (gradient * hidden).sum(-1)))


class IntegratedGradients(Method):
    """Gradients added up on the way from a text of padding to the text, (h − h') · ∫ ∂F/∂h (h' + a
    (h − h')) da.

    Sundararajan et al. 2017, arXiv 1703.01365, §3. The baseline h' is the same text with every
    piece of a word replaced by the padding piece; special pieces stay, so that they have no weight
    and the words' weights add up to F(h) − F(h'). The integral is Gauss-Legendre's with n_steps
    points.
    error: completeness_delta, by how much the weights miss that sum; answer_less_baseline, the sum
    they should have. Pruning makes F jump on the way, which no number of points follows exactly:
    the delta tells.
    """

    is_signed: ClassVar[bool] = True

    def __init__(self, *, n_steps: int = 24) -> None:
        self.n_steps = n_steps

    def weigh(self, question: Question) -> WordWeights:
        hidden, layout = embed(question, question.read.pieces)
        blank, _ = embed(question, blank_words(question))
        way = hidden - blank  # (piece, width)
        by_piece = (way * self._mean_gradient(question, blank, way)).sum(-1).double()
        both = Layout.of(layout.lengths * 2, layout.device)
        with torch.no_grad():
            logits = _logits(question, torch.cat([hidden, blank]), both)
            full, empty = question.score(logits.double()).tolist()
        missed = float(by_piece.sum()) - (full - empty)
        return WordWeights(
            by_word(question.read, by_piece),
            {"completeness_delta": missed, "answer_less_baseline": full - empty},
        )

    def _mean_gradient(self, question: Question, blank: Tensor, way: Tensor) -> Tensor:
        """∫ ∂F/∂h (h' + a (h − h')) da, as many points at a time as may go together.

        (piece, width)
        """
        points, shares = np.polynomial.legendre.leggauss(self.n_steps)
        steps = torch.tensor((points + 1) / 2).to(way)  # (step,), from 0 to 1
        weights = torch.tensor(shares / 2).to(way)
        n_together = max(1, _MOST_PIECES // len(way))
        total = torch.zeros_like(way)
        for some, share in zip(steps.split(n_together), weights.split(n_together), strict=True):
            hidden = (blank + some[:, None, None] * way).flatten(0, 1)  # (step × piece, width)
            layout = Layout.of([len(way)] * len(some), way.device)
            gradient = gradient_of(question, hidden, layout).unflatten(0, (len(some), -1))
            total += (share[:, None, None] * gradient).sum(0)
        return total


def blank_words(question: Question) -> Pieces:
    """The text with the padding piece in the place of every piece of a word."""
    pieces, padding = question.read.pieces, question.model.classifier.encoder.spec.padding_piece
    ids = []
    for piece, word in zip(pieces.ids, question.read.word_of(), strict=True):
        ids.append(piece if word is None else padding)
    return replace(pieces, ids=ids)


def embed(question: Question, pieces: Pieces) -> tuple[Tensor, Layout]:
    """h₀, (piece, width), and its layout."""
    encoder = question.model.classifier.encoder
    batch = pack([pieces], device=encoder.device)
    with torch.no_grad():
        return encoder.embeddings(batch), batch.layout


def gradient_of(question: Question, hidden: Tensor, layout: Layout) -> Tensor:
    """∂F/∂h₀ of every text in the batch. (piece, width)"""
    question.between()
    hidden = hidden.detach().requires_grad_()
    # cuDNN's LSTM has a gradient in training mode alone
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        scores = question.score(_logits(question, hidden, layout))  # (text,)
        (gradient,) = torch.autograd.grad(scores.sum(), hidden)  # texts do not touch each other
    return gradient


def _logits(question: Question, hidden: Tensor, layout: Layout) -> Tensor:
    """(text, class)"""
    return question.model.classifier.from_layer(hidden, layout, 0)[question.task.name]
