"""How far the inside of a student is from that of its teacher, whatever the width of either.

hidden      Σ_l ‖P_l h_l − t_l'‖² / (pieces · width), P_l learned and thrown away (Jiao et al.
            2020, arXiv 1909.10351, §3.1); the student's layers are compared with evenly spaced ones
values      KL of softmax(V Vᵀ / √d) of the last layer (Wang et al. 2020, arXiv 2002.10957, §3.2)
relations   the same of queries, keys and values (Wang et al. 2021, arXiv 2012.15828, §3.1)

Relations are between pieces, so that widths need not agree: all heads' vectors are joined and cut
into as many relation heads as divide both widths.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from litotes.encoder.encoder import Encoder
from litotes.encoder.families import EncoderSpec
from litotes.encoder.layout import Batch, Layout
from litotes.encoder.reshaping import evenly_spaced
from litotes.encoder.torch_operations import Rows

_QUERY, _KEY, _VALUE = 0, 1, 2


class Imitation(nn.Module, ABC):
    """What of a teacher is imitated. Its parameters learn with the student and are not kept."""

    @abstractmethod
    def __init__(self, student: EncoderSpec, teacher: EncoderSpec) -> None:
        super().__init__()

    @abstractmethod
    def look(self, encoder: Encoder, batch: Batch) -> list[Tensor]:
        """What is compared, (piece, …) each."""

    @abstractmethod
    def forward(self, student: list[Tensor], teacher: list[Tensor], layout: Layout) -> Tensor:
        """The distance, a mean over pieces."""


class HiddenStates(Imitation):
    """The hidden states of every layer, through a linear map."""

    def __init__(self, student: EncoderSpec, teacher: EncoderSpec) -> None:
        super().__init__(student, teacher)
        self.n_layers = min(len(student.walk), len(teacher.walk))
        self.maps = nn.ModuleList(
            nn.Linear(student.width, teacher.width, bias=False) for _ in range(self.n_layers)
        )

    def look(self, encoder: Encoder, batch: Batch) -> list[Tensor]:
        n_walked = len(encoder.spec.walk)
        wanted = evenly_spaced(self.n_layers, of=n_walked)
        hidden, states = encoder.embeddings(batch), []
        for layer in range(n_walked):
            hidden = encoder.walk(hidden, batch.layout, start=layer, stop=layer + 1).hidden
            if layer in wanted:
                states.append(hidden)  # (piece, width)
        return states

    def forward(self, student: list[Tensor], teacher: list[Tensor], layout: Layout) -> Tensor:
        distances = []
        for number, (own, wanted) in enumerate(zip(student, teacher, strict=True)):
            distances.append((self.maps[number](own).float() - wanted.float()).square().mean())
        return torch.stack(distances).mean()


class Relations(Imitation):
    """How alike the last layer finds the pieces of a text, by the vectors in `parts`."""

    parts: tuple[int, ...] = (_QUERY, _KEY, _VALUE)

    def __init__(self, student: EncoderSpec, teacher: EncoderSpec) -> None:
        super().__init__(student, teacher)
        common = math.gcd(student.width, teacher.width)
        most = teacher.n_attention_heads
        self.n_heads = max(n for n in range(1, most + 1) if common % n == 0)

    def look(self, encoder: Encoder, batch: Batch) -> list[Tensor]:
        *before, last = encoder.spec.walk
        hidden = encoder.embeddings(batch)
        hidden = encoder.walk(hidden, batch.layout, stop=len(before)).hidden
        packed = encoder.block(last).attention.project(hidden).float()
        # (piece, relation_head, relation_width) each
        return [packed[:, part].flatten(1).unflatten(1, (self.n_heads, -1)) for part in self.parts]

    def forward(self, student: list[Tensor], teacher: list[Tensor], layout: Layout) -> Tensor:
        rows = Rows.of(layout)
        total = student[0].new_zeros(())
        for own, wanted in zip(student, teacher, strict=True):
            for mine, theirs, live in zip(
                rows.split(own), rows.split(wanted), rows.live, strict=True
            ):
                total = total + _divergence(mine, theirs, live)
        return total / (layout.n_pieces * self.n_heads * len(student))


class ValueRelations(Relations):
    """The same by values alone."""

    parts = (_VALUE,)


def _divergence(mine: Tensor, theirs: Tensor, live: Tensor | None) -> Tensor:
    """The sum over live rows of KL(theirs ‖ mine). (text, relation_head, piece, width)"""
    wanted, found = _relation(theirs, live), _relation(mine, live)
    rows = (wanted.exp() * (wanted - found)).sum(-1)  # (text, relation_head, query)
    return rows.sum() if live is None else rows.masked_fill(~live.squeeze(2), 0.0).sum()


def _relation(vectors: Tensor, live: Tensor | None) -> Tensor:
    """Log softmax(V Vᵀ / √d), (text, relation_head, query, key)"""
    affinity = vectors @ vectors.transpose(-1, -2) / math.sqrt(vectors.shape[-1])
    if live is not None:
        affinity = affinity.masked_fill(~live, -1e9)  # finite: 0 · −∞ is not a number
    return affinity.log_softmax(-1)


IMITATIONS: dict[str, type[Imitation]] = {
    "hidden": HiddenStates,
    "values": ValueRelations,
    "relations": Relations,
}
