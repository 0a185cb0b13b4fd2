"""Answers of a run that cannot be are refused when they are read back."""

from __future__ import annotations

from typing import Any

import pytest

from litotes.core.json_text import parse_as
from litotes.study.runs import _Answers

PART: dict[str, Any] = {
    "labels": ["negative", "positive"],
    "texts": "a hash",
    "gold": [0, 1],
    "answers": [1, 1],
    "probability": [0.5, 1.0],
}


@pytest.mark.parametrize(
    "change",
    [
        {"probability": [0.5, 1.5]},
        {"probability": [0.5]},
        {"probability": [-0.1, 0.5]},
        {"answers": [1, 2]},
        {"answers": [-1, 0]},
        {"gold": [0]},
    ],
    ids=str,
)
def test_answers_that_cannot_be(change: dict[str, Any]) -> None:
    parse_as(_Answers, {"test": None, "columns": {"all": {"sentiment": PART}}})
    with pytest.raises(ValueError, match=r"answer|probability"):
        parse_as(_Answers, {"test": None, "columns": {"all": {"sentiment": PART | change}}})
