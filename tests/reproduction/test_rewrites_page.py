"""The reference of rewrites says what the rules do, and every rule was read."""

from __future__ import annotations

import json

from litotes.data.rewrites import REWRITES
from reproduction.rewrites_page import JUDGED, PAGE, page


def test_the_page_is_what_the_table_says() -> None:
    assert PAGE.read_text("utf-8") == page(), "write it with: python -m reproduction.rewrites_page"


def test_every_rule_was_read() -> None:
    judged = json.loads(JUDGED.read_text("utf-8"))
    assert set(judged) == set(REWRITES)
    for good, read in judged.values():
        assert 0 <= good <= read
        assert read >= 1
