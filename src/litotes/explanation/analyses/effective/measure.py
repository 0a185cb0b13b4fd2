"""effective: how much of the attention reaches the output.

Brunner et al. 2020, arXiv 1908.04211; Sun and Marasović 2021, arXiv 2105.08855, §2:

    A⊥ = A − (the projection of A onto the left null space of V),   A⊥ V = A V
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from litotes.encoder.attention.observer import TextAttention
from litotes.explanation.analyses.analysis import Measure, Result
from litotes.explanation.analyses.means import (
    Number,
    RunningMean,
    Table,
    format_interval,
    number,
    table,
)
from litotes.explanation.effective_attention import EffectiveAttention
from litotes.explanation.observation import Observation
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

    def nothing_to_say(self) -> str | None:
        if self.same != 1.0:
            return None
        return (
            "says nothing of texts so short: with at most"
            f" {self.head_width} pieces all of their attention is effective"
        )

    def findings(self) -> tuple[str, ...]:
        if self.same == 1.0:
            return (
                f"Every text is so short (at most {self.head_width} pieces) that all of its"
                " attention is effective.",
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
        self.null_share, self.cosine = RunningMean(*shape), RunningMean(*shape)
        self.negative, self.n_null = RunningMean(*shape), RunningMean(*shape)
        self.same, self.mean_null_share = RunningMean(), RunningMean()
        self.error = 0.0
        self.n_texts = 0

    def add(self, observation: Observation) -> None:
        self.n_texts += 1
        maps = observation.maps
        both = list(zip(maps["standard"], maps["effective"], strict=True))  # per layer
        null_share = self._by_head(observation, [_null_share(*layer) for layer in both])
        n_null = self._by_head(observation, [layer.n_null for layer in observation.effective])
        self.null_share.add(null_share)
        self.n_null.add(n_null)
        self.cosine.add(self._by_head(observation, [cosine(*layer) for layer in both]))
        self.negative.add(
            self._by_head(observation, [_negative(layer) for layer in maps["effective"]])
        )
        self.mean_null_share.add(null_share.nanmean())
        self.same.add((n_null[~n_null.isnan()] == 0).double().mean())
        for view, effective in zip(observation.layers, observation.effective, strict=True):
            self.error = max(self.error, _relative_error(view, effective))

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


def _relative_error(view: TextAttention, effective: EffectiveAttention) -> float:
    """‖A⊥V − O‖ / ‖O‖"""
    away = (effective.maps @ view.value - view.mixed).norm()
    return float(away / view.mixed.norm().clamp(min=1e-12))


def _null_share(weights: Tensor, maps: Tensor) -> Tensor:
    """‖A − A⊥‖ / ‖A‖, (attention_head,)"""
    return (weights - maps).flatten(1).norm(dim=-1) / weights.flatten(1).norm(dim=-1)


def _negative(maps: Tensor) -> Tensor:
    """Σ|A⊥ below 0| / Σ|A⊥|, (attention_head,)"""
    below = maps.clamp(max=0).abs().sum((-2, -1))
    return below / maps.abs().sum((-2, -1)).clamp(min=1e-12)
