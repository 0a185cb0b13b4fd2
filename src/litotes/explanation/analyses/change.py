"""change: how far fine-tuning moved the attention.

Kovaleva et al. 2019, arXiv 1908.08593, §4.3; Sun and Marasović 2021, §3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from litotes.encoder.walk import TextAttention
from litotes.explanation.analyses.analysis import Analysis, Number, Result, Table, kinds_shown
from litotes.explanation.analyses.drawing import Box, Canvas, MapGroup, draw_series, maps_figure
from litotes.explanation.analyses.effective import cosine
from litotes.explanation.observation import KINDS, Observation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SAME = 0.9995
"""A cosine above this is shown as 1.00 and is no change."""

_TOP = 2.6  # inches


@dataclass(frozen=True)
class Change(Result):
    """Cosine similarity of the maps before and after fine-tuning, means over texts, {standard,
    effective: …}; 1: nothing changed.

    similarity: (layer, attention_head). by_layer: the mean over a layer's attention heads, with
    half of its 95 % interval over texts.
    """

    name: ClassVar[str] = "change"
    similarity: dict[str, Table]
    by_layer: dict[str, tuple[Number, ...]]
    by_layer_half_width: dict[str, tuple[Number, ...]]

    @property
    def kinds(self) -> tuple[str, ...]:
        """One where standard and effective attention are the same."""
        return kinds_shown(self.by_layer)

    def highlights(self) -> tuple[str, ...]:
        return self.findings()

    def most_changed(self, kind: str) -> list[tuple[float, int, bool]]:
        """The layers, counted from 1, with their cosines and whether that is a change; the most
        changed one first.
        """
        layers = enumerate(self.by_layer[kind], start=1)
        known = [(value, layer) for layer, value in layers if value is not None]
        return [(value, layer, value <= _SAME) for value, layer in sorted(known)]

    def figure(self) -> Figure:
        """Draws the similarity by layer and by head, as figure 3 of Sun and Marasović."""
        maps = {f"{kind.capitalize()} attention": self.similarity[kind] for kind in self.kinds}
        group = MapGroup(maps, "cosine, before and after", high=1)
        return maps_figure([group], top=_TOP, draw_above=self._draw_layers)

    def _draw_layers(self, canvas: Canvas) -> None:
        box = Box(0, 0, canvas.width, _TOP)
        ax = canvas.chart(box, x="layer", y="cosine (1: nothing changed)")
        widths = self.by_layer_half_width
        draw_series({kind: (self.by_layer[kind], widths[kind]) for kind in self.kinds}, ax)


class ChangeAnalysis(Analysis):
    """How far fine-tuning moved every attention head from where it began."""

    needs_base: ClassVar[bool] = True

    def measure(self, observation: Observation) -> dict[str, Any]:
        similarity = self.by_head(
            observation,
            [
                {kind: cosine(*_shared_part(view, maps[kind], before[kind])) for kind in KINDS}
                for view, maps, before in zip(
                    observation.layers, observation.maps, observation.base_maps, strict=True
                )
            ],
        )
        by_layer = {kind: cosines.nanmean(-1) for kind, cosines in similarity.items()}
        return {"similarity": similarity, "by_layer": by_layer}

    def result(self) -> Change:
        return self.means_as(Change)


def _shared_part(view: TextAttention, after: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    """Cuts both maps to the pieces and attention heads that are left; before fine-tuning none had
    left.
    """
    everywhere = torch.arange(after.shape[-1], device=view.origin.device)
    if after.shape == before.shape and bool((view.origin == everywhere).all()):
        return after, before  # nothing left: spares copies of large maps
    heads = torch.tensor(view.heads, device=before.device)
    has_place = view.origin >= 0  # a fused piece has no counterpart
    places = view.origin[has_place]
    return after[:, has_place][:, :, has_place], before[heads][:, places][:, :, places]
