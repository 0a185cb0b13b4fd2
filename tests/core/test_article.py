"""Articles: what others wrote is escaped, links lead somewhere, pictures can be told by those who
cannot see them.
"""

from __future__ import annotations

import re

from litotes.core.article import Article, Part, page
from litotes.core.html import figure, folded, inline, row, slugs, table, words

SVG = (
    '<?xml version="1.0"?>\n<svg width="9pt"><g id="axes_1"/><use href="#m"/><path'
    ' clip-path="url(#p)"/></svg>'
)


def made() -> str:
    parts = (Part("A & B", "<p>one</p>"), Part("a b", "<p>two</p>"))
    return page(Article("<Title>", "A <lead>", ("Found <this>.",), parts, "See <there>."))


def test_a_page_escapes_what_is_not_markup() -> None:
    shown = made()
    for written in ("<Title>", "<lead>", "<this>", "<there>"):
        assert written not in shown
    assert "&lt;Title&gt;" in shown
    assert "<p>one</p>" in shown  # bodies are markup already


def test_names_that_are_not_utf8_can_be_written() -> None:
    article = Article("caf\udce9", "\u202e", ("\x1b[31m",), (Part("\udce9", ""),), "")
    shown = page(article)
    assert "caf‹U+DCE9›" in shown
    assert shown.encode()
    assert "\x1b" not in shown


def test_every_entry_of_the_contents_leads_to_its_part() -> None:
    shown = made()
    assert re.findall(r'href="#([^"]+)"', shown) == ["part-a-b", "part-a-b-2"]
    assert re.findall(r'<h2 id="([^"]+)"', shown) == ["part-a-b", "part-a-b-2"]


def test_pieces_escape_names_and_values() -> None:
    shown = table(["<i1>"], [row(["<i2>"], ["<i3>"], verdict="<i4>")], caption="<i5>")
    shown += words(["<i6>"]) + folded("<i7>", "") + figure(SVG, "<i8>", says='a "quoted" <i9>')
    assert not re.search(r"<i\d>", shown)
    assert all(f"&lt;i{number}&gt;" in shown for number in range(1, 10))
    assert "a &quot;quoted&quot;" in shown


def test_a_picture_says_what_it_shows() -> None:
    assert figure(None, "below") == ""
    assert 'role="img" aria-label="below"' in figure(SVG, "below")
    assert 'role="img" aria-label="said"' in figure(SVG, "below", says="said")


def test_a_picture_in_a_page_has_ids_of_its_own() -> None:
    assert (
        inline(SVG, "one") == '<svg width="9pt"><g id="one-axes_1"/><use href="#one-m"/><path'
        ' clip-path="url(#one-p)"/></svg>'
    )
    assert inline(SVG.encode(), "one") == inline(SVG, "one")


def test_two_that_are_alike_in_a_picture_share_no_id() -> None:
    assert (
        inline('<svg><image id="a" href="x"/><image id="a" href="x"/></svg>', "one")
        == '<svg><image id="one-a" href="x"/><image href="x"/></svg>'
    )


def test_no_sentences_make_no_list() -> None:
    assert words([]) == ""


def test_names_become_files_and_anchors() -> None:
    assert slugs(["Google sentiment", "google  Sentiment!", "…", "../../x"]) == {
        "Google sentiment": "google-sentiment",
        "google  Sentiment!": "google-sentiment-2",
        "…": "part",
        "../../x": "x",
    }
