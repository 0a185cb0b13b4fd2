"""effective: how much of the attention reaches the output.

Brunner et al. 2020, arXiv 1908.04211; Sun and Marasović 2021.

arXiv 2105.08855, §2: A⊥ = A − (the projection of A onto the left null space of V), and A⊥ V = A V.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from litotes.explain.observation import Observation
from litotes.inside.analysis import Measure, Result
from litotes.inside.heads_table import by_head
from litotes.inside.means import Number, RunningMean, Table, format_interval, number, table
from litotes.model.checkpoint import Model


@dataclass(frozen=True)
class Effective(Result):
    """Tables are (layer, attention_head), means over texts.

    null_share: the length of what does nothing beside that of the map, ‖A − A⊥‖ / ‖A‖ = √(1 −
    cosine²).
    cosine: between A and A⊥. negative: the share of A⊥ below 0.
    n_null: the dimension of the null space. same: the share of texts whose two maps are one, for a
    text has to be longer than a head is wide before anything can hide; head_width says how wide.
    error: the largest ‖A⊥V − O‖ / ‖O‖ seen: what is called effective must give the output, up to
    rounding.
    """

    head_width: int
    null_share: Table
    cosine: Table
    negative: Table
    n_null: Table
    same: Number
    mean_null_share: Number
    mean_null_share_half_width: Number
    error: float

    def findings(self) -> tuple[str, ...]:
        if self.same == 1.0:
            return (
                (
                    f"Every text is so short (at most {self.head_width} pieces) that all of its"
                    " attention is effective."
                ),
            )
        length = format_interval(self.mean_null_share, self.mean_null_share_half_width)
        said = [
            f"The part of the attention that never reaches the output is {length} times as long as"
            " the whole (‖A − A⊥‖ / ‖A‖); the rest gives the output to a relative error of"
            f" {self.error:.0e}."
        ]
        if self.same:
            said.append(
                f"In {self.same:.0%} of the maps, those of at most {self.head_width} pieces,"
                " nothing can hide: both maps are one."
            )
        return tuple(said)


class EffectiveMeasure(Measure):
    """How much of the attention never reaches the output (effective attention)."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        shape = (self.n_layers, self.n_attention_heads)
        self.null_share, self.cosine, self.negative, self.n_null = (
            RunningMean(*shape) for _ in range(4)
        )
        self.same, self.mean_null_share = RunningMean(), RunningMean()
        self.error = 0.0
        self.n_texts = 0

    def add(self, observation: Observation) -> None:
        self.n_texts += 1
        views = observation.layers
        pairs = [
            (view.weights, effective.maps)
            for view, effective in zip(views, observation.effective, strict=True)
        ]
        null_share = by_head(views, [_null_share(*pair) for pair in pairs], self.n_attention_heads)
        n_null = by_head(
            views, [effective.n_null for effective in observation.effective], self.n_attention_heads
        )
        self.null_share.add(null_share)
        self.n_null.add(n_null)
        self.cosine.add(by_head(views, [cosine(*pair) for pair in pairs], self.n_attention_heads))
        self.negative.add(
            by_head(views, [_negative(maps) for _, maps in pairs], self.n_attention_heads)
        )
        self.mean_null_share.add(null_share.nanmean())
        self.same.add((n_null[~n_null.isnan()] == 0).double().mean())
        for view, effective in zip(views, observation.effective, strict=True):
            away = (effective.maps @ view.value - view.mixed).norm() / view.mixed.norm().clamp(
                min=1e-12
            )
            self.error = max(self.error, float(away))

    def result(self) -> Effective:
        return Effective(
            n_texts=self.n_texts,
            head_width=self.spec.head_width,
            null_share=table(self.null_share.mean),
            cosine=table(self.cosine.mean),
            negative=table(self.negative.mean),
            n_null=table(self.n_null.mean),
            same=number(self.same.mean),
            mean_null_share=number(self.mean_null_share.mean),
            mean_null_share_half_width=number(self.mean_null_share.half_width),
            error=self.error,
        )


def cosine(one: Tensor, other: Tensor) -> Tensor:
    """Between maps laid flat, (attention_head, query, key) → (attention_head,)."""
    return torch.cosine_similarity(one.flatten(1), other.flatten(1), dim=-1)


def _null_share(weights: Tensor, maps: Tensor) -> Tensor:
    return (weights - maps).flatten(1).norm(dim=-1) / weights.flatten(1).norm(dim=-1)


def _negative(maps: Tensor) -> Tensor:
    """Σ|A⊥ below 0| / Σ|A⊥|"""
    return maps.clamp(max=0).abs().sum((-2, -1)) / maps.abs().sum((-2, -1)).clamp(min=1e-12)
