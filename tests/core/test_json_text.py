from __future__ import annotations

import json
from math import inf, nan

import pytest

from litotes.core.json_text import from_json, to_json


@pytest.mark.parametrize("number", [inf, -inf, nan])
def test_what_is_not_finite_is_null(number: float) -> None:
    content = {"a": [number, 1.5], "b": {"c": (number,)}}
    assert json.loads(to_json(content)) == {"a": [None, 1.5], "b": {"c": [None]}}


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}', "1e999", "[" * 100_000])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not JSON|too large|nested"):
        from_json(text)


@pytest.mark.parametrize(
    "text", ["\x1b[31m", "\x7f\x9b2J", "\u202eturned\u2028", "\ud800", "\U000e0041", 'a"b\\c\n']
)
def test_steering_characters_are_escaped_and_come_back(text: str) -> None:
    written = to_json({text: text})
    assert written.isprintable()
    assert json.loads(written) == from_json(written) == {text: text}


def test_other_characters_are_written_as_they_are() -> None:
    assert to_json({"text": "naïve ☕ \U0001f469\u200d\U0001f527"}) == (
        '{"text": "naïve ☕ \U0001f469\u200d\U0001f527"}'
    )
    assert to_json([1], indent=2) == "[\n  1\n]"
