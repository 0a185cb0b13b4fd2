"""The tables of a study's report as HTML."""

from __future__ import annotations

from collections.abc import Sequence

from litotes.core.html import row, table
from litotes.core.text import markup
from litotes.data.corpus import Corpus
from litotes.evaluation.cross_matrix import MatrixCell
from litotes.study.confidence import Confidence
from litotes.study.sentences import is_inside
from litotes.study.tables import Comparison, Estimate, OverallDifference, ScoreTable, signed
from litotes.study.timing import StepTime, Timing
from litotes.study.vocabulary import Vocabulary


def score_table(scores: ScoreTable, *, title: str) -> str:
    """Our scores, each with its interval and, where there is one, the published score."""
    matrix = scores.matrix
    first = {cell.tested_on: cell for cell in reversed(matrix.cells)}
    head = ""
    for column in matrix.columns:
        cell = first[column]
        about = f"<small>n {cell.n}, majority {cell.majority:.3f}</small>"
        head += f"<th scope=col>{markup(column)}{about}</th>"
    rows = ""
    for name in matrix.rows:
        rows += f'<tr><th scope=row class="name">{markup(name)}</th>{_score_row(scores, name)}</tr>'
    return (
        f'<div class="wide"><table><caption>{markup(title)}</caption>'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def comparison_table(comparisons: Sequence[Comparison]) -> str:
    """All comparisons, the surest first; what is not significant is grey and says so."""
    with_test = len({(one.tested_on, one.task) for one in comparisons}) > 1
    rows = []
    for one in sorted(comparisons, key=lambda one: (one.adjusted_p, one.difference.p)):
        test = (one.tested_on, one.task) if with_test else ()
        rows.append(_comparison_row(one, _join(one.column, *test)))
    difference = "difference (95 % interval)"
    head = ("system", "less", "row", "tested on", difference, "p", "p corrected", "")
    return table(head, rows, caption="Cell by cell, on the same texts")


def overall_table(overall: Sequence[OverallDifference]) -> str:
    """Differences over whole tables."""
    rows = []
    for one in overall:
        is_clear = one.difference.is_clear
        values = [_join(one.tested_on, one.task), str(one.n_cells), one.difference.signed()]
        verdict = "the interval leaves 0 out" if is_clear else "may be chance"
        names = [one.system, one.baseline]
        rows.append(row(names, values, verdict=verdict, unsure=not is_clear))
    head = ("system", "less", "tested on", "cells", "difference (95 % interval)", "")
    return table(head, rows, caption="Over whole tables")


def confidence_table(confidences: Sequence[Confidence]) -> str:
    """Calibration error and excess of confidence, before and after; report.json has more."""
    rows = []
    for one in confidences:
        checks = (one.before, one.after)
        errors = [f"{check.reliability.ece:.3f}" for check in checks]
        excess = [check.excess.signed() for check in checks]
        temperatures = f"{one.temperatures[0]:.2f} to {one.temperatures[1]:.2f}"
        n = f"{one.after.reliability.n:,}"
        rows.append(row([one.experiment], [one.task, n, *errors, *excess, temperatures]))
    errors_head = ("ECE before", "after", "too sure by, before", "after")
    return table(("experiment", "task", "answers", *errors_head, "temperatures"), rows)


def timing_table(timing: Timing) -> str:
    """Seconds per step and their ratios, which are what can be compared; published ones as well."""
    rows = []
    for one in timing.rows:
        seconds = f"{one.seconds:.4f} ({one.fastest:.4f} to {one.slowest:.4f})"
        values = [str(one.n_runs), seconds, f"{one.ratio:.2f}"]
        if timing.published is not None:
            values += _published_times(one)
        rows.append(row([one.experiment, one.setting], values))
    head = ["experiment", "head, tasks", "runs", "ours: seconds a step (range)", "× the first"]
    if timing.published is not None:
        head += ["paper: seconds a batch", "× the first"]
    return table(head, rows)


def _published_times(one: StepTime) -> list[str]:
    seconds = "–" if one.paper_seconds is None else f"{one.paper_seconds:.4f}"
    return [seconds, "–" if one.paper_ratio is None else f"{one.paper_ratio:.2f}"]


def vocabulary_table(vocabulary: Vocabulary) -> str:
    """Our shares and the published ones."""
    rows = []
    for (of, among), published in vocabulary.published.items():
        ours = vocabulary.coverage.share(of, among)
        values = [f"{ours:.3f}", f"{published:.3f}", signed(ours - published)]
        rows.append(row([of, among], values))
    return table(("of", "among", "ours", "the paper's", "ours less the paper's"), rows)


def count_table(corpus: Corpus) -> str:
    """How many texts a corpus has, by cell, split, task and label."""
    rows = []
    for count in corpus.counts():
        values = [str(count.split), count.task, count.label or "a number", f"{count.n:,}"]
        rows.append(row([str(count.cell)], values))
    return table(("cell", "split", "task", "label", "texts"), rows)


def _score_row(scores: ScoreTable, name: str) -> str:
    columns = scores.matrix.columns
    if name in scores.failed:
        reason = markup(scores.failed[name])
        return f'<td class="failed" colspan="{len(columns)}">failed: {reason}</td>'
    cells = ""
    for column in columns:
        cells += _score_cell(scores.matrix.find(name, column), scores.published.get((name, column)))
    return cells


def _score_cell(cell: MatrixCell | None, published: float | None) -> str:
    if cell is None:
        return "<td>–</td>"
    low, high = cell.interval
    kinds, lines = [], [f"{low:.3f} to {high:.3f}"]
    if published is not None:
        where = "inside" if is_inside(cell, published) else "outside"
        lines.append(f"paper {published:.3f}: {signed(cell.macro_f1 - published)}, {where}")
        kinds += ["outside"] if where == "outside" else []
    if cell.interval[0] <= cell.majority:
        lines.append("not above majority")
    if cell.n_collapsed:
        kinds.append("collapsed")
        lines.append(f"{cell.n_collapsed} of {len(cell.by_seed)} collapsed")
    mark = f' class="{" ".join(kinds)}"' if kinds else ""
    small = "".join(f"<small>{line}</small>" for line in lines)
    return f"<td{mark}>{cell.macro_f1:.3f}{small}</td>"


def _comparison_row(one: Comparison, where: str) -> str:
    difference = Estimate(one.difference.difference, one.difference.interval)
    verdict = "not significant"
    if one.is_significant:
        verdict = "significant"
        if not difference.is_clear:
            verdict = "significant for these seeds; interval holds 0"
    p_values = [f"{one.difference.p:.4f}", f"{one.adjusted_p:.3f}"]
    values = [one.row, where, difference.signed(), *p_values]
    names = [one.system, one.baseline]
    return row(names, values, verdict=verdict, unsure=not one.is_significant)


def _join(*parts: str) -> str:
    return ", ".join(filter(None, parts))
