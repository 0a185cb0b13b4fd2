"""The reader agrees with the library on everything that a request can be."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litotes.service.flat_json import NotJson, TooManyItems, WrongShape, read_flat_object

STRINGS = st.text(st.characters(codec="utf-8"), max_size=20)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
ITEMS = STRINGS | st.booleans() | st.none() | NUMBERS
VALUES = st.one_of(STRINGS, st.booleans(), st.none(), st.lists(ITEMS, max_size=5))
DOCUMENTS = st.dictionaries(STRINGS, VALUES, max_size=8)


@given(DOCUMENTS, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_flat_objects_are_read_as_the_library_reads_them(
    document: dict[str, Any], is_ascii: bool, indent: int | str | None
) -> None:
    body = json.dumps(document, ensure_ascii=is_ascii, indent=indent).encode()
    assert read_flat_object(body, max_items=5) == document


@given(st.binary(max_size=40) | st.text(string.printable + '{}[]":,', max_size=40).map(str.encode))
def test_nothing_is_read_that_the_library_does_not_read(body: bytes) -> None:
    try:
        found = read_flat_object(body, max_items=3)
    except (NotJson, WrongShape, TooManyItems):
        return
    assert found == json.loads(body)


@given(DOCUMENTS.filter(bool), st.data())
def test_half_an_object_is_not_json(document: dict[str, Any], data: st.DataObject) -> None:
    body = json.dumps(document).encode()
    half = body[: data.draw(st.integers(1, len(body) - 1))]
    with pytest.raises((NotJson, TooManyItems)):
        read_flat_object(half, max_items=5)


@pytest.mark.parametrize(
    ("body", "kind", "place"),
    [
        (b"[1]", "model_attributes_type", ()),
        (b'"text"', "model_attributes_type", ()),
        (b'{"text": 1}', "flat_type", ("text",)),
        (b'{"text": {}}', "flat_type", ("text",)),
        (b'{"text": NaN}', "flat_type", ("text",)),
        (b'{"texts": ["a", {}]}', "string_type", ("texts", 1)),
        (b'{"texts": [[]]}', "string_type", ("texts", 0)),
    ],
)
def test_other_shapes(body: bytes, kind: str, place: tuple[str | int, ...]) -> None:
    with pytest.raises(WrongShape) as raised:
        read_flat_object(body, max_items=5)
    assert (raised.value.kind, raised.value.place) == (kind, place)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"a"}',
        b'{"a": "b",}',
        b'{"a": ["b",]}',
        b'{"a": ["b", 01]}',
        b'{"a": [NaN]}',
        b'{"a": [-Infinity]}',
        b'{"a": "b"} x',
        b"{'a': 'b'}",
        b"\xff",
    ],
)
def test_what_is_not_json(body: bytes) -> None:
    with pytest.raises(NotJson):
        read_flat_object(body, max_items=5)


def test_a_list_is_read_no_further_than_allowed() -> None:
    with pytest.raises(TooManyItems) as raised:
        read_flat_object(b'{"texts": ["a", "b", "c", 1, 2, and so on', max_items=3)
    assert raised.value.key == "texts"
