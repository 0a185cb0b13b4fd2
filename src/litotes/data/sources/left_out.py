"""Rows of a table that cannot be used: counted, and named in one note."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from litotes.core.errors import UserError
from litotes.data.tables.rows import Row

_N_NAMED = 5


@dataclass
class LeftOut:
    """The rows that were left out, by the column that is empty; "" where a row has another fault.

    counts: how many; places: the first few. first: what is wrong with the first row, with its
    place.
    """

    counts: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[Row]] = field(default_factory=dict)
    first: str = ""
    first_fault: str = ""

    def add(self, row: Row, empty: str | None, error: UserError) -> None:
        """empty: the empty column that is to blame, if one is."""
        self.first = self.first or str(error)
        if empty is None:
            self.first_fault = self.first_fault or str(error)
        self.counts[empty or ""] += 1
        named = self.places.setdefault(empty or "", [])
        if len(named) < _N_NAMED:
            named.append(row)

    def notes(self, name: str, n_rows: int) -> tuple[str, ...]:
        """The note about them; none where every row was used."""
        n_bad = self.counts.total()
        if not n_bad:
            return ()
        reasons = []
        for column, rows in self.places.items():
            what = f"{column!r} is empty" if column else "a cell cannot be read"
            n = self.counts[column]
            reasons.append(f"{what} in {n} ({_lines(rows, n)})")
        were = "was" if n_bad == 1 else "were"
        fault = f" The first that cannot be read: {self.first_fault}" if self.first_fault else ""
        return (
            f"{name}: {n_bad} of {n_rows} rows {were} left out: {', '.join(reasons)}.{fault} To"
            " stop at such a row instead, add bad=stop to the source.",
        )


def _lines(rows: list[Row], n: int) -> str:
    """rows: the first of n."""
    numbers = [str(row.number) for row in rows]
    plural = "s" if n > 1 else ""
    more = f" and {n - len(rows)} more" if n > len(rows) else ""
    return f"{rows[0].unit}{plural} {', '.join(numbers)}{more}"
