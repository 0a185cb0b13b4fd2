"""How often sets of labels hold the truth, as a table for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from litotes.evaluation.unsure import SetCoverage, Share

_COLUMNS = (
    "task",
    "cell",
    "n",
    "promised",
    "truth among the labels",
    "95 % interval",
    "unsure",
    "accuracy of the rest",
    "95 % interval",
)


def print_set_coverages(rows: Sequence[SetCoverage]) -> None:
    from litotes.cli.display import print_table

    lines = []
    for row in rows:
        names = (row.task, row.cell, str(row.coverage.n), f"{row.promised:g}")
        shares = (*_share(row.coverage), _share(row.unsure)[0], *_share(row.accuracy))
        lines.append((*names, *shares))
    print_table(_COLUMNS, lines, title="Labels given by a model that may be unsure")


def _share(share: Share) -> tuple[str, str]:
    if share.value is None:
        return "", ""
    low, high = share.interval
    return f"{share.value:.3f}", f"{low:.3f}–{high:.3f}"
