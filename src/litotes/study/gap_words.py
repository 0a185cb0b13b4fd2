"""Gaps between groups and areas under risk-coverage curves, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from litotes.evaluation.gaps import VISIBLE, Gap
from litotes.study.confidence import ALL_COLUMNS, RiskArea
from litotes.study.group_gaps import RowGaps, leading_rows
from litotes.study.tables import Estimate

_N_NAMED = 3


def gap_sentences(rows: Sequence[RowGaps]) -> Iterator[str]:
    """What one experiment's groups are like: every table's worst group, and what is significant."""
    for row in leading_rows(rows):
        if row.spread is not None:
            one = row.spread
            yield (
                f"{row.table}: worst {one.worst}, best {one.best}, {one.spread:.3f} apart in"
                f" macro-F1; random groups of these sizes are {one.spread_by_chance:.3f} apart"
                f" (p = {one.spread_p:.3f})."
            )
    leading = leading_rows(rows)
    single = [row for row in rows if row not in leading]
    for own, what in ((leading, "all rows of a table together"), (single, "row by row")):
        gaps = [gap for row in own for gap in row.gaps]
        if gaps:
            yield f"{_count_sentence(gaps)}, {what}."


def gap_summary(by_experiment: Mapping[str, Sequence[RowGaps]]) -> Iterator[str]:
    """One sentence about all gaps in macro-F1, of all rows of a table together."""
    named: list[tuple[str, Gap]] = []
    for experiment, rows in by_experiment.items():
        for row in leading_rows(rows):
            own = [gap for gap in row.gaps if gap.measure == "macro_f1"]
            named += [(f"{experiment} ({row.table})", gap) for gap in own]
    if not named:
        return
    clear = [(name, gap) for name, gap in named if gap.is_significant]
    clear.sort(key=lambda one: -abs(one[1].difference))
    largest = "; ".join(f"{name}: {_text(gap)}" for name, gap in clear[:_N_NAMED])
    powers = [gap.power for _, gap in named]
    yield (
        f"{len(clear) or 'None'} of {len(named)} gaps in macro-F1 between a group of texts and the"
        f" others {'is' if len(clear) < 2 else 'are'} significant after Holm's correction"
        f"{', the largest: ' if largest else ''}{largest}. A gap of {VISIBLE:g} would be found with"
        f" a chance of {min(powers):.2f} to {max(powers):.2f}, before correction."
    )


def risk_summary(risks: Sequence[RiskArea]) -> Iterator[str]:
    """One sentence about the area under the risk-coverage curve, mean over rows, by task."""
    by_task: dict[str, list[RiskArea]] = {}
    for one in risks:
        if one.column == ALL_COLUMNS:
            by_task.setdefault(one.task, []).append(one)
    parts = []
    for task, own in by_task.items():
        area = np.mean([one.area.value for one in own])
        error, best = np.mean([one.error for one in own]), np.mean([one.best for one in own])
        parts.append(f"{area:.3f} in {task} (error rate {error:.3f}, best possible {best:.3f})")
    if parts:
        yield (
            "Area under the risk-coverage curve, mean over rows and seeds:"
            f" {'; '.join(parts)}. A confidence that says nothing has the error rate."
        )


def _count_sentence(gaps: Sequence[Gap]) -> str:
    kinds: dict[str, list[Gap]] = {}
    for gap in gaps:
        kind = "recall" if gap.measure.startswith("recall ") else gap.measure
        kinds.setdefault(kind.replace("macro_f1", "macro-F1"), []).append(gap)
    counts = []
    for kind, own in kinds.items():
        n_clear = sum(gap.is_significant for gap in own)
        counts.append(f"{n_clear} of {len(own)} in {kind}")
    return f"Significant after correction over {len(gaps)} tests: {', '.join(counts)}"


def _text(gap: Gap) -> str:
    return f"{gap.name} {Estimate(gap.difference, gap.interval).signed()}"
