"""One row of a table: values that know where they stand, so that errors can name the place."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite

from litotes.core.errors import UserError
from litotes.core.registry import unknown_name
from litotes.core.text import is_utf8
from litotes.data.tables.files import MAX_CHARS, too_long

_NO_TEXT = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Row:
    """One record of a table: its values by column, as text, and where it stands.

    found: the values as they were, where the file has more types than text (JSON, Parquet); also
    those of columns that nobody needs as text. problem: why the row cannot be used; its values are
    then what could be made out.
    """

    file: str
    number: int
    values: Mapping[str, str]
    unit: str = "line"
    found: Mapping[str, object] = field(default_factory=dict)
    problem: str | None = None

    def at(self, column: str) -> str:
        """Where the value of a column stands, for error messages."""
        return f"{self.file}, {self.unit} {self.number}, column {column!r}"

    def value(self, column: str) -> object:
        """What a column holds, of the type it has in the file; None where the row has no such."""
        return self.found.get(column, self.values.get(column))

    def text(self, column: str) -> str:
        """The text in a column, which must not be empty."""
        if self.problem is not None:
            raise UserError(self.problem)
        text = self.values[column]
        if not text.strip():
            raise UserError(f"{self.at(column)} is empty: give the row a text, or take it out.")
        if len(text) > MAX_CHARS:
            raise UserError(too_long(self.at(column)))
        check_characters(text, self.at(column))
        return text

    def word(self, column: str) -> str | None:
        """The word in a column; None where it is empty, absent or NaN."""
        word = self.values.get(column, "").strip()
        return None if word.casefold() in ("", "nan") else word

    def require_word(self, column: str, known: Collection[str] = ()) -> str:
        """The word in a column that must have one."""
        if (word := self.word(column)) is None:
            wanted = f"give it one of {', '.join(known)}" if known else "fill it in"
            raise UserError(f"{self.at(column)} is empty: {wanted}, or take the row out.")
        return word

    def as_number(self, column: str) -> float:
        """The number in a column that must have one."""
        word = self.require_word(column)
        try:
            number = float(word)
        except ValueError:
            number = inf
        if not isfinite(number):
            raise UserError(
                f"{self.at(column)}: {word!r} is not a number. Mend it, or take the row out."
            )
        return number

    def translate(self, column: str, words: Mapping[str, str], kind: str = "label") -> str:
        """What the word in a column stands for; the keys of `words` are in lower case."""
        word = self.word(column)
        if word is not None and word.casefold() in words:
            return words[word.casefold()]
        known = []
        for spelling, meaning in words.items():
            # in the case that the meaning has, where the two differ in nothing else
            known.append(meaning if meaning.casefold() == spelling else spelling)
        known.sort()
        found = self.require_word(column, known)
        raise UserError(f"{self.at(column)}: {unknown_name(found, known, kind)}")


def require_columns(place: str, columns: Collection[str], needs: Collection[str]) -> None:
    """Refuses a table that lacks a column, naming those it has."""
    for column in needs:
        if column not in columns:
            raise UserError(f"{place}: {unknown_name(column, filter(None, columns), 'column')}")


def check_characters(text: str, place: str) -> None:
    """Refuses what JSON can spell and nothing can store."""
    if not _is_storable(text):
        raise UserError(
            f"{place} holds a NUL or half a surrogate pair, which is not text: take it out."
        )


def character_problem(fields: Iterable[str], place: str) -> str | None:
    """What is wrong with the bytes that these fields were read from, leniently."""
    if all(map(_is_storable, fields)):
        return None
    return f"{place} holds a NUL or bytes that are not UTF-8 text. Save it as UTF-8."


def replace_characters(text: str) -> str:
    """The text with a replacement mark for all that is no text, so that it can be written."""
    return text if _is_storable(text) else _NO_TEXT.sub("\ufffd", text)


def _is_storable(text: str) -> bool:
    return "\0" not in text and is_utf8(text)


def as_text(value: object, place: str) -> str:
    """A value of a JSON or Parquet cell as the text a CSV file would hold."""
    if value is None or value != value:  # only NaN differs from itself
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        text = str(value)
        check_characters(text, place)
        return text
    raise UserError(f"{place} holds a {type(value).__name__}: make it a text or a number.")
