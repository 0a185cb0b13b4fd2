"""What the tables of an experiment say, in sentences computed from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from litotes.evaluation.cross_matrix import MatrixCell, collapses
from litotes.study.tables import (
    Comparison,
    Estimate,
    ExperimentResults,
    OverallDifference,
    ScoreTable,
    home_less_elsewhere,
    less_published,
    mean_of,
    signed,
)

_COMPARED = {
    "model.head": "heads",
    "model.encoder": "encoders",
    "model.weighting": "weightings",
    "model.pruning": "prunings",
    "model.separate": "one model and a model per task",
    "training.balancing": "ways of balancing tasks",
    "training.groups": "ways of weighing groups",
    "data.leaks": "ways to treat leaks",
}


@dataclass(frozen=True)
class Sentences:
    """An experiment in words.

    A paragraph for each table, one for each table that has published scores, then the comparisons
    by cell and overall.
    """

    tables: tuple[str, ...]
    paper: tuple[str, ...] = ()
    comparisons: tuple[str, ...] = ()
    overall: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def describe(results: ExperimentResults, overall: Sequence[OverallDifference]) -> Sentences:
    """The sentences of one experiment."""
    missing = [f"{name} is missing: {reason}" for name, reason in results.failed.items()]
    if not results.tables:
        return Sentences(("No run of this experiment has finished.", *missing))
    about_tables, about_published = [], []
    for table in results.tables:
        about_tables.append(_paragraph(table, results, table_sentences(table)))
        if table.published:
            about_published.append(_paragraph(table, results, published_sentences(table)))
    return Sentences(
        tables=(*about_tables, *missing),
        paper=tuple(about_published),
        comparisons=tuple(comparison_sentences(results)),
        overall=tuple(_overall_sentence(one) for one in overall),
    )


def _paragraph(table: ScoreTable, results: ExperimentResults, sentences: Iterable[str]) -> str:
    """The sentences as one paragraph, with the name of the table where there are several."""
    name = f"{table.title_among(results.tables)}: " if len(results.tables) > 1 else ""
    return name + " ".join(sentences)


def table_sentences(table: ScoreTable) -> Iterator[str]:
    """The mean, at home against elsewhere, cells no better than a constant, collapsed models."""
    matrix = table.matrix
    yield _mean_sentence(table)
    constant = {cell.tested_on for cell in matrix.cells if _has_one_class(cell)}
    if constant:
        yield (
            f"All {matrix.task} texts of {', '.join(sorted(constant))} carry the same label: a"
            " score there only counts false alarms."
        )
    several = [cell for cell in matrix.cells if not _has_one_class(cell)]
    useless = [cell for cell in several if cell.interval[0] <= cell.majority]
    if useless:
        arrows = ", ".join(_arrow(cell, table) for cell in useless)
        yield f"Not clearly above the majority line: {arrows}."
    yield from collapses([matrix])


def _mean_sentence(table: ScoreTable) -> str:
    matrix, gap = table.matrix, home_less_elsewhere(table)
    mean = f"{mean_of(table).text()} macro-F1 on average"
    sentence = f"{mean} over {count_of(len(matrix.cells), 'cell')}"
    if gap is None:
        return f"{sentence}."
    chance = "" if gap.is_clear else ", which may be chance"
    return (
        f"{sentence}; {matrix.at_home:.3f} at home, {matrix.elsewhere:.3f} elsewhere, a gap of"
        f" {gap.signed()}{chance}."
    )


def published_sentences(table: ScoreTable) -> Iterator[str]:
    """How many published scores lie inside our intervals, which do not, and which is higher."""
    overall = less_published(table)
    if overall is None:
        return
    cells = [cell for cell in table.matrix.cells if cell.place in table.published]
    outside = [cell for cell in cells if not is_inside(cell, table.published[cell.place])]
    n_inside = len(cells) - len(outside)
    yield (
        f"The paper's figure lies inside our interval in {n_inside} of"
        f" {count_of(len(cells), 'cell')}."
    )
    if outside:
        yield f"Outside: {'; '.join(_compare_published(cell, table) for cell in outside)}."
    yield f"On average over these cells ours is {higher_or_lower(overall)}."


def comparison_sentences(results: ExperimentResults) -> Iterator[str]:
    """Which differences are significant after Holm's correction, and the largest where none is."""
    groups: dict[str | None, list[Comparison]] = {}
    for one in results.comparisons:
        groups.setdefault(one.elsewhere, []).append(one)
    n_all = len(results.comparisons)
    # those within the experiment come first
    if within := groups.pop(None, None):
        what = f"between {compared_noun(results.experiment.settings.compare)}"
        yield _significance(within, what, n_all)
    for name, comparisons in groups.items():
        yield _significance(comparisons, f"from {name!r}", n_all)


