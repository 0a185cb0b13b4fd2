"""The tour has its figures, and becomes pages that need no network and no other file."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from reproduction.tour.chapters import CONTENTS, chapter_files
from reproduction.tour.drawings import DRAWINGS
from reproduction.tour.edition import build, read_chapter
from reproduction.tour.figures import figure_file, render, run_snippets

CHAPTERS = chapter_files()
MOST_BYTES = 60_000


class Page(HTMLParser):
    """What a page links to and loads, and what can be linked to in it."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: list[str] = []
        self.figures = 0
        self.feed(file.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.figures += tag == "figure"
        if tag == "a":
            self.links.append(values["href"])
        elif tag not in ("html", "svg"):
            sources = (values.get(name) for name in ("src", "href", "xlink:href"))
            self.loaded += [source for source in sources if source is not None]
        if "id" in values:
            self.ids.append(values["id"])


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    files = build(tmp_path_factory.mktemp("edition") / "tour")
    return {file.name: Page(file) for file in files}


def test_ten_chapters_each_with_a_snippet_and_its_figure() -> None:
    assert [file.stem for file in CHAPTERS] == list(DRAWINGS)
    assert len(CHAPTERS) == 10
    contents = CONTENTS.read_text("utf-8")
    for number, file in enumerate(CHAPTERS, start=1):
        text = file.read_text("utf-8")
        assert text.startswith(f"# {number}. ")
        assert "```python" in text
        assert f"](figures/{file.stem}.svg)" in text
        assert "code differ" in text
        assert f"]({file.name})" in contents
        content = figure_file(file).read_bytes()
        assert len(content) < MOST_BYTES
        assert b"prefers-color-scheme: dark" in content
        assert b"http" not in content.replace(b"http://www.w3.org/", b"")


@pytest.mark.parametrize("number", [1, 2, 4])
def test_figures_are_drawn_from_what_the_snippets_left(number: int) -> None:
    """Those of quick chapters again, with the labels they have; numbers may differ a little."""
    chapter = CHAPTERS[number - 1]
    drawn = render(DRAWINGS[chapter.stem](run_snippets(chapter)))
    before, now = (
        [re.sub(r"\d+\.\d+", "#", text.text or "") for text in _texts(content)]
        for content in (figure_file(chapter).read_bytes(), drawn)
    )
    assert now == before, "draw it with: python -m reproduction.tour.figures"


def _texts(svg: bytes) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"))


def test_no_link_is_broken_and_nothing_is_loaded(pages: dict[str, Page], tmp_path: Path) -> None:
    assert list(pages) == ["index.html", *(f"{file.stem}.html" for file in CHAPTERS)]
    for before, after in pairwise(pages):
        assert pages[before].links[-1] == after
    for name, page in pages.items():
        assert page.figures == (name != "index.html")
        assert len(page.ids) == len(set(page.ids)), name
        for link in page.links:
            target, _, part = link.partition("#")
            assert target in pages, f"{name}: {link}"
            assert not part or part in pages[target].ids, f"{name}: {link}"
        for loaded in page.loaded:
            assert loaded.startswith(("data:", "#")), f"{name}: {loaded}"
    broken = tmp_path / "page.md"
    broken.write_text("# Page\n\nSee [nothing](nothing.md).\n")
    with pytest.raises(SystemExit, match=r"nothing\.md is not a file"):
        read_chapter(broken)
