"""One analysis as a section of the article, and the tables such a section ends with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from litotes.core.html import row, table
from litotes.core.numbers import format_signed
from litotes.explanation.analyses.means import Number, Table, format_interval, format_number


@dataclass(frozen=True)
class Section:
    """What stands around a figure and its findings.

    asked: what the question is and how it is answered, in paragraphs; the first is for readers who
    never heard of it.
    paper: whose question it is. caption: how to read the figure. shows: the figure for those who
    cannot see it.
    believed: how far the findings go, in sentences. tables: the numbers, as HTML.
    first: the findings that stand at the top of the page too.
    """

    title: str
    asked: tuple[str, ...]
    paper: str
    caption: str
    shows: str
    believed: tuple[str, ...]
    tables: str
    first: tuple[str, ...]


def percent(value: Number) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def percent_with_interval(value: Number, half_width: Number, *, signed: bool = False) -> str:
    """`17.6 ± 0.8`, `+3.1 ± 0.4`: in per cent, or in points of it."""
    if value is None:
        return "–"
    text = format_signed(100 * value, 1) if signed else f"{100 * value:.1f}"
    return text if half_width is None else f"{text} ± {100 * half_width:.1f}"


def heads_table(values: Table, caption: str, *, digits: int = 2) -> str:
    """(layer, attention_head), both counted from 1."""
    head = ["layer", *(f"head {number + 1}" for number in range(len(values[0])))]
    rows = []
    for layer, line in enumerate(values):
        rows.append(row([str(layer + 1)], [format_number(value, digits) for value in line]))
    return table(head, rows, caption=caption)


def layers_table(
    columns: Mapping[str, tuple[Sequence[Number], Sequence[Number]]], caption: str
) -> str:
    """A line for every layer; {name of a column: (means, halves of their intervals)}."""
    n_layers = len(next(iter(columns.values()))[0])
    rows = []
    for n in range(n_layers):
        cells = [format_interval(means[n], widths[n]) for means, widths in columns.values()]
        rows.append(row([str(n + 1)], cells))
    return table(["layer", *columns], rows, caption=caption)


def size_of(values: Table) -> str:
    return f"{len(values)} layers by {len(values[0])} attention heads"
