"""Marks of a model of words, drawn: joined where they touch, harmless whatever the text."""

from __future__ import annotations

from litotes.core.values import Stretch, WordAnswer, WordPrediction
from litotes.explanation.marked_words import marked_line, marked_page, marks_json, notes_of


def tagged(text: str, labels: tuple[str, ...], tags: str) -> WordPrediction:
    words, place = [], 0
    for word, tag in zip(text.split(), tags.split(), strict=True):
        start = text.index(word, place)
        place = start + len(word)
        words.append(WordAnswer(word, start, place, tag, 0.9))
    return WordPrediction(text, "locus", "tagging", labels, tuple(words))


def test_of_two_labels_the_second_is_marked_and_touching_words_are_one() -> None:
    found = tagged("a lovely  big queue", ("kept", "changed"), "kept changed changed kept")
    assert marked_line(found) == "a [lovely  big] queue"
    assert marks_json(found)["marks"] == [{"start": 2, "end": 13, "label": None}]
    everything = tagged("so so", ("kept", "changed"), "changed changed")
    assert marked_line(everything) == "[so so]"


def test_other_labels_are_named_word_by_word() -> None:
    found = tagged("two teas two", ("NUM", "NOUN", "X"), "NUM NOUN NUM")
    assert marked_line(found) == "[two NUM] [teas NOUN] [two NUM]"


def test_nothing_marked_is_said() -> None:
    found = tagged("a queue", ("kept", "changed"), "kept kept")
    assert marked_line(found) == "a queue"
    assert notes_of(found) == ["No word is marked."]


def test_a_span_and_its_sureness() -> None:
    words = (WordAnswer("a", 0, 1), WordAnswer("b", 2, 3))
    span = Stretch("b", 2, 3, 1, 2)
    found = WordPrediction("a b", "locus", "span", (), words, (span,), 0.625)
    assert marked_line(found) == "a [b]"
    assert notes_of(found) == ["This stretch: 62% sure."]
    none = WordPrediction("a b", "locus", "span", (), words, (), 0.5)
    assert notes_of(none) == ["No stretch at all: 50% sure."]


def test_a_page_is_harmless() -> None:
    labels = ("kept", "<i>")
    found = tagged("<script>alert(1)</script> &amp; x", labels, "<i> kept <i>")
    html = marked_page(found, model="<b>")
    assert "<script>" not in html
    assert "<i>" not in html
    assert "<b>" not in html
    assert "&amp;amp;" in html
    assert "default-src 'none'" in html
