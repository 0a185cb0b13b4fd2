"""Is a model worse for some groups of texts, by how much, and could these numbers show it?

Each group is compared with all other texts of its task: no group is singled out by its score. Three
measures are tested: macro-F1; accuracy; and the recall of each label, whose differences are those
of equal opportunity (Hardt, Price & Srebro 2016, arXiv 1610.02413, §2). Holm's correction (1979)
is over all tests of one call. How they are tested, and what their power is, `gap_statistics` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from litotes.core.errors import UserError
from litotes.core.numbers import confusion, macro_f1
from litotes.core.registry import unknown_name
from litotes.core.text import one_line
from litotes.core.values import Example
from litotes.data.agreement import annotator_kappa
from litotes.data.cells import Cell, cell_of
from litotes.evaluation.evaluate import TaskPredictions
from litotes.evaluation.gap_statistics import (
    cohen_kappa,
    f1_gap,
    normal_power,
    share_interval,
    share_power,
    share_test,
    two_sided,
)
from litotes.evaluation.group_spread import FEWEST, Spread, find_spread, has_all_labels
from litotes.evaluation.scores import f1_interval
from litotes.evaluation.significance import SIGNIFICANT, holm

COLUMNS = ("variety", "source", "cell", "split", "group")
"""What texts may be grouped by: all that a corpus says about a text besides its labels."""
VISIBLE = 0.05
"""The gap whose power is given."""


@dataclass(frozen=True)
class Group:
    """One group's scores. kappa: between the model and the labels; annotators: between people.

    ece_by_chance: the mean calibration error of a perfectly calibrated model with the same
    probabilities, which chance alone makes larger than 0.
    """

    task: str
    column: str
    name: str
    n: int
    macro_f1: float
    interval: tuple[float, float]
    accuracy: float
    recall: Mapping[str, float | None]
    ece: float
    ece_by_chance: float
    kappa: float
    annotators: float | None


@dataclass(frozen=True)
class Gap:
    """A group less all other texts. measure: macro_f1, accuracy or `recall LABEL`.

    power: the chance to find a gap of VISIBLE with these numbers of texts, at 0.05 without any
    correction.
    """

    task: str
    column: str
    name: str
    measure: str
    n: tuple[int, int]
    difference: float
    interval: tuple[float, float]
    p: float
    power: float
    adjusted_p: float = 1.0

    @property
    def is_significant(self) -> bool:
        return self.adjusted_p < SIGNIFICANT


@dataclass(frozen=True)
class Gaps:
    """notes: what was not compared, and why."""

    groups: tuple[Group, ...]
    spreads: tuple[Spread, ...]
    gaps: tuple[Gap, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        n_significant = sum(gap.is_significant for gap in self.gaps)
        return one_line(self, n_groups=len(self.groups), n_significant=n_significant)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def find_gaps(
    predictions: Mapping[str, TaskPredictions],
    columns: Sequence[str],
    *,
    corpus: str = "",
    seed: int = 0,
) -> Gaps:
    """columns: of COLUMNS. corpus: its name, by which annotators' agreement is known."""
    groups: list[Group] = []
    spreads: list[Spread] = []
    gaps: list[Gap] = []
    notes: list[str] = []
    for result in predictions.values():
        if not result.task.is_choice:
            kind = "several labels" if result.task.multi_label else "a number"
            notes.append(f"{result.task.name} is answered with {kind}: its gaps are not tested.")
            continue
        for column in columns:
            parts, more = _split(result, column)
            notes += more
            if len(parts) < 2:
                continue
            for name, own in parts.items():
                groups.append(_group(result.only(own), column, name, corpus, seed))
            for name in _compared(parts):
                gaps += _compare(result, parts[name], column, name, seed)
            spreads += find_spread(result, parts, column, seed=seed)
    if not any(result.task.is_choice for result in predictions.values()):
        raise UserError(f"There are no gaps to test: {' '.join(notes)}")
    if not groups:
        wanted = ", ".join(columns)
        raise UserError(
            f"There are no two groups of {FEWEST} texts or more by {wanted}: nothing to compare."
            " Choose another column with --by."
        )
    corrected = holm([gap.p for gap in gaps])
    tested = [replace(gap, adjusted_p=p) for gap, p in zip(gaps, corrected, strict=True)]
    return Gaps(tuple(groups), tuple(spreads), tuple(tested), tuple(notes))


