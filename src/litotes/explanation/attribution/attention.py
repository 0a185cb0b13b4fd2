"""Methods that read the attention of the last layer: what the head is going to read is gathered
there.

Over a text of n pieces, with the queries Q the head reads (the first piece alone, or all that are
still there):

    w_k = 1/|Q| Σ_{q ∈ Q} mean over attention heads of |M_h(q, k)|

A pruned text has weights for the pieces that came into the last layer; the others have 0. What a
fused piece receives belongs to no word.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from litotes.encoder.attention.observer import TextAttention
from litotes.encoder.attention.survivors import FUSED
from litotes.explanation.attribution.method import Method, WordWeights, by_word
from litotes.explanation.attribution.question import Question


class LastLayer(Method):
    """What the pieces receive in the last layer, by one map or another."""

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
        """How much each query takes from each key, all attention heads together. (query, key)"""

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

    A⊥ = A less its projection onto the left null space of V. Brunner et al. 2020, arXiv 1908.04211,
    §3.2.
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
    """Which queries of the last layer the head goes on to read. (query,) of bool

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
