"""Results by hand, of any size, with plausible numbers: a fixed seed, some values missing where
asked for.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from litotes.explanation.analyses import ANALYSES
from litotes.explanation.analyses.analysis import Number, Result, Table
from litotes.explanation.analyses.attribution import Push, Pushes
from litotes.explanation.analyses.change import Change
from litotes.explanation.analyses.diversity import Diversity, NamedHead
from litotes.explanation.analyses.effective import Effective
from litotes.explanation.analyses.faithfulness import Mean, MethodScore, Ranking
from litotes.explanation.analyses.map_patterns import CLASSES
from litotes.explanation.analyses.patterns import PatternShares
from litotes.explanation.analyses.token_types import SPECIAL, TYPES, TokenTypes
from litotes.explanation.analyses.trace import Traces, WordStay
from litotes.explanation.attribution import CONTROL, METHODS, SHARES
from litotes.explanation.observation import KINDS

WORDS = (
    "the",
    "of",
    "$a$",
    "<b>",
    "&",
    "wonderful",
    "😀",
    "a-very-long-word-that-has-no-end-at-all",
)
COMPARED = tuple(name for name in METHODS if name != CONTROL)


@dataclass(frozen=True)
class Maker:
    """Numbers for a model of so many layers and attention heads; missing: the last attention head
    of every layer is gone.
    """

    n_layers: int = 6
    n_heads: int = 12
    missing: bool = False
    random: random.Random = field(default_factory=lambda: random.Random(0))

    def table(self, low: float, high: float) -> Table:
        return tuple(
            tuple(
                (
                    None
                    if self.missing and head == self.n_heads - 1
                    else self.random.uniform(low, high)
                )
                for head in range(self.n_heads)
            )
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
            positional={
                job: self.table(0, 0.9) for job in ("previous piece", "same piece", "next piece")
            },
            merging=self.table(0, 0.6),
            named=(
                NamedHead(0, 0, "previous piece", 0.84),
                NamedHead(self.n_layers - 1, 1, "next piece", 0.71),
            ),
        )

    def trace(self) -> Traces:
        words = [WordStay(word, place / 16, 5 + place) for place, word in enumerate(WORDS)]
        return Traces(
            n_texts=400,
            kept=tuple(1 - layer / (self.n_layers + 1) for layer in range(self.n_layers)),
            kept_half_width=self.by_layer(0.01, 0.03),
            heads=self.table(0.2, 1),
            first_to_leave=tuple(words),
            last_to_leave=tuple(words[::-1]),
        )

    def patterns(self) -> PatternShares:
        return PatternShares(
            n_texts=400,
            n_large=380,
            classes=tuple(CLASSES),
            shares={
                kind: {name: self.random.uniform(0, 0.5) for name in CLASSES} for kind in KINDS
            },
            half_width={kind: dict.fromkeys(CLASSES, 0.02) for kind in KINDS},
            by_layer={
                kind: tuple(
                    tuple(self.random.random() for _ in CLASSES) for _ in range(self.n_layers)
                )
                for kind in KINDS
            },
            difference={name: self.random.uniform(-0.2, 0.2) for name in CLASSES},
            difference_half_width=dict.fromkeys(CLASSES, 0.03),
            agreement={"standard": 0.81, "effective": 0.74},
            sure={"standard": 0.93, "effective": 0.88},
        )

    def token_types(self) -> TokenTypes:
        by_head = replace(self, n_layers=len(TYPES))
        return TokenTypes(
            n_texts=400,
            types=TYPES,
            from_first={kind: by_head.table(-0.1, 0.6) for kind in KINDS},
            from_first_half_width={kind: by_head.table(0.01, 0.05) for kind in KINDS},
            by_type={kind: {name: self.random.uniform(0, 0.4) for name in TYPES} for kind in KINDS},
            by_type_half_width={kind: dict.fromkeys(TYPES, 0.01) for kind in KINDS},
            n_with={name: 1000 - 150 * place for place, name in enumerate(TYPES)},
            difference={name: self.random.uniform(-0.1, 0.2) for name in TYPES},
            difference_half_width=dict.fromkeys(TYPES, 0.01),
            from_others={
                name: {kind: self.table(-0.05, 0.5) for kind in KINDS} for name in SPECIAL
            },
            over_layers={
                name: {kind: self.random.uniform(0, 0.4) for kind in KINDS} for name in SPECIAL
            },
            over_layers_difference=dict.fromkeys(SPECIAL, 0.12),
            over_layers_difference_half_width=dict.fromkeys(SPECIAL, 0.01),
        )

    def attribution(self) -> Pushes:
        words = [
            Push(word, 1.5 - place / 9, 0.1 + place / 50, 5 + place)
            for place, word in enumerate(WORDS)
        ]
        return Pushes(
            n_texts=400,
            n_seen=500,
            method="gradient_input",
            towards={
                "sentiment": {"negative": tuple(words), "positive": tuple(words[2:5])},
                "<sarcasm>": {"no": (), "yes": tuple(words[:4])},
            },
            compared=COMPARED,
            agreement=tuple(
                tuple(self._agreement(one, other) for other in COMPARED) for one in COMPARED
            ),
            agreement_half_width=tuple(
                tuple(0.0 if one == other else 0.04 for other in COMPARED) for one in COMPARED
            ),
            n_compared=100,
        )

    def _agreement(self, one: str, other: str) -> Number:
        if one == other:
            return 1.0
        return (
            None
            if self.missing and {one, other} == set(COMPARED[:2])
            else (len(one) * len(other)) % 97 / 80 - 0.2
        )

    def faithfulness(self) -> Ranking:
        n = len(SHARES)
        scores = tuple(
            MethodScore(
                method=name,
                is_signed=place % 2 == 0,
                deletion=tuple(0.9 - (0.6 - place / 20) * share for share in SHARES),
                deletion_half_width=(0.03,) * n,
                sufficiency=tuple(0.4 + (0.6 - place / 20) * share**0.5 * 0.9 for share in SHARES),
                sufficiency_half_width=(0.03,) * n,
                comprehensiveness=Mean(0.4 - place / 30, 0.37 - place / 30, 0.43 - place / 30),
                sufficiency_loss=Mean(0.1 + place / 40, 0.08 + place / 40, 0.12 + place / 40),
                lead=Mean(0.3 - place / 17, 0.26 - place / 17, 0.34 - place / 17),
                over_random=Mean(0.25 - place / 17, 0.21 - place / 17, 0.29 - place / 17),
                behind_best=Mean(place / 17, place / 17 - 0.02, place / 17 + 0.02),
            )
            for place, name in enumerate(METHODS)
        )
        return Ranking(n_texts=200, task="sentiment", n_seen=400, shares=SHARES, methods=scores)


MADE = tuple(name for name in ANALYSES if hasattr(Maker, name))
"""The analyses with a result by hand.

A new one need not have any: then only its results on tiny models are drawn and written up.
"""


def made(name: str, *size: int, **options: Any) -> Result:
    """The result of the analysis of that name."""
    make: Callable[[], Result] = getattr(Maker(*size, **options), name)
    return make()
