"""A text with the words that a model of words found marked, on a page or in a terminal.

Words side by side that have the same label are marked together.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from markupsafe import Markup

from litotes.core.pages import render
from litotes.core.values import Mark, WordPrediction

TITLES = {"locus": "Where the sarcasm sits"}
"""What a task's marks are called; others by the task's name."""


def title_of(found: WordPrediction) -> str:
    return TITLES.get(found.task, found.task.replace("_", " "))


def parts_of(found: WordPrediction) -> Iterator[tuple[str, Mark | None, str]]:
    """The text in parts, each with its mark or None, and the label to show."""
    end = 0
    for mark in _joined(found):
        if mark.start > end:
            yield found.text[end : mark.start], None, ""
        yield found.text[mark.start : mark.end], mark, _shown_label(mark, found)
        end = mark.end
    if found.text[end:]:
        yield found.text[end:], None, ""


def marking(found: WordPrediction) -> dict[str, Any]:
    """Collects what the templates show of a marked text."""
    return {"title": title_of(found), "parts": list(parts_of(found)), "notes": notes_of(found)}


def marked_page(found: WordPrediction, *, model: str) -> str:
    """A whole page: one file, no script, no network."""
    style = Path(__file__).with_name("marked.css").read_text("utf-8")
    return render(
        "explanation/marked.html",
        found=marking(found),
        model=model,
        style=Markup(style),  # noqa: S704 — the page's own
        style_hash=b64encode(sha256(style.encode()).digest()).decode(),
    )


def marks_json(found: WordPrediction) -> dict[str, Any]:
    """Collects what a page needs to draw the marks itself."""
    marks = [
        {"start": mark.start, "end": mark.end, "label": _shown_label(mark, found) or None}
        for mark in _joined(found)
    ]
    return {"title": title_of(found), "marks": marks, "notes": notes_of(found)}


def marked_line(found: WordPrediction) -> str:
    """The text with marked parts in brackets, for a terminal."""
    line = ""
    for part, mark, label in parts_of(found):
        line += part if mark is None else f"[{part}{f' {label}' if label else ''}]"
    return line


def notes_of(found: WordPrediction) -> list[str]:
    """Lists what a reader of the marks should know."""
    notes = []
    if found.probability is not None:
        what = "This stretch" if found.span else "No stretch at all"
        notes.append(f"{what}: {found.probability:.0%} sure.")
    elif not found.marks():
        notes.append("No word is marked.")
    if found.truncated:
        notes.append("A part of the text was not read: it is longer than the model reads.")
    if found.unreadable:
        notes.append("Unreadable: the model knows no part of this text.")
    return notes


def _joined(found: WordPrediction) -> list[Mark]:
    """Marks, those of one label with nothing but blanks between them as one; where every word has
    a label of its own, such as its part of speech, each by itself.
    """
    joined: list[Mark] = []
    for mark in found.marks():
        last = joined[-1] if joined and len(found.labels) == 2 else None
        if last and last.label == mark.label and not found.text[last.end : mark.start].strip():
            joined[-1] = Mark(last.start, mark.end, mark.label)
        else:
            joined.append(mark)
    return joined


def _shown_label(mark: Mark, found: WordPrediction) -> str:
    """Returns the label to name, if any: of two labels only one is marked, and needs no name."""
    return "" if mark.label is None or len(found.labels) == 2 else mark.label
