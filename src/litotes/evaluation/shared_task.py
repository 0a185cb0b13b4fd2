"""The ALTA 2026 shared task on BESSTIE: its score to the last digit, and a refusal of files that
it would silently mis-score.

    score = ½ · Σ over tasks of min over varieties of macro-F1
    tasks: sentiment, sarcasm;   varieties: en-AU, en-UK

All sources of a variety count together; rows of other varieties are not scored. The organisers'
script takes the rows of a variety out of
both files and pairs them by position: a shuffled file is scored without a word, a missing row or an
empty label ends in a traceback, a label 2 becomes a third class. `score_files` compares the files
row by row first. Labels are 0 and 1; 0.0 and 1.0 mean the same here, as they do to that script (a
table with an empty cell somewhere stores the others so), and nothing else does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.numbers import Floats, classes_of, macro_f1
from litotes.data.tables.delimited import rows_from
from litotes.data.tables.records import read_records
from litotes.data.tables.row import Row, require_columns
from litotes.data.tasks import SARCASM, SENTIMENT
from litotes.evaluation.scores import N_RESAMPLES, Scores, interval, score

TASKS = (SENTIMENT, SARCASM)
VARIETIES = ("en-AU", "en-UK")
PLACES = ("source", "variety", "text")
COLUMNS = (*PLACES, *(task.name for task in TASKS))

Numbers = Sequence[int] | NDArray[np.int64]
Answers = Mapping[str, Numbers]
"""For each task 0 or 1 per text: the number of its label."""

_LABELS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1}


@dataclass(frozen=True)
class SharedTaskScore:
    """The four cells, by the names the organisers give them (`sentiment-en-AU`), and what comes of
    them.

    interval: 95 % bootstrap interval of the score. A text is drawn with both of its labels, within
    its variety. The minimum of two noisy scores is lower than either, so the interval reaches
    further down than up. majority: the score of always answering the commonest label of a cell.
    """

    cells: Mapping[str, Scores]
    score: float
    interval: tuple[float, float]
    majority: float
    n_elsewhere: int

    def lines(self) -> list[str]:
        """What the organisers' script writes into scores.txt."""
        return [f"f1-{name}: {cell.macro_f1:.4f}" for name, cell in self.cells.items()] + [
            f"score: {self.score:.4f}"
        ]

    def notes(self) -> list[str]:
        """What a reader of the score must know beside it."""
        low, high = self.interval
        notes = [
            f"95 % interval of the score over texts: {low:.4f} to {high:.4f}; majority line:"
            f" {self.majority:.4f}."
        ]
        if self.n_elsewhere:
            notes.append(
                f"Rows of other varieties than {' and '.join(VARIETIES)}, which are not scored:"
                f" {self.n_elsewhere}."
            )
        return notes + [
            f"COLLAPSED: {name} is answered {cell.collapsed_to!r} for every one of {cell.n} texts."
            for name, cell in self.cells.items()
            if cell.collapsed_to is not None
        ]

    def as_json(self) -> dict[str, Any]:
        return {
            **{f"f1-{name}": cell.macro_f1 for name, cell in self.cells.items()},
            "score": self.score,
            "interval": list(self.interval),
            "majority": self.majority,
            "n_elsewhere": self.n_elsewhere,
            "cells": {name: cell.as_json() for name, cell in self.cells.items()},
        }


def shared_task_score(
    gold: Answers, predicted: Answers, varieties: Sequence[str], *, seed: int = 0
) -> SharedTaskScore:
    """The score of answers to texts of these varieties, all in one order.

    gold, predicted: {task: (text,)}
    """
    parts = _split_by_variety(gold, predicted, varieties)
    cells = _score_cells(parts, seed=seed)
    return SharedTaskScore(
        cells=cells,
        score=float(_combine(_by_place(cells, "macro_f1"))),
        interval=interval(_resample(list(parts.values()), seed=seed)),
        majority=float(_combine(_by_place(cells, "majority"))),
        n_elsewhere=sum(variety not in VARIETIES for variety in varieties),
    )


def _score_cells(parts: Mapping[str, NDArray[np.int64]], *, seed: int) -> dict[str, Scores]:
    cells = {}
    for place, task in enumerate(TASKS):
        for variety, part in parts.items():
            name = f"{task.name}-{variety}"
            cells[name] = score(part[0, place], part[1, place], task, seed=seed)
    return cells


def _split_by_variety(
    gold: Answers, predicted: Answers, varieties: Sequence[str]
) -> dict[str, NDArray[np.int64]]:
    """Both sides' answers by variety, (side, task, text) each."""
    numbers = []
    for side in (gold, predicted):
        numbers += [_check_answers(side, task.name, len(varieties)) for task in TASKS]
    answers = np.stack(numbers)  # (side · task, text)
    parts = {}
    for variety in VARIETIES:
        places = [place for place, found in enumerate(varieties) if found == variety]
        if not places:
            raise UserError(
                f"None of the {len(varieties)} texts to score is of {variety}, and the score needs"
                " both varieties. Add some."
            )
        parts[variety] = answers[:, places].reshape(2, len(TASKS), len(places))
    return parts


def score_files(predictions: Path, gold: Path, *, seed: int = 0) -> SharedTaskScore:
    """The score of one wide CSV file (`source,variety,text,sentiment,sarcasm`, also .gz) against
    another.
    """
    wanted = list(read_wide(gold, needs=COLUMNS))
    given = list(read_wide(predictions, needs=COLUMNS))
    require_same_rows(given, wanted)
    return shared_task_score(
        _answers(wanted), _answers(given), [row.values["variety"] for row in wanted], seed=seed
    )


