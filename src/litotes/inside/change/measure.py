"""change: how far fine-tuning moved the attention.

Kovaleva et al. 2019, arXiv 1908.08593, §4.3; Sun and Marasović 2021, §3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from litotes.attention.observer import TextAttention
from litotes.core.errors import UserError
from litotes.explain.observation import KINDS, Observation
from litotes.inside.analysis import Measure, Result
from litotes.inside.effective.measure import cosine
from litotes.inside.heads_table import by_head
from litotes.inside.means import Number, RunningMean, Table, numbers, table
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

    def findings(self) -> tuple[str, ...]:
        said = []
        for kind in KINDS:
            known = [
                (value, layer)
                for layer, value in enumerate(self.by_layer[kind])
                if value is not None
            ]
            (first, most), (second, next_most) = (
                sorted(known)[:2] if len(known) > 1 else (known[0], known[0])
            )
            if first > _SAME:
                said.append(
                    f"{kind.capitalize()} attention did not change (cosine {first:.3f} and more in"
                    " every layer)."
                )
                continue
            width = self.by_layer_half_width[kind][most] or 0.0
            said.append(
                f"{kind.capitalize()} attention changed most in layer {most + 1} (cosine"
                f" {first:.2f} ± {width:.2f})"
                + (f", then in layer {next_most + 1} ({second:.2f})." if len(known) > 1 else ".")
            )
        return tuple(said)


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
        if observation.base is None or observation.base_effective is None:
            raise UserError(
                "What changed cannot be told without the encoder the model was tuned from: give"
                " --tuned-from."
            )
        self.n_texts += 1
        views = observation.layers
        before = {
            "standard": [view.weights for view in observation.base],
            "effective": [one.maps for one in observation.base_effective],
        }
        for kind, after in observation.maps.items():
            values = [
                cosine(*_of_the_same(*three))
                for three in zip(views, after, before[kind], strict=True)
            ]
            whole = by_head(views, values, self.n_attention_heads)
            self.similarity[kind].add(whole)
            self.by_layer[kind].add(whole.nanmean(-1))

    def result(self) -> Change:
        return Change(
            n_texts=self.n_texts,
            similarity={kind: table(running.mean) for kind, running in self.similarity.items()},
            by_layer={kind: numbers(running.mean) for kind, running in self.by_layer.items()},
            by_layer_half_width={
                kind: numbers(running.half_width) for kind, running in self.by_layer.items()
            },
        )


def _of_the_same(view: TextAttention, after: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    """Both maps for the pieces and attention heads that are still there; before fine-tuning none
    had left.
    """
    heads = torch.tensor(view.heads, device=before.device)
    if after.shape == before.shape and bool(
        (view.origin == torch.arange(after.shape[-1], device=view.origin.device)).all()
    ):
        return after, before  # nothing left: spares copies of large maps
    there = view.origin >= 0  # a fused piece has no counterpart
    places = view.origin[there]
    return after[:, there][:, :, there], before[heads][:, places][:, :, places]
