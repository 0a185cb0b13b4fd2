"""What the tables of an experiment say, in sentences computed from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from litotes.evaluation.cross_matrix import MatrixCell, collapses
from litotes.study.overall import (
    Estimate,
    OverallDifference,
    home_less_elsewhere,
    less_paper,
    mean_of,
    signed,
)
from litotes.study.results import Comparison, Findings, Panel

COMPARED = {
    "model.head": "heads",
    "model.encoder": "encoders",
    "model.weighting": "weightings",
    "model.pruning": "prunings",
    "model.separate": "one model and a model per task",
    "training.balancing": "ways of balancing tasks",
    "training.groups": "ways of weighing groups",
    "data.leaks": "ways to treat leaks",
}
"""What a comparison along a path of the grid is between."""


@dataclass(frozen=True)
class Words:
    """An experiment in sentences: a paragraph for each table, one for each table the paper has too,
    comparisons by cell and overall.
    """

    tables: tuple[str, ...]
    paper: tuple[str, ...] = ()
    comparisons: tuple[str, ...] = ()
    overall: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def in_words(found: Findings, overall: Sequence[OverallDifference]) -> Words:
    """The sentences of one experiment."""
    missing = tuple(f"{name} is missing: {reason}" for name, reason in found.failed.items())
    if not found.panels:
        return Words(("No run of this experiment has finished.", *missing))
    return Words(
        tables=(*(_about(panel, found, table_words(panel)) for panel in found.panels), *missing),
        paper=tuple(
            _about(panel, found, paper_words(panel)) for panel in found.panels if panel.paper
        ),
        comparisons=tuple(comparison_words(found)),
        overall=tuple(_over_table(one) for one in overall),
    )


def _about(panel: Panel, found: Findings, sentences: Iterable[str]) -> str:
    """The sentences as one paragraph, with the name of the table where there are several."""
    name = f"{panel.title_among(found.panels)}: " if len(found.panels) > 1 else ""
    return name + " ".join(sentences)


def table_words(panel: Panel) -> Iterator[str]:
    """The mean, at home against elsewhere, cells no better than a constant, collapsed models."""
    table, gap = panel.table, home_less_elsewhere(panel)
    sentence = (
        f"{mean_of(panel).shown()} macro-F1 on average over {counted(len(table.cells), 'cell')}"
    )
    if gap is not None:
        chance = "" if gap.is_clear else ", which may be chance"
        sentence += (
            f"; {table.at_home:.3f} at home, {table.elsewhere:.3f} elsewhere, a gap of"
            f" {gap.signed()}{chance}"
        )
    yield f"{sentence}."
    if constant := sorted({cell.tested_on for cell in table.cells if _has_one_class(cell)}):
        yield (
            f"All {table.task} texts of {', '.join(constant)} carry the same label: a score there"
            " only counts false alarms."
        )
    if useless := [
        cell
        for cell in table.cells
        if cell.interval[0] <= cell.majority and not _has_one_class(cell)
    ]:
        yield (
            "Not clearly above the majority line:"
            f" {', '.join(_arrow(cell, panel) for cell in useless)}."
        )
    yield from collapses([table])


def paper_words(panel: Panel) -> Iterator[str]:
    """How many of the paper's figures lie inside our intervals, which do not, and who is higher on
    average.
    """
    overall = less_paper(panel)
    if overall is None:
        return
    cells = [cell for cell in panel.table.cells if _place(cell) in panel.paper]
    outside = [cell for cell in cells if not is_inside(cell, panel.paper[_place(cell)])]
    n_inside = len(cells) - len(outside)
    yield (
        f"The paper's figure lies inside our interval in {n_inside} of"
        f" {counted(len(cells), 'cell')}."
    )
    if outside:
        yield f"Outside: {'; '.join(_beside(cell, panel) for cell in outside)}."
    yield f"On average over these cells ours is {higher_or_lower(overall)}."


def comparison_words(found: Findings) -> Iterator[str]:
    """Which differences are significant after Holm's correction, and which is the largest where
    none is.
    """
    n_all, path = len(found.comparisons), found.experiment.settings.compare
    within = [one for one in found.comparisons if one.elsewhere is None]
    if within:
        yield from _significance(
            within, f"between {COMPARED.get(path or '', f'values of {path}')}", n_all
        )
    for name in dict.fromkeys(
        one.elsewhere for one in found.comparisons if one.elsewhere is not None
    ):
        yield from _significance(
            [one for one in found.comparisons if one.elsewhere == name], f"from {name!r}", n_all
        )


def is_inside(cell: MatrixCell, value: float) -> bool:
    return cell.interval[0] <= value <= cell.interval[1]


def higher_or_lower(difference: Estimate, than: str = "the paper's") -> str:
    """`0.072 lower than the paper's (0.041 to 0.111)`: the sign in words, and whether it is known."""
    low, high = sorted(abs(end) for end in difference.interval)
    if difference.is_clear:
        return (
            f"{abs(difference.value):.3f} {'higher' if difference.value > 0 else 'lower'} than"
            f" {than} ({low:.3f} to {high:.3f})"
        )
    return f"not clearly higher or lower than {than}: {difference.signed()}"


def counted(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _significance(comparisons: Sequence[Comparison], what: str, n_all: int) -> Iterator[str]:
    real = [one for one in comparisons if one.is_significant]
    n = len(comparisons)
    corrected = "after Holm's correction" + (
        f" over all {n_all} comparisons here" if n_all > n else ""
    )
    if not real:
        none = (
            f"None of the {n} differences {what} is" if n > 1 else f"The difference {what} is not"
        )
        largest = max(comparisons, key=lambda one: abs(one.difference.difference))
        yield f"{none} significant {corrected}; the largest is {_pair(largest)}."
        return
    yield (
        f"{len(real)} of {counted(n, 'difference')} {what} {'is' if len(real) == 1 else 'are'}"
        f" significant {corrected}: "
        + ("; ".join(map(_pair, sorted(real, key=lambda one: one.adjusted_p))) + ".")
    )


def _pair(one: Comparison) -> str:
    low, high = one.difference.interval
    value = Estimate(one.difference.difference, (low, high)).signed()
    where = (
        f"{one.row} → {one.column}"
        if one.row != one.system
        else f"tested on {', '.join(filter(None, (one.tested_on, one.column)))}"
    )
    holds_zero = (
        ", an interval that holds 0: other seeds may disagree"
        if one.is_significant and low <= 0 <= high
        else ""
    )
    p = f"p = {one.difference.p:.4f}, corrected {one.adjusted_p:.3f}"
    return f"{one.system} less {one.baseline}, {where}, {one.task}: {value}, {p}{holds_zero}"


def _over_table(one: OverallDifference) -> str:
    where = ", ".join(filter(None, (one.tested_on, one.task)))
    chance = "" if one.difference.is_clear else ", which may be chance"
    return (
        f"Over {counted(one.n_cells, 'cell')} ({where}) {one.system} less {one.baseline} is"
        f" {one.difference.signed()}{chance}."
    )


def _beside(cell: MatrixCell, panel: Panel) -> str:
    paper = panel.paper[_place(cell)]
    low, high = cell.interval
    numbers = f"paper {paper:.3f}, ours {cell.macro_f1:.3f}, {low:.3f} to {high:.3f}"
    return f"{_arrow(cell, panel)} by {signed(paper - cell.macro_f1)} ({numbers})"


def _has_one_class(cell: MatrixCell) -> bool:
    """A constant answer is right everywhere, so there is nothing else to find."""
    return cell.majority == 1.0


def _place(cell: MatrixCell) -> tuple[str, str]:
    return cell.trained_on, cell.tested_on


def _arrow(cell: MatrixCell, panel: Panel) -> str:
    """From one variety to another; a head or the like is rather *on* a variety."""
    return f"{cell.trained_on} {'on' if panel.table.at_home is None else '→'} {cell.tested_on}"
