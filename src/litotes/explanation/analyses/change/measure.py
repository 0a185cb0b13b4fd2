"""change: how far fine-tuning moved the attention.

Kovaleva et al. 2019, arXiv 1908.08593, §4.3; Sun and Marasović 2021, §3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from litotes.core.errors import UserError
from litotes.encoder.attention.observer import TextAttention
from litotes.explanation.analyses.analysis import Measure, Result
from litotes.explanation.analyses.effective.measure import cosine
from litotes.explanation.analyses.kinds import kinds_shown
from litotes.explanation.analyses.means import (
    Number,
    RunningMean,
    Table,
    half_widths,
    means,
    numbers,
    tables,
)
from litotes.explanation.observation import KINDS, Observation
from litotes.model.checkpoint import Model

_SAME = 0.9995
"""A cosine above this is shown as 1.00 and is no change."""


@dataclass(frozen=True)
class Change(Result):
    """Cosine similarity of the maps before and after fine-tuning, means over texts, {standard,
    effective: …}; 1: nothing changed.

    similarity: (layer, attention_head). by_layer: the mean over a layer's attention heads, with
    half of its 95 % interval over texts.
    """

    similarity: dict[str, Table]
    by_layer: dict[str, tuple[Number, ...]]
    by_layer_half_width: dict[str, tuple[Number, ...]]

    @property
    def kinds(self) -> tuple[str, ...]:
        """One where standard and effective attention are the same."""
        return kinds_shown(self.by_layer)

    def findings(self) -> tuple[str, ...]:
        return tuple(self._finding(kind) for kind in self.kinds)

    def _finding(self, kind: str) -> str:
        known = [
            (value, layer) for layer, value in enumerate(self.by_layer[kind]) if value is not None
        ]
        least, *others = sorted(known)
        cosine, layer = least
        name = f"{kind.capitalize()} attention" if len(self.kinds) > 1 else "Attention"
        if cosine > _SAME:
            return f"{name} did not change (cosine {cosine:.3f} and more in every layer)."
        width = self.by_layer_half_width[kind][layer] or 0.0
        said = f"{name} changed most in layer {layer + 1} (cosine {cosine:.2f} ± {width:.2f})"
        if others:
            second, next_layer = others[0]
            said += f", then in layer {next_layer + 1} ({second:.2f})"
        return f"{said}."


class ChangeMeasure(Measure):
    """How far fine-tuning moved every attention head from where it began."""

    needs_base: ClassVar[bool] = True

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.similarity = {
            kind: RunningMean(self.n_layers, self.n_attention_heads) for kind in KINDS
        }
        self.by_layer = {kind: RunningMean(self.n_layers) for kind in KINDS}
        self.n_texts = 0

    def add(self, observation: Observation) -> None:
        before = _maps_of_base(observation)
        self.n_texts += 1
        for kind, after in observation.maps.items():
            cosines = []
            for view, new, old in zip(observation.layers, after, before[kind], strict=True):
                cosines.append(cosine(*_shared_part(view, new, old)))
            similarity = self._by_head(observation, cosines)
            self.similarity[kind].add(similarity)
            self.by_layer[kind].add(similarity.nanmean(-1))

    def result(self) -> Change:
        by_layer, widths = means(self.by_layer), half_widths(self.by_layer)
        return Change(
            n_texts=self.n_texts,
            similarity=tables(means(self.similarity)),
            by_layer={kind: numbers(by_layer[kind]) for kind in KINDS},
            by_layer_half_width={kind: numbers(widths[kind]) for kind in KINDS},
        )


def _maps_of_base(observation: Observation) -> dict[str, list[Tensor]]:
    """{kind: per layer (attention_head, query, key)}"""
    if observation.base is None or observation.base_effective is None:
        raise UserError(
            "What changed cannot be said without the encoder the model was tuned from: give"
            " --tuned-from."
        )
    return {
        "standard": [view.weights for view in observation.base],
        "effective": [one.maps for one in observation.base_effective],
    }


def _shared_part(view: TextAttention, after: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    """Both maps for the pieces and attention heads that are left; before fine-tuning none had
    left.
    """
    everywhere = torch.arange(after.shape[-1], device=view.origin.device)
    if after.shape == before.shape and bool((view.origin == everywhere).all()):
        return after, before  # nothing left: spares copies of large maps
    heads = torch.tensor(view.heads, device=before.device)
    has_place = view.origin >= 0  # a fused piece has no counterpart
    places = view.origin[has_place]
    return after[:, has_place][:, :, has_place], before[heads][:, places][:, :, places]
