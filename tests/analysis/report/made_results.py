"""Results by hand, of any size, with plausible numbers: a fixed seed, some values missing where asked for."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from litotes.analysis.analysis import Result
from litotes.analysis.change import Change
from litotes.analysis.diversity import Diversity, NamedHead
from litotes.analysis.effective import Effective
from litotes.analysis.running import Number, Table
from litotes.analysis.trace import Traces, WordStay

KINDS = ("standard", "effective")


class Maker:
    """Numbers for a model of so many layers and attention heads; missing: the last attention head of every layer is gone."""

    def __init__(self, n_layers: int = 6, n_heads: int = 12, *, missing: bool = False) -> None:
        self.n_layers, self.n_heads, self.missing = n_layers, n_heads, missing
        self.random = random.Random(0)

    def table(self, low: float, high: float) -> Table:
        return tuple(
            tuple(None if self.missing and head == self.n_heads - 1 else self.random.uniform(low, high) for head in range(self.n_heads))
            for _ in range(self.n_layers)
        )

    def by_layer(self, low: float, high: float) -> tuple[Number, ...]:
        return tuple(self.random.uniform(low, high) for _ in range(self.n_layers))

    def effective(self) -> Effective:
        return Effective(
            n_texts=400,
            head_width=32,
            null_share=self.table(0, 0.6),
            cosine=self.table(0.7, 1),
            negative=self.table(0, 0.3),
            n_null=self.table(0, 40),
            same=0.25,
            mean_null_share=0.31,
            mean_null_share_half_width=0.012,
            error=3e-7,
        )

    def change(self) -> Change:
        return Change(
            n_texts=400,
            similarity={kind: self.table(0.4, 1) for kind in KINDS},
            by_layer={kind: self.by_layer(0.5, 0.9) for kind in KINDS},
            by_layer_half_width={kind: self.by_layer(0.01, 0.04) for kind in KINDS},
        )

    def diversity(self) -> Diversity:
        return Diversity(
            n_texts=400,
            divergence=self.by_layer(0.3, 0.9),
            divergence_half_width=self.by_layer(0.01, 0.04),
            density=self.table(0.2, 1),
            entropy=self.table(0.5, 4),
            confidence=self.table(0.1, 0.8),
            alpha=self.table(1.1, 1.9),
            positional={job: self.table(0, 0.9) for job in ("previous piece", "same piece", "next piece")},
            merging=self.table(0, 0.6),
            named=(NamedHead(0, 0, "previous piece", 0.84), NamedHead(self.n_layers - 1, 1, "next piece", 0.71)),
        )

    def trace(self) -> Traces:
        words = [WordStay(word, place / 16, 5 + place) for place, word in enumerate(("the", "of", "$a$", "<b>", "&", "wonderful", "😀"))]
        return Traces(
            n_texts=400,
            kept=tuple(1 - layer / (self.n_layers + 1) for layer in range(self.n_layers)),
            kept_half_width=self.by_layer(0.01, 0.03),
            heads=self.table(0.2, 1),
            first_to_leave=tuple(words),
            last_to_leave=tuple(words[::-1]),
        )


def made(name: str, *size: int, **options: Any) -> Result:
    """The result of the analysis of that name."""
    make: Callable[[], Result] = getattr(Maker(*size, **options), name)
    return make()