def check_columns(text: str) -> tuple[str, ...]:
    """The columns of `--by variety,source`."""
    names = tuple(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in COLUMNS:
            raise UserError(f"--by {text}: {unknown_name(name, COLUMNS, 'column')}")
    return names


def _split(result: TaskPredictions, column: str) -> tuple[dict[str, list[bool]], list[str]]:
    """Which texts each group has, and what is left out."""
    names = [_name(example, column) for example in result.examples]
    parts, small = {}, []
    for name in sorted(set(names) - {None}, key=str):
        own = [one == name for one in names]
        if min(sum(own), len(own) - sum(own)) < FEWEST:
            small.append(str(name))
        else:
            parts[str(name)] = own
    if not small or not parts:
        return parts, []
    shown = ", ".join(small[:5]) + (f" and {len(small) - 5} more" if len(small) > 5 else "")
    note = f"{result.task.name} by {column}: {shown}: fewer than {FEWEST} texts, not compared."
    return parts, [note]


def _compared(parts: Mapping[str, Sequence[bool]]) -> list[str]:
    """Of two groups that are all texts, one: the other's gaps are the same with another sign."""
    is_halved = len(parts) == 2 and all(map(any, zip(*parts.values(), strict=True)))
    return list(parts)[:1] if is_halved else list(parts)


def _name(example: Example, column: str) -> str | None:
    if column == "cell":
        return None if cell_of(example) == Cell(None, None) else str(cell_of(example))
    value: str | None = getattr(example, column)
    return value


def _group(part: TaskPredictions, column: str, name: str, corpus: str, seed: int) -> Group:
    task = part.task
    counts = confusion(part.gold(), part.predicted(), len(task.labels))
    recall = {}
    for place, label in enumerate(task.labels):
        n = int(counts[place].sum())
        recall[label] = float(counts[place, place] / n) if n else None
    variety = {example.variety for example in part.examples}
    annotators = None
    if len(variety) == 1:
        annotators = annotator_kappa(corpus, task.name, str(variety.pop()))
    return Group(
        task=task.name,
        column=column,
        name=name,
        n=len(part.examples),
        macro_f1=float(macro_f1(counts)),
        interval=f1_interval(counts, seed=seed),
        accuracy=float(np.trace(counts) / counts.sum()),
        recall=recall,
        ece=part.reliability().ece,
        ece_by_chance=part.ece_by_chance(seed=seed),
        kappa=cohen_kappa(counts.astype(np.float64)),
        annotators=annotators,
    )


def _compare(
    result: TaskPredictions, own: Sequence[bool], column: str, name: str, seed: int
) -> Iterator[Gap]:
    """The gaps between a group and all other texts."""
    n_classes = len(result.task.labels)
    sides = [result.only(own), result.only([not one for one in own])]
    counts = [confusion(side.gold(), side.predicted(), n_classes) for side in sides]
    place = (result.task.name, column, name)
    if all(map(has_all_labels, counts)):
        yield Gap(*place, "macro_f1", **_f1_gap(result, own, seed))
    hits = [int(np.trace(one)) for one in counts]
    yield Gap(*place, "accuracy", **_share_gap(hits, [int(one.sum()) for one in counts]))
    for number, label in enumerate(result.task.labels):
        n = [int(one[number].sum()) for one in counts]
        if min(n) >= FEWEST:
            hits = [int(one[number, number]) for one in counts]
            yield Gap(*place, f"recall {label}", **_share_gap(hits, n))


def _f1_gap(result: TaskPredictions, own: Sequence[bool], seed: int) -> dict[str, Any]:
    is_own, predicted = np.asarray(own), result.predicted()[np.newaxis]
    found = f1_gap(result.gold(), predicted, is_own, len(result.task.labels), seed=seed)
    return {
        "n": (int(is_own.sum()), int((~is_own).sum())),
        "difference": found.difference,
        "interval": found.over_texts,
        "p": two_sided(found.difference, found.error),
        "power": normal_power(found.error, VISIBLE),
    }


def _share_gap(hits: Sequence[int], n: Sequence[int]) -> dict[str, Any]:
    (n_a, n_b), (a, b) = n, (hits[0] / n[0], hits[1] / n[1])
    return {
        "n": (n_a, n_b),
        "difference": a - b,
        "interval": share_interval(a, n_a, b, n_b),
        "p": share_test(a, n_a, b, n_b),
        "power": share_power(b, n_a, n_b, VISIBLE),
    }
