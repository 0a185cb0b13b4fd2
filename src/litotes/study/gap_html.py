"""Gaps between groups and areas under risk-coverage curves, as tables of a study's report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from litotes.core.html import folded, row, table, words
from litotes.evaluation.gaps import VISIBLE, Gap
from litotes.study.confidence import ALL_COLUMNS, RiskArea
from litotes.study.gap_words import gap_sentences
from litotes.study.group_gaps import RowGaps, leading_rows
from litotes.study.tables import Estimate

GAPS_ABOUT = (
    "Each group of texts against all others of its table: mean over the models of all rows and"
    " seeds. p and power are about these models on other texts, the interval also covers other"
    " seeds. Recalls are tested too (equal opportunity); those that are not significant are in"
    f" report.json. Power: the chance to find a gap of {VISIBLE:g}, at 0.05 and without"
    " correction."
)
RISKS_ABOUT = (
    "The error rate among the texts a model is surest of, averaged over all shares of texts: the"
    " area under the risk-coverage curve. A confidence that says nothing has the error rate; the"
    " best possible has all mistakes at the end."
)


def gaps_part(rows: Sequence[RowGaps]) -> str:
    """One experiment: all rows of a table together; single rows and groups behind a fold."""
    parts = [words(gap_sentences(rows)), gap_table(leading_rows(rows), with_row=False)]
    single = [one for one in rows if one not in leading_rows(rows)]
    if single:
        parts.append(folded("Row by row", gap_table(single, with_row=True)))
    parts.append(folded("Every group", group_table(rows)))
    return "".join(parts)


def gap_table(rows: Sequence[RowGaps], *, with_row: bool) -> str:
    lines = []
    for one in rows:
        names = [one.table, one.row] if with_row else [one.table]
        lines += [_gap_row(names, gap) for gap in _shown(one)]
    head = ["table", *(["row"] if with_row else []), "group", "measure", "n / others"]
    head += ["less the others (95 % interval)", "p", "p corrected", "power", ""]
    return table(head, lines)


def group_table(rows: Sequence[RowGaps]) -> str:
    lines = []
    for one in rows:
        for group in one.groups:
            recalls = ["–" if value is None else f"{value:.2f}" for value in group.recall.values()]
            values = [str(group.n), Estimate(group.macro_f1, group.interval).text()]
            values += [f"{group.accuracy:.3f}", " / ".join(recalls)]
            values += [f"{group.ece:.3f}", f"{group.ece_by_chance:.3f}", f"{group.kappa:.2f}"]
            values.append("" if group.annotators is None else f"{group.annotators:.2f}")
            lines.append(row([one.table, one.row, group.name], values))
    head = ["table", "row", "group", "n", "macro-F1", "accuracy", "recall", "ECE", "by chance"]
    return table([*head, "κ", "κ of people"], lines)


def risk_table(risks: Sequence[RiskArea]) -> str:
    lines = []
    for one in risks:
        if one.column == ALL_COLUMNS:
            values = [str(one.n), one.area.text(), f"{one.error:.3f}", f"{one.best:.3f}"]
            lines.append(row([one.table, one.row], values))
    return table(("table", "row", "texts", "area (95 % interval)", "error rate", "best"), lines)


def _shown(rows: RowGaps) -> Iterator[Gap]:
    for gap in rows.gaps:
        if gap.is_significant or not gap.measure.startswith("recall "):
            yield gap


def _gap_row(names: Sequence[str], gap: Gap) -> str:
    verdict = "significant" if gap.is_significant else "not significant"
    difference = Estimate(gap.difference, gap.interval)
    if gap.is_significant and not difference.is_clear:
        verdict = "significant for these seeds; interval holds 0"
    values = [gap.measure.replace("macro_f1", "macro-F1"), f"{gap.n[0]} / {gap.n[1]}"]
    values += [difference.signed(), f"{gap.p:.4f}", f"{gap.adjusted_p:.3f}", f"{gap.power:.2f}"]
    named = [*names, gap.name]
    return row(named, values, verdict=verdict, unsure=not gap.is_significant)