def compared_noun(path: str | None) -> str:
    """What a comparison along a path of the grid is between."""
    return _COMPARED.get(path or "", f"values of {path}")


def is_inside(cell: MatrixCell, value: float) -> bool:
    return cell.interval[0] <= value <= cell.interval[1]


def higher_or_lower(difference: Estimate, than: str = "the paper's") -> str:
    """`0.072 lower than the paper's (0.041 to 0.111)`: the sign in words, if it is known."""
    if not difference.is_clear:
        return f"not clearly higher or lower than {than}: {difference.signed()}"
    low, high = sorted(abs(end) for end in difference.interval)
    direction = "higher" if difference.value > 0 else "lower"
    return f"{abs(difference.value):.3f} {direction} than {than} ({low:.3f} to {high:.3f})"


def count_of(n: int, noun: str) -> str:
    """`1 cell`, `2 cells`."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _significance(comparisons: Sequence[Comparison], what: str, n_all: int) -> str:
    n = len(comparisons)
    corrected = "after Holm's correction"
    if n_all > n:
        corrected += f" over all {n_all} comparisons here"
    real = [one for one in comparisons if one.is_significant]
    if not real:
        largest = max(comparisons, key=lambda one: abs(one.difference.difference))
        none = f"The difference {what} is not"
        if n > 1:
            none = f"None of the {n} differences {what} is"
        return f"{none} significant {corrected}; the largest is {_compare_cells(largest)}."
    verb = "is" if len(real) == 1 else "are"
    surest = sorted(real, key=lambda one: one.adjusted_p)
    return (
        f"{len(real)} of {count_of(n, 'difference')} {what} {verb} significant {corrected}:"
        f" {'; '.join(map(_compare_cells, surest))}."
    )


def _compare_cells(one: Comparison) -> str:
    low, high = one.difference.interval
    value = Estimate(one.difference.difference, (low, high)).signed()
    where = f"{one.row} → {one.column}"
    if one.row == one.system:
        where = f"tested on {', '.join(filter(None, (one.tested_on, one.column)))}"
    p = f"p = {one.difference.p:.4f}, corrected {one.adjusted_p:.3f}"
    if one.is_significant and low <= 0 <= high:
        p += ", an interval that holds 0: other seeds may disagree"
    return f"{one.system} less {one.baseline}, {where}, {one.task}: {value}, {p}"


def _overall_sentence(one: OverallDifference) -> str:
    where = ", ".join(filter(None, (one.tested_on, one.task)))
    chance = "" if one.difference.is_clear else ", which may be chance"
    return (
        f"Over {count_of(one.n_cells, 'cell')} ({where}) {one.system} less {one.baseline} is"
        f" {one.difference.signed()}{chance}."
    )


def _compare_published(cell: MatrixCell, table: ScoreTable) -> str:
    published = table.published[cell.place]
    low, high = cell.interval
    numbers = f"paper {published:.3f}, ours {cell.macro_f1:.3f}, {low:.3f} to {high:.3f}"
    return f"{_arrow(cell, table)} by {signed(published - cell.macro_f1)} ({numbers})"


def _has_one_class(cell: MatrixCell) -> bool:
    """A constant answer is right everywhere, so there is nothing else to find."""
    return cell.majority == 1.0


def _arrow(cell: MatrixCell, table: ScoreTable) -> str:
    """From one variety to another; a head or the like is rather *on* a variety."""
    return f"{cell.trained_on} {'on' if table.matrix.at_home is None else '→'} {cell.tested_on}"