def read_wide(path: Path, *, needs: Collection[str]) -> Iterator[Row]:
    """The rows of a wide CSV file; its header is taken as it stands, since the organisers' script
    does not forgive a blank in it either.
    """
    if not path.name.lower().endswith((".csv", ".csv.gz")):
        raise UserError(
            f"{path} is no CSV file: the shared task reads .csv (and .csv.gz) with the columns"
            f" {','.join(COLUMNS)}."
        )
    records = read_records(path)
    line, header, _ = next(records)
    require_columns(f"{path}, line {line}", header, needs)
    for column in COLUMNS:
        if header.count(column) > 1:
            raise UserError(
                f"{path}, line {line}: the column {column!r} is there {header.count(column)} times."
                " Rename all but one."
            )
    n_rows = 0
    for row in rows_from(path, header, records):
        n_rows += 1
        yield row
    if not n_rows:
        raise UserError(f"{path} has no rows: give a file with at least one text in it.")


def require_same_rows(given: Sequence[Row], wanted: Sequence[Row]) -> None:
    """Refuse rows that are not the wanted ones in their order, naming the first that is wrong."""
    for own, other in zip(given, wanted, strict=False):
        if _key(own) != _key(other):
            raise UserError(_difference(own, other, given, wanted))
    if len(given) < len(wanted):
        missing = wanted[len(given)]
        raise UserError(
            f"{given[-1].file} ends at line {given[-1].number}: the row of {_at(missing)} and all"
            " after it are missing. Add them."
        )
    if len(given) > len(wanted):
        raise UserError(
            f"{_at(given[len(wanted)])}: this row comes after the last one of {wanted[-1].file}."
            " Take it out."
        )


def _difference(own: Row, other: Row, given: Sequence[Row], wanted: Sequence[Row]) -> str:
    here, there = Counter(map(_key, given)), Counter(map(_key, wanted))
    is_missing = here[_key(other)] < there[_key(other)]
    is_extra = here[_key(own)] > there[_key(own)]
    if is_missing and is_extra:
        columns = [column for column in PLACES if own.values[column] != other.values[column]]
        return (
            f"{_at(own)}: other {' and '.join(columns)} than in {_at(other)}. Copy the row as it"
            " stands there, labels apart."
        )
    if is_missing:
        return f"{_at(own)}: before this row, that of {_at(other)} is missing. Add it."
    if is_extra:
        return f"{_at(own)}: {other.file} has no such row, or not as often. Take it out."
    place = next(row for row in wanted if _key(row) == _key(own))
    return (
        f"{_at(own)}: this is the row of {_at(place)}, out of order. Rows are paired by position:"
        f" put them in the order of {place.file}."
    )


def _key(row: Row) -> tuple[str, ...]:
    return tuple(row.values[column] for column in PLACES)


def _at(row: Row) -> str:
    return f"{row.file}, line {row.number}"


def _answers(rows: Sequence[Row]) -> dict[str, list[int]]:
    return {task.name: [_label(row, task.name) for row in rows] for task in TASKS}


def _label(row: Row, column: str) -> int:
    word = row.word(column)
    if word is None:
        raise UserError(f"{row.at(column)} is empty: every row needs a label, 0 or 1.")
    if word not in _LABELS:
        raise UserError(f"{row.at(column)}: the label {word!r} is neither 0 nor 1. Mend it.")
    return _LABELS[word]


def _check_answers(answers: Answers, task: str, n_texts: int) -> NDArray[np.int64]:
    if task not in answers:
        raise UserError(
            f"There are no answers to {task}: the score needs"
            f" {' and '.join(t.name for t in TASKS)}."
        )
    numbers = np.asarray(answers[task])
    if numbers.shape != (n_texts,):
        raise UserError(
            f"There are {numbers.size} {task} answers for {n_texts} texts: give one per text."
        )
    if not np.isin(numbers, (0, 1)).all():
        raise UserError(f"A {task} answer is neither 0 nor 1: give 0 or 1 for every text.")
    return numbers.astype(np.int64)


def _by_place(cells: Mapping[str, Scores], what: str) -> Floats:
    """One number of every cell. (task, variety)"""
    return np.array([getattr(cell, what) for cell in cells.values()]).reshape(
        len(TASKS), len(VARIETIES)
    )


def _combine(cells: Floats) -> Floats:
    """The worst variety of each task, averaged over tasks. (…, task, variety) → (…)"""
    return np.asarray(cells.min(-1).mean(-1))


def _resample(parts: Sequence[NDArray[np.int64]], *, seed: int) -> Floats:
    """The score of resampled texts. parts: (side, task, text) per variety → (resample,)"""
    generator = np.random.default_rng(seed)
    return _combine(np.stack([_resample_cells(part, generator) for part in parts], axis=-1))


def _resample_cells(part: NDArray[np.int64], generator: np.random.Generator) -> Floats:
    """Macro-F1 of both tasks over the same drawn texts of one variety.

    (side, task, text) → (resample, task)
    """
    n = part.shape[-1]
    # (task, text): the place in a task's confusion counts a text falls into
    cells = 2 * part[0] + part[1]
    # A text is of one of 16 kinds, a place for either task; drawing texts is drawing how many there
    # are of each kind.
    n_of_kind = np.bincount(4 * cells[0] + cells[1], minlength=16)
    draws = generator.multinomial(n, n_of_kind / n, size=N_RESAMPLES)  # (resample, kind)
    places = np.stack(np.divmod(np.arange(16), 4))  # (task, kind)
    counted = np.eye(4, dtype=np.int64)[places]  # (task, kind, place)
    # (task, class)
    among = np.stack([classes_of((n_of_kind @ one).reshape(2, 2)) for one in counted])
    # (resample, task, gold, predicted)
    counts = np.stack([draws @ one for one in counted], axis=1).reshape(-1, 2, 2, 2)
    return macro_f1(counts, among)
