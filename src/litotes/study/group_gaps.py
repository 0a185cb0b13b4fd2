"""Are a study's models worse for some of the columns they were tested on?

As `evaluate --by` asks it of one model (`evaluation/gaps.py`), with means over seeds: each column
is compared with all texts of the other columns of its table, for the models of every row, and for
those of all rows together. Macro-F1, accuracy, and the recall of each label (equal opportunity) are
tested. Holm's correction is over all tests of an experiment that take a table's rows together, and
apart from these over those of single rows.

    difference   mean over models of (score on the column − score on the others)
    interval     other texts and other seeds (`evaluation/intervals.py`)
    p, power     these models on other texts. A share counts every text once, however many models
                 answered it: right for one model, and a little too careful for several
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.numbers import Counts, Floats
from litotes.data.labels import annotator_kappa
from litotes.evaluation.gaps import (
    FEWEST,
    VISIBLE,
    Gap,
    Group,
    MeanAnswers,
    Spread,
    cohen_kappa,
    f1_gap,
    find_mean_spread,
    normal_power,
    share_interval,
    share_power,
    share_test,
    two_sided,
)
from litotes.evaluation.reliability import ece_by_chance, reliability
from litotes.evaluation.scores import interval, with_unseen
from litotes.evaluation.significance import (
    find_patterns,
    holm,
    scores_of,
    seed_margin,
    text_bootstrap,
    widen_interval,
)
from litotes.study.runs import CellAnswers
from litotes.study.tables import ScoreTable

ALL_ROWS = "all rows"


@dataclass(frozen=True)
class RowGaps:
    """The groups of one row's models; of all models of a table where `row` is ALL_ROWS."""

    table: str
    row: str
    groups: tuple[Group, ...]
    gaps: tuple[Gap, ...]
    spread: Spread | None

    def as_json(self) -> dict[str, Any]:
        content = asdict(self)
        for gap, own in zip(self.gaps, content["gaps"], strict=True):
            own["significant"] = gap.is_significant
        return content


@dataclass(frozen=True)
class _Side:
    """Some texts and what the models answered. gold (text,); answers, sure (row, seed, text)"""

    gold: Counts
    answers: Counts
    sure: Floats
    labels: tuple[str, ...]

    def only(self, keep: NDArray[np.bool_]) -> _Side:
        return _Side(self.gold[keep], self.answers[..., keep], self.sure[..., keep], self.labels)

    def hits(self) -> NDArray[np.bool_]:
        """Whether an answer is right. (row, seed, text)"""
        return np.asarray(self.answers == self.gold)

    def confusion(self) -> Floats:
        """Mean over models. (class, class)"""
        found = find_patterns(self.gold, self.by_model(), len(self.labels))
        return np.asarray(found.confusions(found.n).mean(0))

    def macro_f1(self) -> tuple[Floats, tuple[float, float]]:
        """By seed, and the interval of its mean over texts. (seed,)"""
        found = find_patterns(self.gold, self.by_model(), len(self.labels))
        drawn = interval(text_bootstrap(found, seed=0).mean(1))
        over_texts = with_unseen(drawn, found.confusions(found.n).mean(0))
        return self.by_seed(scores_of(found)), over_texts

    def by_seed(self, by_model: Floats) -> Floats:
        """Mean over rows. (model,) → (seed,)"""
        return np.asarray(by_model.reshape(self.answers.shape[:2]).mean(0))

    def by_model(self) -> Counts:
        """(row, seed, text) → (model, text)"""
        return self.answers.reshape(-1, len(self.gold))


def find_group_gaps(tables: Sequence[ScoreTable]) -> tuple[RowGaps, ...]:
    """Those of all tables of an experiment; a table with a single column has none."""
    found: list[RowGaps] = []
    for table in tables:
        names = [row for row in table.matrix.rows if row not in table.failed]
        if len(names) > 1:
            found += _row_gaps(table, ALL_ROWS, names)
        for name in names:
            found += _row_gaps(table, name, [name])
    leading = leading_rows(found)
    single = [row for row in found if row not in leading]
    corrected = {(row.table, row.row): row for row in (*_correct(leading), *_correct(single))}
    return tuple(corrected[row.table, row.row] for row in found)


def leading_rows(rows: Sequence[RowGaps]) -> list[RowGaps]:
    """Of every table all rows together, or its only row."""
    pooled = {row.table for row in rows if row.row == ALL_ROWS}
    return [row for row in rows if row.row == ALL_ROWS or row.table not in pooled]


def _correct(rows: Sequence[RowGaps]) -> Iterator[RowGaps]:
    p_values = [gap.p for row in rows for gap in row.gaps]
    corrected = iter(holm(p_values) if p_values else ())
    for row in rows:
        gaps = tuple(replace(gap, adjusted_p=next(corrected)) for gap in row.gaps)
        yield replace(row, gaps=gaps)


