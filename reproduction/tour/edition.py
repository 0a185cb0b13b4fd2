"""The tour as HTML that opens without a network: a page for each chapter, its figure in it.

python -m reproduction.tour.edition               into dist/tour
python -m reproduction.tour.edition --out FOLDER

Needs nothing of litotes: Markdown is rendered by markdown-it-py and code coloured by Pygments, both
of which come with rich.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from reproduction.tour.chapters import CONTENTS, ROOT, TOUR, chapter_files

TEMPLATE = Path(__file__).with_name("edition.html")
OUT = ROOT / "dist" / "tour"
_SVG = re.compile(r"<svg.*</svg>", re.DOTALL)
_NO_LETTER = re.compile(r"[^\w\- ]")


@dataclass(frozen=True)
class Chapter:
    """A page of the edition. file: its Markdown."""

    file: Path
    title: str
    body: str

    @property
    def page(self) -> str:
        return page_name(self.file)


def page_name(file: Path) -> str:
    """The page that a Markdown file of the tour becomes."""
    return "index.html" if file == CONTENTS else f"{file.stem}.html"


def read_chapter(file: Path) -> Chapter:
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(file.read_text("utf-8"))
    title = tokens[1].content
    rewrite(tokens, file)
    parser.add_render_rule("fence", _render_code)
    parser.add_render_rule("image", _render_figure)
    return Chapter(file, title, parser.renderer.render(tokens, parser.options, {"file": file}))


def rewrite(tokens: Sequence[Token], file: Path) -> None:
    """Links go to pages of the edition, headings can be linked to, a figure is no paragraph, wide
    tables scroll.
    """
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", heading_id(tokens[place + 1].content))
        if token.type == "inline" and token.children is not None:
            token.children = [one for child in token.children for one in _resolve(child, file)]
            _drop_repeated_closings(token.children)
            if len(token.children) == 1 and token.children[0].type == "image":
                tokens[place - 1].hidden = tokens[place + 1].hidden = True


def heading_id(written: str) -> str:
    """As forges make it of a heading."""
    return _NO_LETTER.sub("", written.lower()).replace(" ", "-")


def _resolve(token: Token, file: Path) -> list[Token]:
    """A link within the tour leads to its page; the text of any other is followed by the file."""
    if token.type != "link_open":
        return [token]
    target, _, part = str(token.attrGet("href")).partition("#")
    linked = (file.parent / target).resolve() if target else file
    if linked == CONTENTS or linked in chapter_files():
        token.attrSet("href", page_name(linked) + (f"#{part}" if part else ""))
        return [token]
    if not linked.is_file():
        raise SystemExit(f"{file}: {target} is not a file of this repository. Mend the link.")
    span = Token("link_open", "span", 1, attrs={"class": "outside"})
    span.meta["outside"] = linked.relative_to(ROOT.resolve()).as_posix()
    return [span]


def _drop_repeated_closings(children: list[Token]) -> None:
    """Closes with a span, and names the file, what `_resolve` opened with one."""
    outside: str | None = None
    for token in children:
        if token.type == "link_open":
            outside = token.meta.get("outside")
        if token.type == "link_close" and outside:
            token.type, token.content = "html_inline", f" <small>({escape(outside)})</small></span>"
            outside = None


def _render_code(
    _: Any, tokens: Sequence[Token], place: int, options: Any, environment: Any
) -> str:
    token = tokens[place]
    if token.info.strip() != "python":
        return f"<pre>{escape(token.content)}</pre>\n"
    coloured = highlight(token.content, PythonLexer(), HtmlFormatter(nowrap=True))
    return f'<pre class="code">{coloured}</pre>\n'


def _render_figure(
    _: Any, tokens: Sequence[Token], place: int, options: Any, environment: Any
) -> str:
    """The drawing itself, so that it follows the page's colours and needs no second file."""
    token = tokens[place]
    file = environment["file"].parent / str(token.attrGet("src"))
    found = _SVG.search(file.read_text("utf-8"))
    assert found, f"{file} is not an SVG"
    alt = escape(" ".join(token.content.split()), quote=True)
    drawing = found[0].replace("<svg", f'<svg role="img" aria-label="{alt}"', 1)
    return f"<figure>{drawing}</figure>\n"


def code_colours() -> str:
    """Of code on a light page, and on a dark one."""
    light = HtmlFormatter(style="friendly").get_style_defs(".code")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".code")
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"


def compose_page(chapters: Sequence[Chapter], place: int) -> str:
    """chapters: the contents first, then the chapters in order."""
    here = chapters[place]
    entries = []
    for chapter in chapters[1:]:
        current = ' aria-current="page"' if chapter is here else ""
        title = escape(re.sub(r"^\d+\. ", "", chapter.title))
        entries.append(f'<li><a href="{chapter.page}"{current}>{title}</a></li>')
    around = []
    if place > 0:
        before = chapters[place - 1]
        around.append(f'<a rel="prev" href="{before.page}">← {escape(before.title)}</a>')
    if place + 1 < len(chapters):
        after = chapters[place + 1]
        around.append(f'<a rel="next" href="{after.page}">{escape(after.title)} →</a>')
    return Template(TEMPLATE.read_text("utf-8")).substitute(
        title=escape(here.title),
        contents="\n".join(entries),
        around="\n".join(around),
        body=here.body,
        code_colours=code_colours(),
    )


def build(out: Path) -> list[Path]:
    """Writes all pages; gives their files."""
    chapters = [read_chapter(file) for file in (CONTENTS, *chapter_files())]
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for place, chapter in enumerate(chapters):
        file = out / chapter.page
        file.write_text(compose_page(chapters, place), "utf-8")
        written.append(file)
    return written


def main() -> None:
    parser = ArgumentParser(description=f"The tour ({TOUR.name}) as HTML that needs no network.")
    parser.add_argument("--out", type=Path, default=OUT, help="folder to write to")
    files = build(parser.parse_args().out)
    print(f"{len(files)} pages; open {files[0]}")


if __name__ == "__main__":
    main()
