"""An article as one HTML file that needs nothing else: on a screen of any width, light or dark, and
on A4.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from string import Template

from litotes.core.html import items, slugs
from litotes.core.text import markup
from litotes.core.version import __version__


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
    template = Template(files("litotes.core").joinpath("article.html").read_text("utf-8"))
    places = slugs([part.title for part in article.parts])
    contents, parts = "", []
    for part in article.parts:
        name, title = f"part-{places[part.title]}", markup(part.title)
        contents += f'<li><a href="#{name}">{title}</a></li>'
        parts.append(f'<h2 id="{name}">{title}</h2>\n{part.body}')
    return template.substitute(
        name=markup(article.title),
        lead=markup(article.lead),
        abstract=items(article.abstract),
        contents=contents,
        parts="\n".join(parts),
        closing=markup(f"Written by litotes {__version__}. {article.sources}"),
    )
