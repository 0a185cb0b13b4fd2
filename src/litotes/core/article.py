"""An article as one HTML file that needs nothing else: on a screen of any width, light or dark, and
on A4.
"""

from __future__ import annotations

from dataclasses import dataclass

from litotes.core.pages import render


@dataclass(frozen=True)
class Part:
    """A part of the page with its entry in the table of contents. body: HTML."""

    title: str
    body: str


@dataclass(frozen=True)
class Article:
    """What an article says, first things first.

    lead: one line below the title. abstract: what was found, in sentences. sources: where all its
    numbers are.
    """

    title: str
    lead: str
    abstract: tuple[str, ...]
    parts: tuple[Part, ...]
    sources: str


def page(article: Article) -> str:
    """The whole page."""
    return render("core/article.html", article=article)
