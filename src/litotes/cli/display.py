r"""Progress and notes on stderr, tables and JSON on stdout: the one place that prints.

Texts, labels, headers and file names come from anywhere, so everything that is printed is harmless:
it moves no cursor, colours nothing, and a value stays on its line. Both streams are taken as they
are:

stdout closed or full    the result would be lost: an error in one sentence
stdout's reader gone     the command ends quietly (`litotes list | head -1`)
stdout not UTF-8         characters it does not have are written as \uXXXX, which is valid in
                         JSON and readable elsewhere
stderr closed or full    notes are lost, and nothing else is
"""

from __future__ import annotations

import codecs
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Any, TextIO

from litotes.core.errors import ReaderGone, UserError
from litotes.core.json_text import to_json
from litotes.core.progress import Milestone, Watch, describe_duration
from litotes.core.text import harmless

_SECONDS_BETWEEN_LINES = 5.0
_ESCAPES = "litotes-escapes"


def prepare_streams() -> None:
    """Makes both streams usable by any command."""
    codecs.register_error(_ESCAPES, _escape_unencodable)
    # A closed descriptor's number would be given to the next file that is opened, and what a
    # library prints would land there: each is taken at once.
    if sys.stdout is None:
        # not open for writing: what is written is an error, as it is for any other program
        sys.stdout = _take_number(1, os.O_RDONLY)
    if sys.stderr is None:
        sys.stderr = _take_number(2, os.O_WRONLY)
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 (to the end)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors=_ESCAPES)
    if isinstance(sys.stdin, TextIOWrapper):
        # bytes that are no text are refused where the text's number is known; a carriage return
        # ends no line, as it ends none in a file
        sys.stdin.reconfigure(errors="surrogateescape", newline="\n")


def write_out(text: str) -> None:
    """Writes to stdout."""
    with _stdout_errors():
        sys.stdout.write(text)


def write_csv(text: str) -> None:
    """Writes lines of CSV to stdout.

    A program takes every character as it is, so none may be replaced; a terminal obeys some.
    """
    encoding = sys.stdout.encoding or "utf-8"  # a stream in memory has none
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        raise UserError(
            f"Standard output takes {encoding} alone, which has no {error.object[error.start]!r}."
            " Set PYTHONIOENCODING=utf-8, or write to a file with --out."
        ) from error
    if sys.stdout.isatty():
        text = harmless(text.replace("\r\n", "\n")).replace("\r", " ")
    write_out(text)


def flush_out() -> None:
    """Writes what is still waiting, so that an error is raised now and not at exit."""
    with _stdout_errors():
        sys.stdout.flush()


def abandon_streams() -> None:
    """Leads a stream that cannot be written nowhere: the interpreter flushes both when it ends, and
    would report that as well and change the exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            _lead_nowhere(stream)


@contextmanager
def _stdout_errors() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGone from error
    except OSError as error:
        raise UserError(
            f"Standard output cannot be written ({error.strerror}). Leave it open and give it"
            " room, or write to a file with --out."
        ) from error


def _take_number(descriptor: int, flags: int) -> TextIO:
    opened = os.open(os.devnull, flags)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
    return open(descriptor, "w", encoding="utf-8", closefd=False)


def _lead_nowhere(stream: TextIO) -> None:
    with suppress(OSError, ValueError):  # not every stream is a file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _escape_unencodable(error: UnicodeError) -> tuple[str, int]:
    """The characters as JSON spells them."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


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
        yield _LineWatch()
        return
    from rich import progress as rich
    from rich.console import Console

    words, note = (
        rich.TextColumn(f"{{task.{name}}}", markup=False)
        for name in ("description", "fields[note]")
    )
    columns = (words, rich.BarColumn(), rich.MofNCompleteColumn(), rich.TimeRemainingColumn(), note)
    with rich.Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def watch(what: str, done: int, total: int, note: str) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(visible(what), total=total, note="")
            if isinstance(note, Milestone):
                bars.console.print(visible(note), markup=False, highlight=False)
                note = ""
            bars.update(tasks[what], completed=done, total=total, note=visible(note))

        yield watch


class _LineWatch:
    """A line for what begins, for a milestone, and every few seconds."""

    def __init__(self) -> None:
        self.what, self.last_time = "", 0.0
        self.first_done, self.first_time = 0, 0.0  # of what is being done now

    def __call__(self, what: str, done: int, total: int, note: str) -> None:
        now = time.monotonic()
        is_new, is_milestone = what != self.what, isinstance(note, Milestone)
        if is_new:
            self.first_done, self.first_time = done, now
        if not (is_new or is_milestone or now - self.last_time > _SECONDS_BETWEEN_LINES):
            return
        words = [note] if is_milestone else [f"{done} of {total}", note]
        if self.first_done < done < total and not note.endswith(" left"):
            seconds = (now - self.first_time) / (done - self.first_done) * (total - done)
            words.append(f"about {describe_duration(seconds)} left")
        say([f"{what}: {', '.join(filter(None, words))}"])
        self.what, self.last_time = what, now


def say(sentences: Iterable[str]) -> None:
    """Prints notes for the user on stderr, apart from the result on stdout.

    A note that cannot be read stops no work.
    """
    for sentence in sentences:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{visible(sentence)}\n")
            sys.stderr.flush()


def print_lines(*lines: str) -> None:
    for line in lines:
        write_out(f"{visible(line)}\n")


def print_json(content: Any) -> None:
    write_out(to_json(content, indent=2) + "\n")
