"""What a stress test found: rows of numbers, each with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from litotes.core.text import one_line
from litotes.evaluation.significance import SIGNIFICANT

ALL = "all"
"""The cell of all texts."""


@dataclass(frozen=True)
class Measured:
    """A share or a mean with its 95 % interval."""

    value: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Contrast:
    """A rewrite less its control on the same texts; `adjusted_p` is Holm's over all tests of the
    table.
    """

    value: float
    interval: tuple[float, float]
    p: float
    adjusted_p: float

    @property
    def is_significant(self) -> bool:
        return self.adjusted_p < SIGNIFICANT


@dataclass(frozen=True)
class Comparison:
    """A rewrite beside its control, on the n texts that have one.

    flips: share of answers that change. change: mean change of the probability of the label first
    given. The differences are None where there are too few texts for a test.
    """

    n: int
    flips: Measured
    change: Measured
    flip_difference: Contrast | None
    change_difference: Contrast | None


@dataclass(frozen=True)
class StressRow:
    """One rewrite, one task, one variety of texts (or all of them).

    flips: share of the n texts whose label changes. change: mean change of the probability of the
    label first given. n_broken, n_mended: right answers that became wrong, and wrong ones that
    became right, among texts with a gold label.
    """

    rewrite: str
    task: str
    cell: str
    n: int
    flips: Measured
    change: Measured
    n_broken: int
    n_mended: int
    control: Comparison | None

    @property
    def is_worse_than_control(self) -> bool:
        """Whether more answers flip, or the probability falls further, than under the control."""
        if self.control is None:
            return False
        flips, change = self.control.flip_difference, self.control.change_difference
        return any(
            (
                flips is not None and flips.is_significant and flips.value > 0,
                change is not None and change.is_significant and change.value < 0,
            )
        )


@dataclass(frozen=True)
class VarietyRow:
    """All features that eWAVE calls common in a variety, pooled: share of flips, less controls.

    Intervals draw whole texts, since a text comes under many rewrites.
    """

    variety: str
    task: str
    n_rewrites: int
    n: int
    flips: Measured
    difference: Measured


@dataclass(frozen=True)
class StressResult:
    """A whole stress test. examples: for each rewrite a text before, after, and its control."""

    model: str
    data: str
    seed: int
    n_texts: int
    rows: tuple[StressRow, ...]
    varieties: tuple[VarietyRow, ...]
    examples: Mapping[str, tuple[str, str, str | None]]
    not_applied: tuple[str, ...]

    def __repr__(self) -> str:
        return one_line(self, model=self.model, data=self.data, n_rows=len(self.rows))

    def overall(self, task: str) -> list[StressRow]:
        """The rows of all texts, the most flips first."""
        rows = [row for row in self.rows if row.cell == ALL and row.task == task]
        return sorted(rows, key=lambda row: (-row.flips.value, row.change.value, row.rewrite))

    def tasks(self) -> list[str]:
        return list(dict.fromkeys(row.task for row in self.rows))

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
