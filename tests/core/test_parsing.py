from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from litotes.core.errors import UserError
from litotes.core.json_text import parse_as, read_as


@dataclass(frozen=True)
class Inner:
    share: float


@dataclass(frozen=True)
class Outer:
    n: int
    inner: tuple[Inner, ...]
    word: str = "tea"


GOOD = {"n": 1, "inner": [{"share": 0.5}, {"share": 1}]}


def test_what_fits_is_parsed() -> None:
    assert parse_as(Outer, GOOD) == Outer(1, (Inner(0.5), Inner(1)))


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        "tea",
        {},
        GOOD | {"n": "1"},
        GOOD | {"n": True},
        GOOD | {"n": None},
        GOOD | {"n": 1.5},
        GOOD | {"inner": {}},
        GOOD | {"inner": [{"share": "much"}]},
        GOOD | {"word": "\ud800"},
        GOOD | {"wrod": "tea"},
    ],
)
def test_what_does_not_fit_is_a_value_error(content: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_as(Outer, content)


@pytest.mark.parametrize("content", ["", "[", "[NaN]", '{"n": 1}', "\ufeff{}"])
def test_a_damaged_file_is_a_sentence(content: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(content, "utf-8")
    with pytest.raises(UserError, match=r"a\.json: damaged \(.+\)\. Make it again\."):
        read_as(tmp_path / "a.json", Outer, advice="Make it again.")
