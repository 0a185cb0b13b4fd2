"""Thirty sentences are asked of the built-in model."""

from __future__ import annotations

import pytest

from reproduction.thirty_sentences import DEFAULT, TRIED, main

pytestmark = pytest.mark.slow


def test_it_is_asked_about_every_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    main(DEFAULT)
    head, _, *rows, counts = capsys.readouterr().out.splitlines()
    assert head == "| sentence | a person | `builtin` |"
    assert [row.split(" | ")[0] for row in rows] == [f"| {tried.text}" for tried in TRIED]
    assert "'builtin': '25 of 30" in counts
