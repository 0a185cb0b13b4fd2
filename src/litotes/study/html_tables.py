"""The tables of a study's report as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from litotes.evaluation.cross_matrix import MatrixCell
from litotes.report.html import row, table
from litotes.study.confidence import Confidence
from litotes.study.overall import Estimate, OverallDifference, signed
from litotes.study.results import Comparison, Panel
from litotes.study.sentences import is_inside
from litotes.study.timing import Timed
from litotes.study.vocabulary import Vocabulary


def panel_table(panel: Panel, *, title: str) -> str:
    """Our scores, each with its interval and, where there is one, the paper's and the difference."""
    matrix = panel.table
    first = {cell.tested_on: cell for cell in reversed(matrix.cells)}
    head = "".join(
        f"<th scope=col>{escape(column)}<small>n {first[column].n}, majority"
        f" {first[column].majority:.3f}</small></th>"
        for column in matrix.columns
    )
    rows = "".join(
        f'<tr><th scope=row class="name">{escape(row)}</th>{_row(panel, row)}</tr>'
        for row in matrix.rows
    )
    return (
        f'<div class="wide"><table><caption>{escape(title)}</caption>'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def comparison_table(comparisons: Sequence[Comparison]) -> str:
    """All comparisons, the surest first; what is not significant is grey and says so."""
    with_test = len({(one.tested_on, one.task) for one in comparisons}) > 1
    surest = sorted(comparisons, key=lambda one: (one.adjusted_p, one.difference.p))
    rows = (
        _comparison(one, _where(one.column, *((one.tested_on, one.task) if with_test else ())))
        for one in surest
    )
    head = (
        "system",
        "less",
        "row",
        "tested on",
        "difference (95 % interval)",
        "p",
        "p corrected",
        "",
    )
    return table(head, rows, caption="Cell by cell, on the same texts")


def overall_table(overall: Sequence[OverallDifference]) -> str:
    """Differences over whole tables."""
    rows = (
        row(
            [one.system, one.baseline],
            [_where(one.tested_on, one.task), str(one.n_cells), one.difference.signed()],
            verdict=_known(one.difference),
            unsure=not one.difference.is_clear,
        )
        for one in overall
    )
    return table(
        ("system", "less", "tested on", "cells", "difference (95 % interval)", ""),
        rows,
        caption="Over whole tables",
    )


def confidence_table(confidences: Sequence[Confidence]) -> str:
    """Calibration error and excess of confidence, before and after; report.json has more."""
    rows = []
    for one in confidences:
        errors = [f"{believed.reliability.ece:.3f}" for believed in (one.before, one.after)]
        excess = [believed.excess.signed() for believed in (one.before, one.after)]
        temperatures = f"{one.temperatures[0]:.2f} to {one.temperatures[1]:.2f}"
        rows.append(
            row(
                [one.experiment],
                [one.task, f"{one.after.reliability.n:,}", *errors, *excess, temperatures],
            )
        )
    return table(
        (
            "experiment",
            "task",
            "answers",
            "ECE before",
            "after",
            "too sure by, before",
            "after",
            "temperatures",
        ),
        rows,
    )


def timing_table(rows: Sequence[Timed]) -> str:
    """Seconds per step beside the paper's seconds per batch, and the ratios, which are what can be
    compared.
    """
    lines = (
        row(
            [one.experiment, one.setting],
            [
                str(one.n_runs),
                f"{one.seconds:.4f} ({one.fastest:.4f} to {one.slowest:.4f})",
                f"{one.ratio:.2f}",
                "–" if one.paper_seconds is None else f"{one.paper_seconds:.4f}",
                "–" if one.paper_ratio is None else f"{one.paper_ratio:.2f}",
            ],
        )
        for one in rows
    )
    head = (
        "experiment",
        "head, tasks",
        "runs",
        "ours: seconds a step (range)",
        "× the first",
        "paper: seconds a batch",
        "× the first",
    )
    return table(head, lines)


def vocabulary_table(vocabulary: Vocabulary) -> str:
    """Our shares beside the paper's."""
    lines = []
    for (of, among), paper in vocabulary.paper.items():
        ours = vocabulary.coverage.share(of, among)
        lines.append(row([of, among], [f"{ours:.3f}", f"{paper:.3f}", signed(ours - paper)]))
    return table(("of", "among", "ours", "the paper's", "ours less the paper's"), lines)


def _row(panel: Panel, row: str) -> str:
    if row in panel.failed:
        return (
            f'<td class="failed" colspan="{len(panel.table.columns)}">failed:'
            f" {escape(panel.failed[row])}</td>"
        )
    return "".join(
        _cell(panel.table.find(row, column), panel.paper.get((row, column)))
        for column in panel.table.columns
    )


def _cell(cell: MatrixCell | None, paper: float | None) -> str:
    if cell is None:
        return "<td>–</td>"
    low, high = cell.interval
    kinds, lines = [], [f"{low:.3f} to {high:.3f}"]
    if paper is not None:
        where = "inside" if is_inside(cell, paper) else "outside"
        lines.append(f"paper {paper:.3f}: {signed(cell.macro_f1 - paper)}, {where}")
        kinds += ["outside"] if where == "outside" else []
    if cell.interval[0] <= cell.majority:
        lines.append("not above majority")
    if cell.n_collapsed:
        kinds.append("collapsed")
        lines.append(f"{cell.n_collapsed} of {len(cell.by_seed)} collapsed")
    mark = f' class="{" ".join(kinds)}"' if kinds else ""
    return (
        f"<td{mark}>{cell.macro_f1:.3f}{''.join(f'<small>{line}</small>' for line in lines)}</td>"
    )


def _comparison(one: Comparison, where: str) -> str:
    difference = Estimate(one.difference.difference, one.difference.interval)
    words = "not significant"
    if one.is_significant:
        words = (
            "significant"
            if difference.is_clear
            else "significant for these seeds; interval holds 0"
        )
    return row(
        [one.system, one.baseline],
        [
            one.row,
            where,
            difference.signed(),
            f"{one.difference.p:.4f}",
            f"{one.adjusted_p:.3f}",
        ],
        verdict=words,
        unsure=not one.is_significant,
    )


def _known(difference: Estimate) -> str:
    return "the interval leaves 0 out" if difference.is_clear else "may be chance"


def _where(*parts: str) -> str:
    return ", ".join(filter(None, parts))
