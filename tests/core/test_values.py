"""What flows between the stages, as notebooks and consoles show it; names and numbers as text."""

from __future__ import annotations

import sys

import pytest

from litotes.core.numbers import format_signed
from litotes.core.registry import LazyTable
from litotes.core.text import guard_formula, harmless, markdown
from litotes.core.values import Answer, Prediction

MOODS = {"angry": 0.412345, "<b>calm": 0.3654321, "content": 0.2222229}
TWO = {"literal": 0.9, "sarcastic": 0.1}


@pytest.mark.parametrize(
    ("prediction", "shown", "hidden"),
    [
        (
            Prediction("<script> \u202e", {"sarcasm": Answer("<i>yes", 0.876)}, truncated=True),
            [
                ">&lt;script&gt; ‹U+202E›<",
                "<th>sarcasm</th><td>&lt;i&gt;yes</td><td>87.6%</td>",
                "the end of the text was not read",
            ],
            ["<script>", "unreadable", "<progress"],
        ),
        (
            Prediction("🫨", {"warmth": Answer(-0.0001, None)}, truncated=False, unreadable=True),
            [
                "<th>warmth</th><td>0.000</td><td></td>",  # a rounded zero has no sign
                "unreadable: the model knows no part of it",
            ],
            ["not read"],
        ),
        (
            Prediction("tea", {"mood": Answer("angry", 0.412345, MOODS)}, truncated=False),
            [
                f"<td>{label}</td><td>{share}</td><td><progress"
                for label, share in (("angry", "41.2%"), ("&lt;b&gt;calm", "36.5%"))
            ],
            [],
        ),
        (
            Prediction("tea", {"sarcasm": Answer("literal", 0.9, TWO)}, truncated=False),
            ["90.0%"],
            ["<progress"],
        ),
        (
            Prediction("", {}, truncated=False, problem="Text 3 is <empty>."),
            ["(Text 3 is &lt;empty&gt;.)"],
            [],
        ),
    ],
)
def test_a_notebook_shows_a_prediction(
    prediction: Prediction, shown: list[str], hidden: list[str]
) -> None:
    page = prediction._repr_html_()
    assert [part for part in shown if part not in page] == []
    assert [part for part in hidden if part in page] == []


def test_a_prediction_is_printed_on_a_line() -> None:
    answers = {"mood": Answer("angry", 0.412345, MOODS), "warmth": Answer(-1.23456, None)}
    assert repr(answers["mood"]) == (
        "Answer(label='angry', probability=0.412,"
        " probabilities={'angry': 0.412, '<b>calm': 0.365, 'content': 0.222})"
    )
    assert repr(answers["warmth"]) == "Answer(label=-1.235)"
    shown = repr(Prediction("word " * 5000, answers, truncated=True))
    assert shown.startswith("Prediction(text='word word")
    assert "…', answers={'mood': 'angry 0.412', 'warmth': '-1.235'}, truncated=True)" in shown
    assert len(shown) <= 200
    many = {f"label {n}": 0.01 for n in range(100)}
    assert len(repr(Answer("label 1", 0.01, many))) <= 200
    bad = repr(Prediction("\n\u202e", {}, truncated=False, problem="It is blank."))
    assert bad == r"Prediction(text='\n\u202e', answers={}, problem='It is blank.')"


def test_what_steers_is_made_visible() -> None:
    steering, family = "a\x1b[2Jb\n\u202ec", "\U0001f469\u200d\U0001f527"
    assert harmless(steering) == "a‹U+001B›[2Jb\n‹U+202E›c"
    assert harmless(steering, in_terminal=True) == "a·[2Jb ·c"
    assert harmless("\ud800") == "‹U+D800›"
    assert harmless(family) == harmless(family, in_terminal=True) == family
    assert markdown("<b> [a](http://x) | *b*\n# c") == r"&lt;b&gt; \[a\](http\://x) \| \*b\* \# c"
    assert markdown("en-AU") == "en-AU"
    for cell in ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"):
        assert guard_formula(cell) == f"'{cell}"
    for cell in ("", "tea", "1-1", "'=1", " =1"):
        assert guard_formula(cell) == cell


def test_what_rounds_to_zero_is_not_negative() -> None:
    for value in (0.0, -0.0, 0.0004, -0.0004, -1e-12):
        assert format_signed(value, 3) == "+0.000"
        assert format_signed(value, 3, minus="−", plus="") == "0.000"
    assert format_signed(-0.0006, 3) == "-0.001"
    assert format_signed(-12.34, 1, minus="−") == "−12.3"
    assert format_signed(12.34, 1) == "+12.3"
    assert format_signed(12.34, 1, plus="") == "12.3"


def test_names_of_a_lazy_table_are_known_before_anything_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "json.tool", raising=False)
    table: LazyTable[object] = LazyTable("json", {"tool": "tool.main", "mine": "decoder.scanner"})
    assert list(table) == ["tool", "mine"]
    assert "json.tool" not in sys.modules
    assert callable(table["tool"])
    table["mine"] = 1
    assert list(table.values()) == [table["tool"], 1]
    del table["mine"]
    with pytest.raises(KeyError):
        table["mine"]
