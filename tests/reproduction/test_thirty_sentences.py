"""Two editions of the built-in model side by side."""

from __future__ import annotations

import pytest

from reproduction.thirty_sentences import DEFAULT, TRIED, main

pytestmark = pytest.mark.slow


def test_both_are_asked_about_every_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    main(DEFAULT)
    head, _, *rows, counts = capsys.readouterr().out.splitlines()
    assert head == "| sentence | a person | `builtin@1` | `builtin` |"
    assert [row.split(" | ")[0] for row in rows] == [f"| {tried.text}" for tried in TRIED]
    assert "'builtin@1': '15 of 30" in counts
