"""Progress on stderr, tables and JSON on stdout: the one place that prints.

Texts, labels, headers and file names come from anywhere, so everything that is printed is harmless:
it moves no cursor, colours nothing, and a value stays on its line.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any

from litotes.cli.streams import write_note, write_out
from litotes.core.json_text import to_json
from litotes.core.progress import Milestone, Watch, describe_duration
from litotes.core.text import harmless

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table
    from rich.text import Text

    from litotes.evaluation.evaluate import CellScores
    from litotes.evaluation.scores import RegressionScores, Scores, SeveralScores

_SECONDS_BETWEEN_LINES = 5.0


def visible(text: str) -> str:
    """The text without characters that would move the cursor or colour the terminal.

    White space becomes a blank, any other such character a dot.
    """
    return harmless(text, in_terminal=True)


@contextmanager
def progress() -> Iterator[Watch]:
    """A bar with the time left on a terminal, and a line above it for every milestone; elsewhere
    (a log, a CI job) a line now and then.
    """
    if not sys.stderr.isatty():
        yield _line_watch()
        return
    with _progress_bars() as bars:
        tasks: dict[str, Any] = {}

        def watch(what: str, done: int, total: int, note: str) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(visible(what), total=total, note="")
            if isinstance(note, Milestone):
                bars.console.print(visible(note), markup=False, highlight=False)
                note = ""
            bars.update(tasks[what], completed=done, total=total, note=visible(note))

        yield watch


def _progress_bars() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=Console(stderr=True),
    )


def _line_watch() -> Watch:
    last_what, last_time = "", 0.0
    first_done, first_time = 0, 0.0  # of what is being done now

    def watch(what: str, done: int, total: int, note: str) -> None:
        nonlocal last_what, last_time, first_done, first_time
        now = time.monotonic()
        is_new = what != last_what
        if is_new:
            first_done, first_time = done, now
        is_milestone = isinstance(note, Milestone)
        if is_new or is_milestone or now - last_time > _SECONDS_BETWEEN_LINES:
            words = [note] if is_milestone else [f"{done} of {total}", note]
            if first_done < done < total and not note.endswith(" left"):
                seconds = (now - first_time) / (done - first_done) * (total - done)
                words.append(f"about {describe_duration(seconds)} left")
            say([f"{what}: {', '.join(filter(None, words))}"])
            last_what, last_time = what, now

    return watch


def say(sentences: Iterable[str]) -> None:
    """Prints notes for the user on stderr, apart from the result on stdout."""
    for sentence in sentences:
        write_note(visible(sentence))


def print_lines(*lines: str) -> None:
    for line in lines:
        write_out(f"{visible(line)}\n")


def print_json(content: Any) -> None:
    write_out(to_json(content, indent=2) + "\n")


def print_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None
) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    # Text everywhere: the user's words are never markup
    table = Table(
        title=Text(visible(title)) if title else None,
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    for name in head:
        table.add_column(Text(visible(name)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(value)) for value in row))
    print_rendered([table])


def print_rendered(parts: Iterable[Table | Text], *, soft_wrap: bool = False) -> None:
    """Prints what rich renders; the texts in it are harmless already.

    soft_wrap: leave lines that are too long to the terminal.
    """
    from rich.console import Console

    target = _Rendered()
    # a file or a pipe has no edge to wrap at
    width = None if target.isatty() else 200
    console = Console(file=target, width=width, highlight=False, markup=False)
    for part in parts:
        console.print(part, soft_wrap=soft_wrap)
    write_out(target.getvalue())


class _Rendered(StringIO):
    """What rich would write to stdout, of the same kind; given stdout itself, it would end the
    process when the reader has gone.
    """

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return sys.stdout.encoding or "utf-8"

    def isatty(self) -> bool:
        return sys.stdout.isatty()


SCORE_COLUMNS = (
    "task",
    "cell",
    "n",
    "macro-F1",
    "95 % interval",
    "majority",
    "accuracy",
    "Matthews",
    "calibration error",
    "risk area",
)
REGRESSION_COLUMNS = ("task", "cell", "n", "Pearson r", "95 % interval", "RMSE", "Spearman ρ")


SEVERAL_COLUMNS = (
    "task",
    "cell",
    "n",
    "macro-F1",
    "95 % interval",
    "majority",
    "micro-F1",
    "95 % interval",
    "subset accuracy",
)


def print_scores(rows: Sequence[CellScores]) -> None:
    """Scores as a table, each with its interval and its majority line; those of several labels and
    of numbers apart.
    """
    from litotes.evaluation.scores import Scores, SeveralScores

    labels, several, numbers = [], [], []
    for row in rows:
        scores = row.scores
        names = (scores.task, row.cell, str(scores.n))
        if isinstance(scores, Scores):
            labels.append((*names, *_classification(scores)))
        elif isinstance(scores, SeveralScores):
            several.append((*names, *_several(scores)))
        else:
            numbers.append((*names, *_regression(scores)))
    if labels:
        print_table(SCORE_COLUMNS, labels)
    if several:
        print_table(SEVERAL_COLUMNS, several)
    if numbers:
        print_table(REGRESSION_COLUMNS, numbers)


def _classification(scores: Scores) -> tuple[str, ...]:
    error, area = scores.calibration_error, scores.risk_area
    return (
        f"{scores.macro_f1:.3f}",
        _interval(scores.interval),
        f"{scores.majority:.3f}",
        f"{scores.accuracy:.3f}",
        f"{scores.matthews:.3f}",
        "" if error is None else f"{error:.3f}",
        "" if area is None else f"{area:.3f}",
    )


def _several(scores: SeveralScores) -> tuple[str, ...]:
    return (
        f"{scores.macro_f1:.3f}",
        _interval(scores.interval),
        f"{scores.majority:.3f}",
        f"{scores.micro_f1:.3f}",
        _interval(scores.micro_interval),
        f"{scores.subset_accuracy:.3f}",
    )


def _regression(scores: RegressionScores) -> tuple[str, ...]:
    return (
        f"{scores.pearson:.3f}",
        _interval(scores.interval),
        f"{scores.root_mean_squared_error:.3f}",
        f"{scores.spearman:.3f}",
    )


def _interval(interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{low:.3f}–{high:.3f}"
