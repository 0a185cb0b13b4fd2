"""The pieces of a page as HTML: sentences, tables, figures.

Whatever others wrote is escaped here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from litotes.core.text import markup


def items(sentences: Iterable[str]) -> str:
    return "".join(f"<li>{markup(sentence)}</li>" for sentence in sentences)


def words(sentences: Iterable[str]) -> str:
    """A list of sentences; nothing at all where there is none."""
    found = items(sentences)
    return f'<ul class="words">{found}</ul>' if found else ""


def table(head: Sequence[str], rows: Iterable[str], *, caption: str = "") -> str:
    """Rows that are HTML already under a head that is not; it scrolls by itself where the page is
    narrow.
    """
    names = "".join(f"<th scope=col>{markup(name)}</th>" for name in head)
    title = f"<caption>{markup(caption)}</caption>" if caption else ""
    body = f"<thead><tr>{names}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="wide"><table>{title}{body}</table></div>'


def row(
    names: Sequence[str], values: Sequence[str], *, verdict: str = "", unsure: bool = False
) -> str:
    """A row of a table: names may be broken into lines, values not; a verdict at the end may be."""
    cells = [f'<td class="name">{markup(name)}</td>' for name in names]
    cells += [f"<td>{markup(value)}</td>" for value in values]
    if verdict:
        cells.append(f'<td class="name">{markup(verdict)}</td>')
    return f"<tr{' class=unsure' if unsure else ''}>{''.join(cells)}</tr>"


def folded(summary: str, body: str) -> str:
    """What is shown when asked for. It is not printed."""
    return f"<details><summary>{markup(summary)}</summary>{body}</details>"


def figure(
    svg: str | None,
    caption: str,
    *,
    says: str = "",
    kind: str = "stretched",
    narrow: str | None = None,
) -> str:
    """A picture with what stands below it; nothing where there is no picture.

    says: what the picture shows, for readers who cannot see it; the caption where it is left out.
    kind: `stretched` to the width of the page, or `natural`: as large as it was drawn, so that
    letters have one size in all pictures.
    narrow: the same picture for a phone, shown there instead.
    """
    if svg is None:
        return ""
    named = f'<svg role="img" aria-label="{markup(says or caption)}"'
    below = f"<figcaption>{markup(caption)}</figcaption>"
    shown = f'<div class="wide broad">{svg.replace("<svg", named, 1)}</div>'
    if narrow is not None:
        kind += " paired"
        shown += f'<div class="wide narrow">{narrow.replace("<svg", named, 1)}</div>'
    return f'<figure class="{kind}">{shown}{below}</figure>'


def inline(svg: bytes | str, name: str) -> str:
    """The SVG as a part of a page: without the file's head, and with ids of its own, so that two on
    a page do not share any.

    matplotlib calls things figure_1, axes_1 and so on in every picture, and refers to clip paths by
    their ids. Images that are alike, such as two colour bars, carry the same id twice; the first
    keeps it.
    """
    text = svg.decode() if isinstance(svg, bytes) else svg
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text[text.index("<svg") :])
    seen: set[str] = set()

    def once(found: re.Match[str]) -> str:
        if found[1] in seen:
            return ""
        seen.add(found[1])
        return found[0]

    return re.sub(r' id="([^"]+)"', once, text)


def slugs(names: Sequence[str]) -> dict[str, str]:
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
