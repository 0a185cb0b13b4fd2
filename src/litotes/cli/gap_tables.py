"""How groups of texts differ, as tables and sentences for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from litotes.evaluation.gaps import Gap, Gaps, Group, Spread

_GROUP_COLUMNS = (
    "task",
    "by",
    "group",
    "n",
    "macro-F1",
    "95 % interval",
    "accuracy",
    "recall",
    "calibration error",
    "by chance",
    "κ",
    "κ of people",
)
_GAP_COLUMNS = (
    "task",
    "by",
    "group",
    "measure",
    "n",
    "less the rest",
    "95 % interval",
    "p",
    "p corrected",
    "power",
    "",
)


def print_gaps(found: Gaps) -> None:
    """Recalls are tested too; of those only what is significant is printed, the JSON has all."""
    from litotes.cli.display import print_lines, print_table
    from litotes.evaluation.gaps import VISIBLE

    print_table(_GROUP_COLUMNS, [_group(one) for one in found.groups], title="Groups of texts")
    shown = [gap for gap in found.gaps if gap.is_significant or " " not in gap.measure]
    title = "Each group less all other texts"
    print_table(_GAP_COLUMNS, [_gap(gap) for gap in shown], title=title)
    print_lines(
        *map(_sentence, found.spreads),
        f"Power: the chance to find a gap of {100 * VISIBLE:g} points with so many texts, at 0.05"
        " and without correction. Holm's correction is over all"
        f" {len(found.gaps)} tests, recalls included; those that are not significant are left out"
        " here.",
    )


def _group(group: Group) -> tuple[str, ...]:
    low, high = group.interval
    recalls: Sequence[str] = [
        "–" if recall is None else f"{recall:.2f}" for recall in group.recall.values()
    ]
    return (
        group.task,
        group.column,
        group.name,
        str(group.n),
        f"{group.macro_f1:.3f}",
        f"{low:.3f}–{high:.3f}",
        f"{group.accuracy:.3f}",
        " / ".join(recalls),
        f"{group.ece:.3f}",
        f"{group.ece_by_chance:.3f}",
        f"{group.kappa:.2f}",
        "" if group.annotators is None else f"{group.annotators:.2f}",
    )


def _gap(gap: Gap) -> tuple[str, ...]:
    from litotes.core.numbers import format_signed

    low, high = gap.interval
    return (
        gap.task,
        gap.column,
        gap.name,
        gap.measure.replace("macro_f1", "macro-F1"),
        f"{gap.n[0]} / {gap.n[1]}",
        format_signed(gap.difference, 3),
        f"{format_signed(low, 3)} to {format_signed(high, 3)}",
        f"{gap.p:.4f}",
        f"{gap.adjusted_p:.4f}",
        f"{gap.power:.2f}",
        "significant" if gap.is_significant else "not significant",
    )


def _sentence(spread: Spread) -> str:
    return (
        f"{spread.task} by {spread.column}: worst {spread.worst}, best {spread.best}, macro-F1"
        f" {spread.spread:.3f} apart; random groups of these sizes are"
        f" {spread.spread_by_chance:.3f} apart (p = {spread.spread_p:.3f})."
    )
