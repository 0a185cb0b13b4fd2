"""Progress on stderr, tables and JSON on stdout."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from litotes.core.progress import Watch

_SECONDS_BETWEEN_LINES = 5.0
_JOINERS = "\u200c\u200d"
"""Cannot be seen, but join letters and emoji."""


def visible(text: str) -> str:
    """Without characters that would move the cursor or colour a terminal: blanks for line ends,
    dots for the rest.
    """
    return "".join(
        char if char.isprintable() or char in _JOINERS else " " if char.isspace() else "·"
        for char in text
    )


@contextmanager
def progress() -> Iterator[Watch]:
    """A bar with the time left on a terminal; a line now and then elsewhere (a log file, a CI job)."""
    if not sys.stderr.isatty():
        yield _line_watch()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        ids: dict[str, Any] = {}

        def watch(what: str, done: int, total: int, note: str) -> None:
            if what not in ids:
                ids[what] = bars.add_task(what, total=total, note=note)
            bars.update(ids[what], completed=done, total=total, note=note)

        yield watch


def _line_watch() -> Watch:
    last_what, last_time = "", 0.0

    def watch(what: str, done: int, total: int, note: str) -> None:
        nonlocal last_what, last_time
        now = time.monotonic()
        if what != last_what or now - last_time > _SECONDS_BETWEEN_LINES:
            print(
                f"{what}: {done} of {total}{f', {note}' if note else ''}",
                file=sys.stderr,
                flush=True,
            )
            last_what, last_time = what, now

    return watch


def say(sentences: Iterable[str]) -> None:
    """Notes for a person, beside the result."""
    for sentence in sentences:
        print(sentence, file=sys.stderr)


def print_json(content: Any) -> None:
    print(json.dumps(content, ensure_ascii=False, indent=2))


def print_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None
) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # Text everywhere: a user's words are never markup
    table = Table(
        title=Text(title) if title else None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False
    )
    for name in head:
        table.add_column(Text(name), overflow="fold")
    for row in rows:
        table.add_row(*(Text(value) for value in row))
    # A file or a pipe has no edge to wrap at.
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def print_scores(rows: Sequence[Any]) -> None:
    """Scores as a table: each with its interval and its majority line."""
    from litotes.evaluation.scores import Scores

    lines = []
    for row in rows:
        scores, (low, high) = row.scores, row.scores.interval
        if isinstance(scores, Scores):
            values = (
                f"{scores.macro_f1:.3f}",
                f"{low:.3f}–{high:.3f}",
                f"{scores.majority:.3f}",
                f"{scores.accuracy:.3f}",
                f"{scores.matthews:.3f}",
                "" if scores.calibration_error is None else f"{scores.calibration_error:.3f}",
            )
        else:
            values = (
                f"r {scores.pearson:.3f}",
                f"{low:.3f}–{high:.3f}",
                "",
                f"rmse {scores.root_mean_squared_error:.3f}",
                f"ρ {scores.spearman:.3f}",
                "",
            )
        lines.append((scores.task, row.cell, str(scores.n), *values))
    head = (
        "task",
        "cell",
        "n",
        "macro-F1",
        "95 % interval",
        "majority",
        "accuracy",
        "Matthews",
        "calibration error",
    )
    print_table(head, lines)
