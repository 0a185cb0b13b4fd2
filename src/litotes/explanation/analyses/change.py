"""change: how far fine-tuning moved the attention.

Kovaleva et al. 2019, arXiv 1908.08593, §4.3; Sun and Marasović 2021, §3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from litotes.core.errors import UserError
from litotes.encoder.walk import TextAttention
from litotes.explanation.analyses.analysis import (
    Analysis,
    Number,
    Result,
    Table,
    by_kind,
    half_widths,
    kinds_shown,
    means,
)
from litotes.explanation.analyses.drawing import (
    KIND_STYLES,
    Box,
    Canvas,
    HeadMap,
    MapGroup,
    Series,
    draw_series,
    legend_above,
    maps_figure,
    scale,
)
from litotes.explanation.analyses.effective import cosine
from litotes.explanation.observation import Observation
from litotes.model.checkpoint import Model

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
        """By layer and by head, as figure 3 of Sun and Marasović."""
        maps = tuple(
            HeadMap(f"{kind.capitalize()} attention", self.similarity[kind]) for kind in self.kinds
        )
        group = MapGroup(maps, "cosine, before and after", scale(maps, high=1))
        return maps_figure([group], top=_TOP, draw_above=self._draw_layers)

    def _draw_layers(self, canvas: Canvas) -> None:
        ax = canvas.chart(Box(0, 0, canvas.width, _TOP))
        series = {}
        for kind in self.kinds:
            widths = self.by_layer_half_width[kind]
            series[kind] = Series(self.by_layer[kind], widths, KIND_STYLES[kind])
        draw_series(series, ax)
        ax.set_xlabel("layer", fontsize=8)
        ax.set_ylabel("cosine (1: nothing changed)", fontsize=8)
        legend_above(ax)


class ChangeAnalysis(Analysis):
    """How far fine-tuning moved every attention head from where it began."""

    needs_base: ClassVar[bool] = True

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.similarity, self.by_layer = by_kind(*self.shape), by_kind(self.shape[0])

    def add(self, observation: Observation) -> None:
        if observation.base is None:
            raise UserError(
                "What changed cannot be said without the encoder the model was tuned from: give"
                " --tuned-from."
            )
        self.n_texts += 1
        for kind, after in observation.maps.items():
            both = zip(observation.layers, after, observation.base_maps[kind], strict=True)
            cosines = [cosine(*_shared_part(*layer)) for layer in both]
            similarity = self.by_head(observation, cosines)
            self.similarity[kind].add(similarity)
            self.by_layer[kind].add(similarity.nanmean(-1))

    def result(self) -> Change:
        return Change(
            n_texts=self.n_texts,
            similarity=means(self.similarity),
            by_layer=means(self.by_layer),
            by_layer_half_width=half_widths(self.by_layer),
        )


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
