"""What flows between the stages, as notebooks show it."""

from __future__ import annotations

from litotes.core.values import Answer, Prediction


def test_a_notebook_shows_a_prediction_escaped() -> None:
    answers = {
        "sarcasm": Answer("<i>sarcastic", 0.876),
        "warmth": Answer(-0.0001, None),
    }
    shown = Prediction("<script>alert(1)</script> \u202e", answers, truncated=True)._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt; ‹U+202E›</caption>" in shown
    assert "<th>sarcasm</th><td>&lt;i&gt;sarcastic</td><td>87.6%</td>" in shown
    assert "<th>warmth</th><td>0.000</td><td></td>" in shown  # a rounded zero has no sign
    assert "the end of the text was not read" in shown
    assert "not read" not in Prediction("tea", answers, truncated=False)._repr_html_()


def test_a_notebook_shows_that_a_text_is_unreadable() -> None:
    answers = {"sarcasm": Answer("literal", 0.91)}
    note = "unreadable: the model knows no part of it"
    assert note in Prediction("🫨", answers, truncated=False, unreadable=True)._repr_html_()
    assert "unreadable" not in Prediction("tea", answers, truncated=False)._repr_html_()
