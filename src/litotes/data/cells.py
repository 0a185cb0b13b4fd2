"""Cells: a variety as one source writes it, which is what scores are compared between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from litotes.core.values import Example

Axis = Literal["variety", "source", "cell"]
"""What examples are grouped by."""


@dataclass(frozen=True)
class Cell:
    """A variety as one source writes it."""

    variety: str | None
    source: str | None

    def __str__(self) -> str:
        return " ".join(part for part in (self.variety, self.source) if part is not None) or "all"


def cell_of(example: Example) -> Cell:
    """The cell an example belongs to."""
    return Cell(example.variety, example.source)


def cell_order(cell: Cell) -> tuple[str, str]:
    """Sorts cells by variety, then by source."""
    return cell.variety or "", cell.source or ""


def name_along(example: Example, axis: Axis) -> str:
    """The name of an example's variety, source or cell; "all" where it has none."""
    cell = cell_of(example)
    return str(cell) if axis == "cell" else getattr(cell, axis) or "all"
