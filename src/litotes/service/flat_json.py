"""Reads the JSON of a request: one object whose values are strings, true, false, null, or lists of
these and of numbers; in some lists a pair may stand for one of them.

The library reads a whole document before anyone can look at it: a megabyte of `[[],[],…]` takes it
a tenth of a second, in which nothing else is answered. This reader goes from left to right and
stops at the first thing that a request cannot have, so that reading takes no longer than copying.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NoReturn

FlatItem = str | bool | int | float | None
Item = FlatItem | list[FlatItem]
"""Of a list in which texts and pairs of texts may stand."""
FlatValue = str | bool | list[Item] | None

MOST_IN_PAIR = 2

_MAX_KEYS = 16
_MAX_CLASSIFIED = 4096
_BLANKS = re.compile(r"[ \t\n\r]*")
_CONSTANTS: tuple[tuple[str, bool | None], ...] = (("true", True), ("false", False), ("null", None))


class NotJson(Exception):
    """The body is not one JSON object in UTF-8."""


def _refuse_constant(name: str) -> NoReturn:
    raise NotJson(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
"""JSON has no NaN and no Infinity, although Python reads them."""


class WrongShape(Exception):
    """The body has something that no request can have.

    kind: in the words of pydantic. place: where, e.g. ("texts", 3); empty: the body itself.
    """

    def __init__(self, kind: str, *place: str | int) -> None:
        super().__init__()
        self.kind, self.place = kind, place


class TooManyItems(Exception):
    """A list is longer than allowed; it was not read to its end."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key


def read_flat_object(
    body: bytes, *, max_items: int, fewest_in_pair: Mapping[str, int] | None = None
) -> dict[str, FlatValue]:
    """max_items: the most items that a list may have.

    fewest_in_pair: for each key whose list may hold lists, how many items those have at least; at
    most they have MOST_IN_PAIR.
    """
    try:
        return _Reader(body.decode("utf-8-sig"), max_items, fewest_in_pair or {}).read()
    except UnicodeDecodeError as error:
        raise NotJson from error
    except WrongShape:
        _check_is_json(body)
        raise


def _check_is_json(body: bytes) -> None:
    """Tells a short body that is not JSON at all from one of another shape."""
    if len(body) > _MAX_CLASSIFIED:
        return
    try:
        json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NotJson from error


class _Reader:
    """A place in the text, which moves on with everything that is read."""

    def __init__(self, text: str, max_items: int, fewest_in_pair: Mapping[str, int]) -> None:
        self._text, self._max_items, self._at = text, max_items, 0
        self._fewest_in_pair = fewest_in_pair

    def read(self) -> dict[str, FlatValue]:
        self._skip_blanks()
        if not self._take("{"):
            if len(self._text) > _MAX_CLASSIFIED:
                raise NotJson
            raise WrongShape("model_attributes_type")
        found: dict[str, FlatValue] = {}
        if not self._take("}"):
            while True:
                key = self._string()
                self._expect(":")
                found[key] = self._value(key)
                if len(found) > _MAX_KEYS:
                    raise WrongShape("extra_forbidden")
                if self._take("}"):
                    break
                self._expect(",")
        if self._at != len(self._text):
            raise NotJson
        return found

    def _value(self, key: str) -> FlatValue:
        if self._next() == '"':
            return self._string()
        if self._take("["):
            return self._items(key)
        for written, value in _CONSTANTS:
            if self._take(written):
                return value
        if not self._next():
            raise NotJson
        raise WrongShape("flat_type", key)

    def _items(self, key: str) -> list[Item]:
        found: list[Item] = []
        if self._take("]"):
            return found
        while True:
            if len(found) == self._max_items:
                raise TooManyItems(key)
            if self._next() == "[" and key in self._fewest_in_pair:
                found.append(self._pair(key, len(found)))
            else:
                found.append(self._flat_item(key, len(found)))
            if self._take("]"):
                return found
            self._expect(",")

    def _pair(self, key: str, place: int) -> list[FlatItem]:
        self._expect("[")
        found: list[FlatItem] = []
        while self._next() != "]":
            if len(found) == MOST_IN_PAIR:
                raise self._wrong_length(key, place)
            found.append(self._flat_item(key, place))
            if self._next() == "]":
                break
            self._expect(",")
            if self._next() == "]":
                raise NotJson
        self._expect("]")
        if len(found) < self._fewest_in_pair[key]:
            raise self._wrong_length(key, place)
        return found

    def _wrong_length(self, key: str, place: int) -> WrongShape:
        is_always_two = self._fewest_in_pair[key] == MOST_IN_PAIR
        return WrongShape("pair_length" if is_always_two else "sides_length", key, place)

    def _flat_item(self, key: str, place: int) -> FlatItem:
        if self._next() in ("[", "{"):
            raise WrongShape("string_type", key, place)
        return self._scalar()

    def _string(self) -> str:
        if self._next() != '"':
            raise NotJson
        content = self._scalar()
        assert isinstance(content, str)
        return content

    def _scalar(self) -> FlatItem:
        """What does not begin a list or an object."""
        content: FlatItem
        try:
            content, self._at = _DECODER.raw_decode(self._text, self._at)
        except ValueError as error:
            raise NotJson from error
        self._skip_blanks()
        return content

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise NotJson

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, sign: str) -> bool:
        """Whether this comes next; then it, and the blanks behind it, have been read."""
        if not self._text.startswith(sign, self._at):
            return False
        self._at += len(sign)
        self._skip_blanks()
        return True

    def _skip_blanks(self) -> None:
        match = _BLANKS.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
