"""The attribution methods that look inside: at attention, and at gradients.

A pruned model is explained as it answers. By attention, pieces that left have no weight; what a
fused piece receives belongs to no word. Gradients go through the pieces still there, and the choice
of who leaves has none; a piece that left has a gradient through what the others had gathered from
it by then.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from litotes.encoder.layout import Layout
from litotes.encoder.operations import FUSED
from litotes.encoder.packing import pack
from litotes.encoder.tokenizer import Pieces
from litotes.encoder.walk import TextAttention
from litotes.explanation.attribution import Method, Question, WordWeights, by_word

_MOST_PIECES = 2048
"""That go through the model together when gradients are kept."""


class LastLayer(Method):
    """Weighs the pieces by what they receive in the last layer, by one map or another: what the
    head is going to read is gathered there.

    Over a text of n pieces, with the queries Q the head reads (the first piece alone, or all that
    are still there):

        w_k = 1/|Q| Σ_{q ∈ Q} mean over attention heads of |M_h(q, k)|
    """

    is_signed: ClassVar[bool] = False

    def weigh(self, question: Question) -> WordWeights:
        view = question.observation.layers[-1]
        with torch.inference_mode():
            asking = readers(question, view)
            received = self.map(question, view)[asking].mean(0)  # (key,)
        by_piece = by_place(received, view.origin, len(question.read.written))
        return WordWeights(by_word(question.read, by_piece), self.error(question))

    @abstractmethod
    def map(self, question: Question, view: TextAttention) -> Tensor:
        """Tells what each query takes from each key, all attention heads together. (query, key)"""

    def error(self, question: Question) -> dict[str, float]:
        return {}


class Standard(LastLayer):
    """The attention weights of the last layer, A, mean over attention heads.

    The cheapest look, and the most disputed one: Jain and Wallace 2019, arXiv 1902.10186.
    """

    def map(self, question: Question, view: TextAttention) -> Tensor:
        return view.weights.mean(0)


class Effective(LastLayer):
    """The part of the last layer's attention weights that reaches its output, |A⊥|, mean over
    attention heads.

    A⊥ = A minus its projection onto the left null space of V. Brunner et al. 2020, arXiv
    1908.04211, §3.2.
    error: n_null, the dimension of the null space, mean over attention heads; 0: nothing was
    hidden, both maps are one.
    """

    def map(self, question: Question, view: TextAttention) -> Tensor:
        return question.observation.effective[-1].maps.abs().mean(0)

    def error(self, question: Question) -> dict[str, float]:
        return {"n_null": float(question.observation.effective[-1].n_null.double().mean())}


class ValueNorm(LastLayer):
    """The last layer's attention weights times the length of what they move, A(q, k) ‖v_k W_O‖.

    Each attention head's value goes through its own slice of the output projection. Kobayashi et
    al. 2020, arXiv 2004.10102, §3.
    """

    def map(self, question: Question, view: TextAttention) -> Tensor:
        encoder = question.model.classifier.encoder
        attention = encoder.attentions[encoder.spec.walk[view.layer]]
        # (width, attention_head, head_width)
        slices = attention.output.weight.unflatten(1, (attention.n_heads, -1))
        slices = slices[:, [attention.heads.index(head) for head in view.heads]]
        # (attention_head, key)
        moved = torch.einsum("hkd,whd->hkw", view.value, slices).norm(dim=-1)
        return (view.weights * moved[:, None]).mean(0)


def readers(question: Question, view: TextAttention) -> Tensor:
    """Tells which queries of the last layer the head goes on to read. (query,) of bool

    What leaves in this very layer is read no more, unless it goes into a fused piece.
    """
    classifier = question.model.classifier
    if classifier.firsts_only:
        return torch.arange(len(view.origin), device=view.origin.device) == 0
    is_fused = bool((view.stayed == FUSED).any())
    if is_fused and not classifier.encoder.pruning.restore:
        return torch.ones_like(view.origin, dtype=torch.bool)
    return torch.isin(view.origin, view.stayed)


def by_place(values: Tensor, origin: Tensor, n_pieces: int) -> Tensor:
    """Values of the pieces still there, laid out by their places in the text; 0 for those gone.

    (piece,)
    """
    real = origin != FUSED
    return torch.zeros(n_pieces, dtype=torch.float64).index_add(
        0, origin[real].cpu(), values[real].double().cpu()
    )


class Rollout(Method):
    """Attention weights multiplied through all layers, R_l = ½ (A_l + I) R_{l-1}; half of a piece
    stays itself.

    Abnar and Zuidema 2020, arXiv 2005.00928, §3; A is the mean over attention heads. What the head
    reads is the mean of its rows of R. Where pieces leave, the products are rectangular: rows of R
    are the pieces still there, columns all pieces of the text, and every row still adds up to 1. A
    fused piece's row is the plain mean of the rows it stands for (the pruning weighs them by
    importance, which a view does not show). A head that reads all pieces, those gone in the state
    they left in, reads the rows they left with.
    """

    is_signed: ClassVar[bool] = False

    def weigh(self, question: Question) -> WordWeights:
        classifier = question.model.classifier
        with torch.inference_mode():
            rows = roll_out(
                question.observation.layers,
                len(question.read.written),
                restore=classifier.encoder.pruning.restore,
            )  # (piece read, piece)
            read = rows[0] if classifier.firsts_only else rows.mean(0)
        return WordWeights(by_word(question.read, read))


def roll_out(views: tuple[TextAttention, ...], n_pieces: int, *, restore: bool) -> Tensor:
    """R after the last layer. (piece that goes on, piece of the text)"""
    flow = torch.eye(n_pieces, dtype=torch.float64)
    left = []
    for view in views:
        origin = view.origin.cpu()
        stays = torch.isin(origin, view.stayed.cpu()) & (origin != FUSED)
        left.append(flow[~stays & (origin != FUSED)])
        weights = view.weights.mean(0).double().cpu()  # (query, key)
        flow = (weights @ flow + flow) / 2
        gone, flow = flow[~stays], flow[stays]
        if _has_fused(view):
            flow = torch.cat([flow, gone.mean(0, keepdim=True)])
    if not restore:
        return flow
    return torch.cat([flow[:-1] if _has_fused(views[-1]) else flow, *left])


def _has_fused(view: TextAttention) -> bool:
    """Tells whether a piece that stands for those gone goes on to the next layer."""
    return bool((view.stayed == FUSED).any())


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
