"""Pages and sentences from templates: jinja2, with what others wrote escaped and nothing fetched.

A template stands next to the code that fills it and is asked for by its path in the package:
`render("evaluation/stress.html", result=…)`. A page extends `core/report.html` (head, styles,
abstract, contents); `core/parts.html` has tables, lists and figures. What a name in a template does
not find is an error, never an empty place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litotes.core.numbers import counted, format_signed
from litotes.core.registry import grouped
from litotes.core.text import harmless
from litotes.core.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_STEERS = re.compile(r"[^\t\n\r -~]+")
"""Everything that might: plain letters are skipped, for pages are long."""


def render(template: str, **values: Any) -> str:
    """Fills a template. In one named .html every value is escaped, if it is not markup already; in
    all, characters that steer are made visible.
    """
    return _show_steering(_environment().get_template(template).render(part=_Contents(), **values))


def render_paragraphs(template: str, block: str, **values: Any) -> tuple[str, ...]:
    """Fills one block of a template of sentences. A blank line ends a paragraph, which may be
    broken over several lines of the template and comes back as one.
    """
    found = _environment().get_template(template)
    filled = _show_steering("".join(found.blocks[block](found.new_context(values))))
    return tuple(" ".join(one.split()) for one in re.split(r"\n\s*\n", filled) if one.strip())


def _show_steering(text: str) -> str:
    return _STEERS.sub(lambda found: harmless(found[0]), text)


def inline_svg(svg: bytes | str, name: str, says: str) -> Markup:
    """Makes an SVG a part of a page: without the file's head, and with ids of its own, so that two
    on a page do not share any. says: what it shows, for readers who cannot see it.

    matplotlib calls things figure_1, axes_1 and so on in every picture, and refers to clip paths by
    their ids. Images that are alike, such as two colour bars, carry the same id twice; the first
    keeps it.
    """
    from markupsafe import Markup, escape

    text = svg.decode() if isinstance(svg, bytes) else svg
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text[text.index("<svg") :])
    seen: set[str] = set()

    def once(found: re.Match[str]) -> str:
        if found[1] in seen:
            return ""
        seen.add(found[1])
        return found[0]

    text = re.sub(r' id="([^"]+)"', once, text)
    text = text.replace("<svg", f'<svg role="img" aria-label="{escape(says)}"', 1)
    return Markup(text)  # noqa: S704 — matplotlib has written it, its labels escaped


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Names as files and anchors may be called; where two come out the same, a number tells them
    apart.
    """
    found: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:60] or "part"
        n_same = sum(
            re.fullmatch(rf"{plain}(-\d+)?", other) is not None for other in found.values()
        )
        found[name] = f"{plain}-{n_same + 1}" if n_same else plain
    return found


class _Contents:
    """`part("Title")` in a template: the heading of a part, which the table of contents links."""

    def __init__(self) -> None:
        self.titles: list[str] = []

    def __call__(self, title: str) -> Markup:
        from markupsafe import Markup

        self.titles.append(title)
        return Markup('<h2 id="{}">{}</h2>').format(self.entries()[-1][0], title)

    def entries(self) -> Sequence[tuple[str, str]]:
        """The anchor and the title of each part so far."""
        return [(f"part-{slug}", title) for title, slug in slugs(self.titles).items()]


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    made = Environment(
        loader=FileSystemLoader(Path(__file__).parents[1]),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"version": __version__, "zip": zip}
    made.filters |= {
        "signed": format_signed,
        "fixed": lambda value, digits: f"{value:.{digits}f}",
        "counted": counted,
        "grouped": lambda things, name: grouped(things, attrgetter(name)),
        "inline_svg": inline_svg,
    }
    return made
