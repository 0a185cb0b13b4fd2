"""Tables for people, on stdout, and figures with their numbers, in files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

from litotes.cli.display import say, visible, write_out
from litotes.core.errors import has_extra
from litotes.core.figures import save_figure
from litotes.core.storage import write_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table
    from rich.text import Text


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


class _Cells(Formatter):
    """Formats the values of a table: nothing for None and its attributes, an interval for two
    numbers, a word of "this|that" for true and false, `name value` for each entry of a dictionary.
    """

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        try:
            return super().get_field(field_name, args, kwargs)
        except AttributeError as error:
            if error.obj is not None:
                raise
            return None, field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None:
            return ""
        if isinstance(value, bool):
            return format_spec.split("|")[not value]
        if isinstance(value, Mapping):
            pairs = value.items()
            return ", ".join(f"{name} {self.format_field(one, format_spec)}" for name, one in pairs)
        if isinstance(value, tuple | list):
            between = " to " if format_spec.startswith("+") else "–"
            return between.join(self.format_field(one, format_spec) for one in value)
        return format(value, format_spec)


def print_rows(columns: str, rows: Iterable[object], *, title: str | None = None) -> None:
    """Prints a table of objects.

    columns: a line for each, `heading: {0.attribute:.3f}`. One in which nothing stands is left out.
    """
    pairs = [line.rpartition(": ") for line in columns.strip().splitlines()]
    lines = [[_Cells().format(cell, row) for _, _, cell in pairs] for row in rows]
    shown = [place for place in range(len(pairs)) if any(line[place] for line in lines)]
    head = [pairs[place][0].strip() for place in shown]
    print_table(head, [[line[place] for place in shown] for line in lines], title=title)


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
    """A stand-in for stdout, of the same kind, for rich; given stdout itself, it would end the
    process when the reader has gone.
    """

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return sys.stdout.encoding or "utf-8"

    def isatty(self) -> bool:
        return sys.stdout.isatty()


def draws_figures() -> bool:
    """Tells whether figures can be drawn; if not, the user is told."""
    if not has_extra("figures"):
        say(["No figure is drawn without matplotlib: `pip install 'litotes[figures]'`."])
    return has_extra("figures")


def write_figure(
    file: Path, numbers: Any, draw: Callable[[], Figure], *, with_png: bool = False
) -> None:
    """Writes a figure and its numbers, as file.svg and so on; without matplotlib the numbers."""
    if has_extra("figures"):
        save_figure(file, draw(), numbers, with_png=with_png)
    else:
        write_json(file.with_name(f"{file.name}.json"), numbers)
