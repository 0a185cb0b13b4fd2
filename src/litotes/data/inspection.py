"""A look at somebody's table: which column holds the texts, which the labels, and what else.

text     the column whose cells have the most words, hardly any of them twice
label    a column with few different words, best one that is called like a label
split    a column that holds nothing but names of splits
compare  another column with few different words, filled in everywhere: regions, shops
ids      columns in which no cell is there twice
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from math import isfinite
from pathlib import Path

from litotes.core.errors import UserError
from litotes.data.corpus import SPLIT_WORDS
from litotes.data.tables import column_names, read_rows
from litotes.data.tables.rows import require_columns

MAX_ROWS = 20_000
"""So many rows tell what a column holds."""

MAX_CLASSES = 20
_MIN_WORDS = 2.0  # of a text, on average
_MIN_PER_PART = 10  # texts of a part that may be compared with others

_LABEL_NAMES = """
label labels class category target gold annotation sentiment polarity mood emotion feeling tone
attitude sarcasm sarcastic irony ironic rating ratings stars score intent topic y
"""
_PART_NAMES = """
variety region country state area dialect locale language lang source platform site channel shop
store brand product domain market year
"""


@dataclass
class ColumnFacts:
    """The content of a column, as far as it was read."""

    name: str
    n_rows: int = 0
    n_words: int = 0
    values: Counter[str] = field(default_factory=Counter)

    def add(self, value: str) -> None:
        self.n_rows += 1
        word = value.strip()
        if word.casefold() not in ("", "nan"):
            self.n_words += len(word.split())
            self.values[word] += 1

    @property
    def n_filled(self) -> int:
        return self.values.total()

    @property
    def words_a_cell(self) -> float:
        return self.n_words / max(self.n_filled, 1)

    @property
    def are_numbers(self) -> bool:
        try:
            return all(isfinite(float(value)) for value in self.values)
        except ValueError:
            return False

    @property
    def are_different(self) -> bool:
        """Hardly any value is there twice."""
        return len(self.values) > 0.9 * self.n_filled > 1

    @property
    def are_few(self) -> bool:
        return 2 <= len(self.values) <= min(MAX_CLASSES, self.n_filled / 2)

    @property
    def are_splits(self) -> bool:
        splits = {SPLIT_WORDS.get(value.casefold()) for value in self.values}
        return len(splits) > 1 and None not in splits and "train" in splits

    def is_called(self, names: str) -> bool:
        return self.name.casefold() in names.split()

    def describe(self) -> str:
        """The column in a few words."""
        if self.are_few:
            shown = ", ".join(sorted(self.values)[:6])
            return f"{self.name} ({shown}{', …' if len(self.values) > 6 else ''})"
        return f"{self.name} ({len(self.values)} different, {self.words_a_cell:.0f} words a cell)"


@dataclass(frozen=True)
class TableFacts:
    """The apparent content of a table; None: no such column.

    n_rows: as far as it was read (MAX_ROWS). ids: columns that tell rows apart.
    """

    path: Path
    n_rows: int
    text: ColumnFacts
    label: ColumnFacts
    split: ColumnFacts | None
    compare: ColumnFacts | None
    ids: tuple[str, ...]

    @property
    def is_number(self) -> bool:
        """True if the label is a number to predict rather than a class."""
        return not self.label.are_few and self.label.are_numbers


def inspect_table(path: Path, *, text: str | None = None, label: str | None = None) -> TableFacts:
    """text, label: the names of these columns, where the user has said them."""
    columns = _read_columns(path)
    texts = _find_text(path, columns, text)
    others = [column for column in columns if column.name != texts.name]
    split = next((column for column in others if column.are_splits), None)
    labels = _find_label(path, [column for column in others if column is not split], label)
    rest = [column for column in others if column not in (split, labels)]
    ids = tuple(column.name for column in rest if column.are_different and column.n_filled > 2)
    return TableFacts(path, texts.n_rows, texts, labels, split, _find_compare(rest), ids)


def _read_columns(path: Path) -> list[ColumnFacts]:
    columns = {}
    for name in filter(None, column_names(path)):
        with suppress(UserError):  # it holds lists, tables or dates, and no texts or numbers
            next(read_rows(path, needs=[name]))
            columns[name] = ColumnFacts(name)
    for row in islice(read_rows(path, needs=columns), MAX_ROWS):
        if row.problem is None:
            for name, column in columns.items():
                column.add(row.values[name])
    return list(columns.values())


def find_text_column(path: Path) -> str | None:
    """The name of the column that looks like texts, if one does."""
    found = _likely_text(_read_columns(path))
    return None if found is None else found.name


def _likely_text(columns: Sequence[ColumnFacts]) -> ColumnFacts | None:
    likely = [column for column in columns if column.words_a_cell >= _MIN_WORDS]
    likely = [column for column in likely if not column.are_few and not column.are_numbers]
    return max(likely, key=lambda column: column.words_a_cell, default=None)


def _find_text(path: Path, columns: Sequence[ColumnFacts], name: str | None) -> ColumnFacts:
    if name is not None:
        return _named(path, columns, name)
    likely = _likely_text(columns)
    if likely is None:
        raise UserError(
            f"{path}: no column looks like texts. It has {_all(columns)}. Say which holds them:"
            " --text COLUMN."
        )
    return likely


def _find_label(path: Path, columns: Sequence[ColumnFacts], name: str | None) -> ColumnFacts:
    if name is not None:
        return _named(path, columns, name)
    named = [column for column in columns if column.is_called(_LABEL_NAMES)]
    likely = [column for column in named if column.are_few or column.are_numbers]
    if not likely:
        few = [column for column in columns if column.are_few]
        likely = [column for column in few if not column.is_called(_PART_NAMES)]
    if len(likely) == 1:
        return likely[0]
    if likely:
        seen = f"{len(likely)} columns may be the labels: {_all(likely)}"
    else:
        seen = f"no column looks like labels. It has {_all(columns) or 'no other column'}"
    raise UserError(f"{path}: {seen}. Say which holds them: --label COLUMN.")


def _find_compare(columns: Sequence[ColumnFacts]) -> ColumnFacts | None:
    """A column to compare by: with a usual name, else the first that will do."""
    likely = [
        column
        for column in columns
        if column.are_few
        and column.n_filled == column.n_rows
        and min(column.values.values()) >= _MIN_PER_PART
    ]
    called = [column for column in likely if column.is_called(_PART_NAMES)]
    words = [column for column in likely if not column.are_numbers]
    return next(iter([*called, *words]), None)


def _named(path: Path, columns: Sequence[ColumnFacts], name: str) -> ColumnFacts:
    known = {column.name: column for column in columns}
    require_columns(str(path), known, [name])
    return known[name]


def _all(columns: Iterable[ColumnFacts]) -> str:
    return "; ".join(column.describe() for column in columns)
