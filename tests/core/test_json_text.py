"""JSON as its standard has it, and values of a type read from it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from litotes.core.errors import UserError
from litotes.core.json_text import from_json, parse_as, read_as, to_json


def test_what_is_not_finite_is_null_and_refused_when_read() -> None:
    for number in (inf, -inf, nan):
        content = {"a": [number, 1.5], "b": {"c": (number,)}}
        assert json.loads(to_json(content)) == {"a": [None, 1.5], "b": {"c": [None]}}
    for text in ("NaN", "[Infinity]", '{"a": -Infinity}', "1e999", "[" * 100_000):
        with pytest.raises(ValueError, match=r"not JSON|too large|nested"):
            from_json(text)


@pytest.mark.parametrize(
    "text", ["\x1b[31m", "\x7f\x9b2J", "\u202eturned\u2028", "\ud800", "\U000e0041", 'a"b\\c\n']
)
def test_steering_characters_are_escaped_and_come_back(text: str) -> None:
    written = to_json({text: text})
    assert written.isprintable()
    assert json.loads(written) == from_json(written) == {text: text}
    plain = '{"text": "naïve ☕ \U0001f469\u200d\U0001f527"}'
    assert to_json(from_json(plain)) == plain
    assert to_json([1], indent=2) == "[\n  1\n]"


@dataclass(frozen=True)
class Inner:
    share: float


@dataclass(frozen=True)
class Outer:
    n: int
    inner: tuple[Inner, ...]
    word: str = "tea"


GOOD = {"n": 1, "inner": [{"share": 0.5}, {"share": 1}]}
WRONG: tuple[dict[str, Any], ...] = (
    {"n": "1"},
    {"n": True},
    {"n": None},
    {"n": 1.5},
    {"inner": {}},
    {"inner": [{"share": "much"}]},
    {"word": "\ud800"},
    {"wrod": "tea"},
)


@pytest.mark.parametrize("content", [None, [], "tea", {}, *(GOOD | one for one in WRONG)])
def test_what_does_not_fit_is_a_value_error(content: Any) -> None:
    assert parse_as(Outer, GOOD) == Outer(1, (Inner(0.5), Inner(1)))
    with pytest.raises(ValueError, match=r"\w"):
        parse_as(Outer, content)


@pytest.mark.parametrize("content", ["", "[", "[NaN]", '{"n": 1}', "\ufeff{}"])
def test_a_damaged_file_is_a_sentence(content: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(content, "utf-8")
    with pytest.raises(UserError, match=r"a\.json: damaged \(.+\)\. Make it again\."):
        read_as(tmp_path / "a.json", Outer, advice="Make it again.")
