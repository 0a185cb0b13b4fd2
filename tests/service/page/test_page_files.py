"""The page's files themselves: small, plain, and loading nothing from other sites."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

FILES = sorted(Path(str(files("litotes.service") / "page")).iterdir())
SCRIPTS = [file for file in FILES if file.suffix == ".js"]
MOST_BYTES = 20_000


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_is_small_and_loads_nothing_from_other_sites(file: Path) -> None:
    text = file.read_text("utf-8")
    assert not re.search(r"\b(?:https?|wss?):|[\"'(=]\s*//", text.replace("http://www.w3.org/", ""))
    assert len(text.encode()) <= MOST_BYTES
    assert max(map(len, text.splitlines())) <= 400


def test_nothing_is_inline() -> None:
    """The service's policy would refuse it."""
    page = next(file for file in FILES if file.suffix == ".html").read_text("utf-8")
    assert not re.search(r"<[^>]*\s(?:on\w+|style)\s*=", page)
    assert "<style" not in page
    for attributes, content in re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL):
        assert "src=" in attributes
        assert not content.strip()


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_no_text_becomes_html_or_code(file: Path) -> None:
    text = file.read_text("utf-8")
    for way in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "DOMParser",
        '"style"',
    ):
        assert way not in text, way


def test_every_place_a_script_asks_for_exists() -> None:
    page = next(file for file in FILES if file.suffix == ".html").read_text("utf-8")
    places = re.findall(r'\bid="([\w-]+)"', page)
    assert len(places) == len(set(places))
    requested = {
        name
        for file in SCRIPTS
        for name in re.findall(r'byId\("([\w-]+)"\)', file.read_text("utf-8"))
    }
    assert requested
    assert requested <= set(places)
