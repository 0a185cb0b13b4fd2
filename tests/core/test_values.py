"""What flows between the stages, as notebooks show it."""

from __future__ import annotations

from litotes.core.values import Answer, Prediction


def test_a_notebook_shows_a_prediction_escaped() -> None:
    answers = {"sarcasm": Answer("<i>sarcastic", 0.876), "warmth": Answer(-0.0001, None)}
    shown = Prediction("<script>alert(1)</script> \u202e", answers, truncated=True)._repr_html_()
    assert "<script>" not in shown
    assert ">&lt;script&gt;alert(1)&lt;/script&gt; ‹U+202E›<" in shown
    assert "<th>sarcasm</th><td>&lt;i&gt;sarcastic</td><td>87.6%</td>" in shown
    assert "<th>warmth</th><td>0.000</td><td></td>" in shown  # a rounded zero has no sign
    assert "the end of the text was not read" in shown
    assert "not read" not in Prediction("tea", answers, truncated=False)._repr_html_()


def test_a_notebook_shows_that_a_text_is_unreadable() -> None:
    answers = {"sarcasm": Answer("literal", 0.91)}
    note = "unreadable: the model knows no part of it"
    assert note in Prediction("🫨", answers, truncated=False, unreadable=True)._repr_html_()
    assert "unreadable" not in Prediction("tea", answers, truncated=False)._repr_html_()


MOODS = {"angry": 0.412345, "<b>calm": 0.3654321, "content": 0.2222229}


def test_a_notebook_shows_every_one_of_three_labels() -> None:
    answers = {"mood": Answer("angry", 0.412345, MOODS)}
    shown = Prediction("tea", answers, truncated=False)._repr_html_()
    for label, share in (("angry", "41.2%"), ("&lt;b&gt;calm", "36.5%"), ("content", "22.2%")):
        assert f"<td>{label}</td><td>{share}</td><td><progress" in shown
    two = {"sarcasm": Answer("literal", 0.9, {"literal": 0.9, "sarcastic": 0.1})}
    assert "<progress" not in Prediction("tea", two, truncated=False)._repr_html_()


def test_a_notebook_shows_why_there_is_no_answer() -> None:
    shown = Prediction("", {}, truncated=False, problem="Text 3 is <empty>.")._repr_html_()
    assert "(Text 3 is &lt;empty&gt;.)" in shown


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
