"""Cells: a variety as one source writes it, which is what scores are compared between."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from litotes.core.values import Example

Axis = Literal["variety", "source", "cell"]
"""What examples are grouped by."""


ALL = "all"
"""The name of all texts together."""
NAMELESS = "without a name"
"""That of texts without a variety or source among others that have one."""


@dataclass(frozen=True)
class Cell:
    """A variety as one source writes it."""

    variety: str | None
    source: str | None

    def __str__(self) -> str:
        return " ".join(part for part in (self.variety, self.source) if part is not None) or ALL


def cell_of(example: Example) -> Cell:
    """The cell an example belongs to."""
    return Cell(example.variety, example.source)


def cell_order(cell: Cell) -> tuple[str, str]:
    """Sorts cells by variety, then by source."""
    return cell.variety or "", cell.source or ""


def name_along(example: Example, axis: Axis) -> str:
    """The name of an example's variety, source or cell; "all" where it has none."""
    cell = cell_of(example)
    return str(cell) if axis == "cell" else getattr(cell, axis) or ALL


class ColumnNames:
    """What the columns of a table over these examples are called: as `name_along`, but that texts
    without a name among others are not called all of them.
    """

    def __init__(self, examples: Iterable[Example], axis: Axis) -> None:
        self.axis = axis
        self._is_mixed = len({name_along(example, axis) for example in examples}) > 1

    def name(self, example: Example) -> str:
        name = name_along(example, self.axis)
        return NAMELESS if self._is_mixed and name == ALL else name
