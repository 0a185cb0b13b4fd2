"""effective: how much of the attention reaches the output.

Brunner et al. 2020, arXiv 1908.04211; Sun and Marasović 2021, arXiv 2105.08855, §2:

    A⊥ = A − (the projection of A onto the left null space of V),   A⊥ V = A V
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor

from litotes.encoder.walk import TextAttention
from litotes.explanation.analyses.analysis import Analysis, Number, Result, Table
from litotes.explanation.analyses.drawing import MapGroup, maps_figure
from litotes.explanation.effective_attention import EffectiveAttention
from litotes.explanation.observation import Observation
from litotes.model.checkpoint import Model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DISTINCT = 0.5  # dimensions: where null spaces differ less, their map would show one colour


@dataclass(frozen=True)
class Effective(Result):
    """Tables are (layer, attention_head), means over texts.

    null_share: the length of what does nothing relative to that of the map, ‖A − A⊥‖ / ‖A‖ = √(1 −
    cosine²).
    cosine: between A and A⊥. negative: the share of A⊥ below 0.
    n_null: the dimension of the null space. same: the share of texts whose two maps are one, for a
    text has to be longer than a head is wide before anything can hide; head_width says how wide.
    error: the largest ‖A⊥V − O‖ / ‖O‖ seen: what is called effective must give the output, up to
    rounding.
    """

    name: ClassVar[str] = "effective"
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
            f"says nothing of texts so short: with at most {self.head_width} pieces all of their"
            " attention is effective"
        )

    def figure(self) -> Figure:
        """Draws how long the part of every attention head's map is that does nothing, and how far
        what is left looks like the whole.
        """
        shares = {
            "Length of what does nothing": (self.null_share, "‖A − A⊥‖ / ‖A‖"),
            "Likeness of both maps": (self.cosine, "cosine of A and A⊥"),
            "Share of the effective map below 0": (self.negative, "share of Σ |A⊥|"),
        }
        groups = [
            MapGroup({title: values}, unit, low=0, high=1)
            for title, (values, unit) in shares.items()
        ]
        hidden = {"Dimension of what can hide": self.n_null}
        dimension = MapGroup(hidden, "dimension, mean over texts", low=0, step=1)
        if np.ptp(dimension.known) > _DISTINCT:
            groups.append(dimension)
        return maps_figure(groups)


class EffectiveAnalysis(Analysis):
    """How much of the attention never reaches the output (effective attention)."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.error = 0.0

    def measure(self, observation: Observation) -> dict[str, Tensor]:
        both = list(zip(observation.layers, observation.effective, strict=True))
        for view, effective in both:
            away = (effective.maps @ view.value - view.mixed).norm()
            self.error = max(self.error, float(away / view.mixed.norm().clamp(min=1e-12)))
        tables = self.by_head(observation, [by_attention_head(*layer) for layer in both])
        n_null = tables["n_null"]
        return tables | {
            "mean_null_share": tables["null_share"].nanmean(),
            "same": (n_null[~n_null.isnan()] == 0).double().mean(),
        }

    def result(self) -> Effective:
        return self.means_as(Effective, head_width=self.spec.head_width, error=self.error)


def by_attention_head(view: TextAttention, effective: EffectiveAttention) -> dict[str, Tensor]:
    """Compares both maps of one layer, {name: (attention_head,)}"""
    whole, part = view.weights, effective.maps  # (attention_head, query, key)
    below = part.clamp(max=0).abs().sum((-2, -1))
    return {
        "null_share": (whole - part).flatten(1).norm(dim=-1) / whole.flatten(1).norm(dim=-1),
        "cosine": cosine(whole, part),
        "negative": below / part.abs().sum((-2, -1)).clamp(min=1e-12),
        "n_null": effective.n_null,
    }


def cosine(one: Tensor, other: Tensor) -> Tensor:
    """Compares maps laid flat, (attention_head, query, key) → (attention_head,)."""
    return torch.cosine_similarity(one.flatten(1), other.flatten(1), dim=-1)
