"""A text with the words that a model of words found marked, on a page or in a terminal.

Words side by side that have the same label are marked together.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from litotes.core.text import markup
from litotes.core.values import Mark, WordPrediction
from litotes.core.version import __version__

TITLES = {"locus": "Where the sarcasm sits"}
"""What a task's marks are called; others by the task's name."""

_STYLE = """\
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2733; --soft: #51606c; \
--mark: #f8d7a8; --line: #a84300; }
@media (prefers-color-scheme: dark) { :root { --paper: #12161b; --ink: #e7ecf1; --soft: #a9b6c2; \
--mark: #5a3512; --line: #ffab66; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); \
max-width: 60rem; margin: 1.5rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.3rem; }
.marked { white-space: pre-wrap; font-size: 1.25rem; line-height: 2.6; }
mark { color: inherit; background: var(--mark); border-bottom: 3px solid var(--line); \
border-radius: .2rem; padding: .15rem .1rem .05rem; }
mark small { color: var(--soft); font-size: .65em; margin-inline-start: .3em; }
.note, footer { color: var(--soft); font-size: .9rem; }
"""


def title_of(found: WordPrediction) -> str:
    return TITLES.get(found.task, found.task.replace("_", " "))


def parts_of(found: WordPrediction) -> Iterator[tuple[str, Mark | None]]:
    """The text in parts, each with its mark or None."""
    end = 0
    for mark in _joined(found):
        if mark.start > end:
            yield found.text[end : mark.start], None
        yield found.text[mark.start : mark.end], mark
        end = mark.end
    if found.text[end:]:
        yield found.text[end:], None


def marked_paragraph(found: WordPrediction) -> str:
    """A paragraph of HTML."""
    html = ""
    for part, mark in parts_of(found):
        html += markup(part) if mark is None else _mark_html(part, mark, found)
    notes = "".join(f'<p class="note">{markup(note)}</p>' for note in notes_of(found))
    return f'<p class="marked" dir="auto">{html}</p>{notes}'


def marked_page(found: WordPrediction, *, model: str) -> str:
    """A whole page: one file, no script, no network."""
    hashed = b64encode(sha256(_STYLE.encode()).digest()).decode()
    title = markup(title_of(found))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src'
        f" 'sha256-{hashed}'; base-uri 'none'; form-action 'none'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{title}</h1>\n{marked_paragraph(found)}\n</main>\n"
        f"<footer><p>Model: <bdi>{markup(model)}</bdi>. Written by litotes"
        f" {markup(__version__)}.</p></footer>\n</body>\n</html>\n"
    )


def marks_json(found: WordPrediction) -> dict[str, Any]:
    """What a page needs to draw the marks itself."""
    marks = [
        {"start": mark.start, "end": mark.end, "label": _shown_label(mark, found) or None}
        for mark in _joined(found)
    ]
    return {"title": title_of(found), "marks": marks, "notes": notes_of(found)}


def marked_line(found: WordPrediction) -> str:
    """The text with marked parts in brackets, for a terminal."""
    line = ""
    for part, mark in parts_of(found):
        label = _shown_label(mark, found)
        line += part if mark is None else f"[{part}{f' {label}' if label else ''}]"
    return line


def notes_of(found: WordPrediction) -> list[str]:
    """What a reader of the marks should know."""
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


def _joined(found: WordPrediction) -> Iterator[Mark]:
    """Marks, those of one label with nothing but blanks between them as one; where every word has
    a label of its own, such as its part of speech, each by itself.
    """
    are_joined = len(found.labels) == 2
    current: Mark | None = None
    for mark in found.marks():
        if current is not None and are_joined and _touch(found.text, current, mark):
            current = Mark(current.start, mark.end, mark.label)
            continue
        if current is not None:
            yield current
        current = mark
    if current is not None:
        yield current


def _touch(text: str, one: Mark, other: Mark) -> bool:
    return one.label == other.label and not text[one.end : other.start].strip()


def _shown_label(mark: Mark | None, found: WordPrediction) -> str:
    """Of two labels only one is marked, and need not be named."""
    if mark is None or mark.label is None or len(found.labels) == 2:
        return ""
    return mark.label


def _mark_html(part: str, mark: Mark, found: WordPrediction) -> str:
    sure = "" if mark.probability is None else f' title="{mark.probability:.0%} sure"'
    label = _shown_label(mark, found)
    named = f"<small>{markup(label)}</small>" if label else ""
    return f"<mark{sure}>{markup(part)}{named}</mark>"
