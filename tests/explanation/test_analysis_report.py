"""The report of an analysis: a section for every analysis, nothing from elsewhere, names escaped,
every finding on the page.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from made_results import MADE, made

from litotes.core.figures import render_figure
from litotes.explanation.analyses.analyze import CorpusAnalysis, report_html

pytestmark = pytest.mark.slow

FACTS = {
    "tasks": {"sentiment": ["negative", "<i>"], "score": []},
    "head": "mean",
    "base": None,
    "n_layers": 2,
    "pruning": "none",
}
VOID = {"meta", "br", "link", "img", "input", "hr"}


class Nesting(HTMLParser):
    """Whether every element that is opened is closed where it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def analysed() -> CorpusAnalysis:
    results = {name: made(name, 2, 4, missing=True) for name in MADE}
    return CorpusAnalysis(
        "<model> & co",
        "a <corpus>",
        1400,
        3,
        5,
        results,
        {"<absent>": "needs <something>"},
        FACTS,
        7,
    )


@pytest.fixture(scope="module")
def page(analysed: CorpusAnalysis) -> str:
    pictures = {
        name: render_figure(result.figure(), "svg").decode()
        for name, result in analysed.results.items()
    }
    return report_html(analysed, pictures)


def test_page_is_well_formed_and_needs_nothing_else(page: str) -> None:
    nesting = Nesting()
    nesting.feed(page)
    assert nesting.open == []
    for outside in (
        "<script",
        "<link",
        "@import",
        'src="http',
        "url(http",
        "<iframe",
        "javascript:",
        "<!DOCTYPE svg",
        "<?xml",
    ):
        assert outside not in page
    assert all(
        address.startswith(("#", "data:image/png;base64,"))
        for address in re.findall(r'(?:href|src)="([^"]*)"', page)
    )


def test_ids_are_unique_and_links_lead_somewhere(page: str) -> None:
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)) > 20
    assert {*re.findall(r'href="#([^"]+)"', page), *re.findall(r"url\(#([^)]+)\)", page)} <= set(
        ids
    )


def test_every_picture_can_be_told(page: str) -> None:
    pictures = re.findall(r"<svg[^>]*>", page)
    assert len(pictures) == len(MADE)
    assert all(
        'role="img"' in picture and re.search(r'aria-label="[^"]{40,}"', picture)
        for picture in pictures
    )


def test_page_escapes_what_others_wrote(page: str) -> None:
    for written in ("<model>", "<corpus>", "<absent>", "<something>", "<i>", "<b>"):
        assert written not in page
    assert "What &lt;model&gt; &amp; co looks at" in page


def test_page_says_how_it_was_measured(page: str) -> None:
    for said in (
        "1,400 texts",
        "seed 7",
        "3 texts are longer",
        "5 texts are unreadable",
        "&lt;absent&gt; was left out",
        "sentiment (negative",
        "score (a number)",
    ):
        assert said in page
