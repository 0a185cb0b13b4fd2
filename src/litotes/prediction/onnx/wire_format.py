"""A careful reader of protobuf's wire format, in which ONNX files are written, for untrusted files.

    message = field*
    field   = varint(number · 8 + wire), then by wire:
              0 a varint      2 a varint length and that many bytes      5 four bytes

A message is read by its `Kind`: the fields that may be there. Everything else is refused, and so is
a second value of a field that has one (protobuf would merge the two, and what was checked would not
be what is used). Nothing is copied but short texts: a message inside another is a view of the same
bytes. Each problem is a `ValueError` that says what is wrong, for the caller to make a sentence of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

_VARINT, _BYTES, _FOUR_BYTES = 0, 2, 5
MOST_FIELDS = 1_000_000
"""Of a whole file, so that the time to read it is bounded: twelve layers take some ten thousand."""
LONGEST_TEXT = 1 << 20
"""Bytes of a name or a fact."""


@dataclass(frozen=True)
class Field:
    """One that a message may have, once or repeatedly. wire: how its value is written."""

    name: str
    repeats: bool = False
    wire: ClassVar[int]


class Number(Field):
    """A whole number, signed, 64 bits."""

    wire = _VARINT


class Float(Field):
    """A float32, whose value is not needed here."""

    wire = _FOUR_BYTES


class Text(Field):
    """UTF-8 that can be printed."""

    wire = _BYTES


class Bytes(Field):
    """Another message, or raw numbers: a view."""

    wire = _BYTES


@dataclass(frozen=True)
class Kind:
    """A kind of message: the fields that may be there, by number, and the names of some that may
    not.
    """

    name: str
    fields: Mapping[int, Field]
    refused: Mapping[int, str] = field(default_factory=dict)


class WireReader:
    """Reads the messages of one file and counts their fields."""

    def __init__(self) -> None:
        self._n_fields = 0

    def read(self, message: memoryview, kind: Kind) -> dict[str, list[Any]]:
        """The values of a message by the names of its fields; a name is always there, with no
        values if the message has none.
        """
        values: dict[str, list[Any]] = {known.name: [] for known in kind.fields.values()}
        place = 0
        while place < len(message):
            tag, place = _varint(message, place)
            known = _known_field(kind, tag)
            value, place = self._value(message, place, known)
            if values[known.name] and not known.repeats:
                raise ValueError(f"{kind.name} has two values for {known.name}")
            values[known.name].append(value)
        return values

    def _value(self, message: memoryview, place: int, known: Field) -> tuple[Any, int]:
        self._n_fields += 1
        if self._n_fields > MOST_FIELDS:
            raise ValueError(f"it has more than {MOST_FIELDS} fields")
        if isinstance(known, Number):
            number, place = _varint(message, place)
            return number - (1 << 64) * (number >> 63), place
        length, place = (4, place) if isinstance(known, Float) else _varint(message, place)
        n_left = len(message) - place
        if length > n_left:
            raise ValueError(
                f"{known.name} is said to have {length} bytes, of which {n_left} are there"
            )
        end = place + length
        value = message[place:end]
        return _text(value, known.name) if isinstance(known, Text) else value, end


def _known_field(kind: Kind, tag: int) -> Field:
    """The field that a tag announces, if messages of this kind may have it."""
    number, wire = tag >> 3, tag & 7
    known = kind.fields.get(number)
    if known is None:
        what = kind.refused.get(number, f"a field with the number {number}")
        raise ValueError(f"{kind.name} has {what}, which litotes never writes")
    if known.wire != wire:
        raise ValueError(f"the {known.name} of {kind.name} is of another type")
    return known


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first, at most 64 bits; and the place behind it."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(message):
            raise ValueError("it ends in the middle of a number")
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    else:
        raise ValueError("it has a number of more than ten bytes")
    if value >= 1 << 64:
        raise ValueError("it has a number of more than 64 bits")
    return value, place


def _text(value: memoryview, name: str) -> str:
    if len(value) > LONGEST_TEXT:
        raise ValueError(f"{name} is a text of {len(value)} bytes")
    try:
        text = str(value, "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not in UTF-8") from error
    if not text.isprintable():  # it may end up in a message, and a terminal would obey it
        raise ValueError(f"{name} has letters that cannot be printed")
    return text
