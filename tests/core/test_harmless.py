from __future__ import annotations

from litotes.core.harmless import harmless, markup

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
