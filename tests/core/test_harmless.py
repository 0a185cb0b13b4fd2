from __future__ import annotations

import pytest

from litotes.core.text import guard_formula, harmless, markdown, markup

STEERING = "a\x1b[2Jb\n\u202ec"
FAMILY = "\U0001f469\u200d\U0001f527"


def test_what_steers_is_made_visible() -> None:
    assert harmless(STEERING) == "a‹U+001B›[2Jb\n‹U+202E›c"
    assert harmless(STEERING, in_terminal=True) == "a·[2Jb ·c"
    assert harmless("\ud800") == "‹U+D800›"


def test_joined_emoji_stay_joined() -> None:
    assert harmless(FAMILY) == FAMILY
    assert harmless(FAMILY, in_terminal=True) == FAMILY


def test_markup_stays_text() -> None:
    assert markup("<b>\u202e</b>") == "&lt;b&gt;‹U+202E›&lt;/b&gt;"


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_cell_never_begins_a_formula(cell: str) -> None:
    assert guard_formula(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["", "tea", "1-1", "'=1", " =1"])
def test_other_cells_stay_as_they_are(cell: str) -> None:
    assert guard_formula(cell) == cell


def test_markdown_stays_text() -> None:
    assert markdown("<b> [a](http://x) | *b*\n# c") == (r"&lt;b&gt; \[a\](http\://x) \| \*b\* \# c")
    assert markdown("en-AU") == "en-AU"
