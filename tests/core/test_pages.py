"""Pages from templates: what others wrote is escaped, links lead somewhere, pictures can be told by
those who cannot see them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from litotes.core import pages
from litotes.core.pages import inline_svg, render, render_paragraphs, slugs

SVG = (
    '<?xml version="1.0"?>\n<svg width="9pt"><g id="axes_1"/><use href="#m"/><path'
    ' clip-path="url(#p)"/><image id="a"/><image id="a"/></svg>'
)
PAGE = """{% extends "core/report.html" %}{% from "core/parts.html" import figure, table, row, words, folded %}
{% block title %}{{ said }}{% endblock %}
{% block abstract %}{{ words([said]) }}{% endblock %}
{% block parts %}{{ part("A & B") }}{% call table([said], said) %}{{ row([said], [said], verdict=said) }}{% endcall %}
{{ part("a b") }}{{ figure(svg, "one", said) }}{% call folded(said) %}{{ said }}{% endcall %}{{ words([]) }}{% endblock %}"""  # noqa: E501


LINES = "{% block said %}\n{{ n | counted('text') }}.\n\n  {{ said }}\nand more\n{% endblock %}"


@pytest.fixture(autouse=True)
def templates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates of this test beside the package's own."""
    from jinja2 import ChoiceLoader, DictLoader

    own = DictLoader({"page.html": PAGE, "lines.txt": LINES})
    environment = pages._environment()
    assert environment.loader is not None
    loader = ChoiceLoader([own, environment.loader])
    monkeypatch.setattr(environment, "loader", loader)


def test_a_page_escapes_what_is_not_markup() -> None:
    shown = render("page.html", said="<i>\u202e\x1b\udce9", svg=SVG)
    assert "<i>" not in shown
    assert shown.count("&lt;i&gt;‹U+202E›‹U+001B›‹U+DCE9›") == 12
    assert shown.encode()
    assert shown.startswith("<!doctype html>")
    contents = shown[shown.index("<nav") : shown.index("</nav>")]
    assert re.findall(r'href="#([^"]+)"', contents) == ["part-a-b", "part-a-b-2"]
    assert re.findall(r'<h2 id="([^"]+)"', shown) == ["part-a-b", "part-a-b-2"]
    with pytest.raises(UndefinedError, match="said"):
        render("page.html", svg=SVG)


def test_sentences_are_lines() -> None:
    assert render_paragraphs("lines.txt", "said", n=1200, said="a <b> & \x1b") == (
        "1,200 texts.",
        "a <b> & ‹U+001B› and more",
    )


def test_a_picture_in_a_page_says_what_it_shows_and_shares_no_id() -> None:
    for svg in (SVG, SVG.encode()):
        assert inline_svg(svg, "one", 'says "<>"') == (
            '<svg role="img" aria-label="says &#34;&lt;&gt;&#34;" width="9pt"><g id="one-axes_1"/>'
            '<use href="#one-m"/><path clip-path="url(#one-p)"/><image id="one-a"/><image/></svg>'
        )


def test_names_become_files_and_anchors() -> None:
    assert slugs(["Google sentiment", "google  Sentiment!", "…", "../../x"]) == {
        "Google sentiment": "google-sentiment",
        "google  Sentiment!": "google-sentiment-2",
        "…": "part",
        "../../x": "x",
    }


def test_a_page_asks_the_network_for_nothing() -> None:
    package = Path(pages.__file__).parents[1]
    shared = [package / "core" / name for name in ("report.html", "parts.html")]
    for file in shared:
        assert not re.search(r"https?:|src=|@import", file.read_text("utf-8")), file