def _row_gaps(table: ScoreTable, name: str, rows: Sequence[str]) -> Iterator[RowGaps]:
    """Of the models of some rows; nothing where there are no two columns of FEWEST texts."""
    columns: dict[str, list[CellAnswers]] = {}
    for column in table.matrix.columns:
        cells = [table.answers[row, column] for row in rows if (row, column) in table.answers]
        if len(cells) == len(rows) and len(cells[0].gold) >= FEWEST:
            columns[column] = cells
    if len(columns) < 2:
        return
    whole, of_column = _join(list(columns.values()))
    parts = {column: of_column == place for place, column in enumerate(columns)}
    place = (table.matrix.task, table.matrix.axis)
    groups = [_group(whole.only(own), *place, column, table) for column, own in parts.items()]
    gaps: list[Gap] = []
    compared = list(parts)[:1] if len(parts) == 2 else list(parts)  # of two: the same, turned
    for column in compared:
        own = parts[column]
        gaps += _compare(whole, own, (*place, column))
    yield RowGaps(table.title, name, tuple(groups), tuple(gaps), _spread(whole, parts, place))


def _join(columns: Sequence[Sequence[CellAnswers]]) -> tuple[_Side, Counts]:
    """All texts of all columns, and the column of each. (text,)"""
    gold = [cells[0].gold for cells in columns]
    answers = [np.stack([cell.answers for cell in cells]) for cells in columns]
    sure = [np.stack([cell.probability for cell in cells]) for cells in columns]
    places = [np.full(len(one), place) for place, one in enumerate(gold)]
    labels = columns[0][0].labels
    whole = _Side(
        np.concatenate(gold), np.concatenate(answers, axis=2), np.concatenate(sure, axis=2), labels
    )
    return whole, np.concatenate(places)


def _group(side: _Side, task: str, axis: str, column: str, table: ScoreTable) -> Group:
    by_seed, over_texts = side.macro_f1()
    value = float(by_seed.mean())
    hits, counts = side.hits(), side.confusion()
    recall = {}
    for number, label in enumerate(side.labels):
        n = counts[number].sum()
        recall[label] = float(counts[number, number] / n) if n else None
    sure = side.sure.reshape(-1, len(side.gold))  # (model, text)
    right = hits.reshape(sure.shape)
    eces = [reliability(*one).ece for one in zip(sure, right, strict=True)]
    return Group(
        task=task,
        column=axis,
        name=column,
        n=len(side.gold),
        macro_f1=value,
        interval=widen_interval(value, over_texts, seed_margin(by_seed), within=(0.0, 1.0)),
        accuracy=float(hits.mean()),
        recall=recall,
        ece=float(np.mean(eces)),
        ece_by_chance=float(np.mean([ece_by_chance(one) for one in sure])),
        kappa=cohen_kappa(counts),
        annotators=annotator_kappa(table.corpus, task, column),
    )


def _compare(whole: _Side, is_own: NDArray[np.bool_], place: tuple[str, str, str]) -> Iterator[Gap]:
    """The gaps between a column and all others. is_own (text,)"""
    own, others = whole.only(is_own), whole.only(~is_own)
    n_by_label = [np.bincount(side.gold, minlength=len(side.labels)) for side in (own, others)]
    if min(int(n.min()) for n in n_by_label) >= FEWEST:
        yield Gap(*place, "macro_f1", **_f1_gap(whole, is_own))
    yield Gap(*place, "accuracy", **_share_gap(own, others))
    for number, label in enumerate(own.labels):
        if min(int(n[number]) for n in n_by_label) >= FEWEST:
            sides = [side.only(side.gold == number) for side in (own, others)]
            yield Gap(*place, f"recall {label}", **_share_gap(*sides))


def _f1_gap(whole: _Side, own: NDArray[np.bool_]) -> dict[str, Any]:
    found = f1_gap(whole.gold, whole.by_model(), own, len(whole.labels), seed=0)
    difference = found.difference
    return {
        "n": (int(own.sum()), int((~own).sum())),
        "difference": difference,
        "interval": _widen(difference, found.over_texts, whole.by_seed(found.by_model)),
        "p": two_sided(difference, found.error),
        "power": normal_power(found.error, VISIBLE),
    }


def _share_gap(own: _Side, others: _Side) -> dict[str, Any]:
    (n_a, n_b) = n = len(own.gold), len(others.gold)
    by_seed = [side.hits().mean((0, 2)) for side in (own, others)]  # (seed,) each
    a, b = (float(one.mean()) for one in by_seed)
    return {
        "n": n,
        "difference": a - b,
        "interval": _widen(a - b, share_interval(a, n_a, b, n_b), by_seed[0] - by_seed[1]),
        "p": share_test(a, n_a, b, n_b),
        "power": share_power(b, n_a, n_b, VISIBLE),
    }


def _widen(value: float, over_texts: tuple[float, float], by_seed: Floats) -> tuple[float, float]:
    """The same models are on both sides, so their difference is one number a seed: (seed,)."""
    return widen_interval(value, over_texts, seed_margin(by_seed), within=(-1.0, 1.0))


def _spread(
    whole: _Side, parts: Mapping[str, NDArray[np.bool_]], place: tuple[str, str]
) -> Spread | None:
    models = MeanAnswers(whole.gold, whole.by_model(), len(whole.labels))
    own = {name: part.tolist() for name, part in parts.items()}
    return next(find_mean_spread(models, own, task=place[0], column=place[1], seed=0), None)
