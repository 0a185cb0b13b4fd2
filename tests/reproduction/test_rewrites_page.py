"""The reference of rewrites has a row for every rule, and every rule was read."""

from __future__ import annotations

import json

from litotes.data.rewrites import REWRITES
from reproduction.rewrites_page import JUDGED, page


def test_the_page_has_a_row_for_every_rule() -> None:
    judged = json.loads(JUDGED.read_text("utf-8"))
    rows = [line for line in page().splitlines() if line.startswith("| `")]
    assert len(rows) == len(REWRITES)
    for row, name in zip(rows, REWRITES, strict=True):
        good, read = judged[name]
        assert row.startswith(f"| `{name}` |")
        assert row.endswith(f"| {good}/{read} |")


def test_every_rule_was_read() -> None:
    judged = json.loads(JUDGED.read_text("utf-8"))
    assert set(judged) == set(REWRITES)
    for good, read in judged.values():
        assert 0 <= good <= read
        assert read >= 1
