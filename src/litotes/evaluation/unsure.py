"""Learns from labelled texts when a model has to say "unsure", and writes it into its folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from litotes.core.errors import UserError
from litotes.core.numbers import Counts, Floats, counted
from litotes.core.progress import Watch, ignore_progress
from litotes.core.text import one_line
from litotes.data.corpus import Corpus
from litotes.evaluation.evaluate import TaskPredictions, predict_corpus, split_by_cell
from litotes.model.builtin import is_builtin
from litotes.model.calibration import (
    Bound,
    Calibration,
    LabelSets,
    fit_bound,
    label_shares,
    needed_texts,
    too_few,
)
from litotes.model.folder import ModelFolder, open_model, whole_copy, write_label_sets
from litotes.model.runtime import Runtime
from litotes.prediction.onnx_file import FILE, NOTE, export_folder, has_export
from litotes.prediction.predictor import Predictor


@dataclass(frozen=True)
class UnsureResult:
    """The bounds of each task. notes: what the user should know, such as small varieties."""

    label_sets: Mapping[str, LabelSets]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return one_line(self, tasks=list(self.label_sets), notes=self.notes)

    def as_json(self) -> dict[str, Any]:
        sets = {task: own.as_json() for task, own in self.label_sets.items()}
        return {"unsure": sets, "notes": list(self.notes)}


@contextmanager
def folder_to_calibrate(model: str | Path | ModelFolder, out: Path | None) -> Iterator[ModelFolder]:
    """The folder itself, or a copy of it with its export, that of the built-in model included."""
    folder = open_model(model)
    more = []
    if is_builtin(folder.path) and has_export(folder):
        more = [export_folder(folder) / name for name in (FILE, NOTE)]
    with whole_copy(folder, out, more=more) as target:
        yield target


def calibrate_folder(
    folder: ModelFolder,
    predictor: Predictor,
    corpus: Corpus,
    *,
    coverage: float,
    by_variety: bool = False,
    watch: Watch = ignore_progress,
) -> UnsureResult:
    """Fits the bounds of all classification tasks that the corpus is labelled for, and writes them.

    predictor: the models of the folder, as they are going to be run.
    """
    if not 0 < coverage < 1:
        raise UserError(
            f"The coverage is {coverage:g}: give a number between 0 and 1, such as 0.9."
        )
    predictions = predict_corpus(predictor, corpus, watch=watch)
    found: dict[str, LabelSets] = {}
    notes: list[str] = []
    by_part = []
    for runtime in predictor.runtimes:
        own = {}
        for name in runtime.tasks:
            if name in predictions and runtime.tasks[name].is_choice:
                own[name], more = _fit_task(predictions[name], runtime, coverage, by_variety)
                notes += more
        by_part.append(own)
        found |= own
    notes += _left_out(predictor, found)
    if not found:
        raise UserError(
            f"{corpus.name} has labels for none of the model's tasks that are answered with a"
            " label: there is nothing to calibrate. Name another source."
        )
    # only now, when all of them could be fitted, is anything written
    for part, own in zip(folder.models, by_part, strict=True):
        write_label_sets(part, {**part.label_sets, **own})
    return UnsureResult(found, tuple(notes))


def _fit_task(
    predictions: TaskPredictions, runtime: Runtime, coverage: float, by_variety: bool
) -> tuple[LabelSets, list[str]]:
    """The bounds of one task, and a sentence for each variety that has too few texts."""
    task, gold = predictions.task.name, predictions.gold()
    shares = _shares(predictions, runtime)
    if len(gold) < needed_texts(coverage):
        raise UserError(f"{task}: {too_few(len(gold), coverage)}")
    overall = fit_bound(shares, gold, coverage)
    if not by_variety:
        return LabelSets(coverage, overall), []
    of_text = [example.variety for example in predictions.examples]
    names = sorted({name for name in of_text if name is not None})
    if not names:
        raise UserError(
            "The texts name no variety, so nothing can be calibrated by it: leave --by variety"
            " out, or name the column of varieties in the source of a table, variety=COLUMN."
        )
    bounds, notes = _fit_varieties(shares, gold, coverage, of_text, names)
    return LabelSets(coverage, overall, bounds), [f"{task}, {note}" for note in notes]


def _fit_varieties(
    shares: Floats, gold: Counts, coverage: float, of_text: Sequence[str | None], names: list[str]
) -> tuple[dict[str, Bound], list[str]]:
    bounds, notes = {}, []
    for name in names:
        is_own = np.array([variety == name for variety in of_text])
        n = int(is_own.sum())
        if n < needed_texts(coverage):
            notes.append(
                f"{name}: {too_few(n, coverage)} Until then the bound of all texts is used for it,"
                " which promises nothing about this variety alone."
            )
            continue
        bounds[name] = fit_bound(shares[is_own], gold[is_own], coverage)
    return bounds, notes


def _shares(predictions: TaskPredictions, runtime: Runtime) -> Floats:
    """(text, class)"""
    labels = predictions.task.labels
    probabilities = [
        [answer.probabilities[label] for label in labels] for answer in predictions.answers
    ]
    calibration = runtime.calibration.get(predictions.task.name, Calibration())
    return label_shares(np.array(probabilities), calibration.threshold)


def _left_out(predictor: Predictor, found: Mapping[str, LabelSets]) -> list[str]:
    names = [name for name in predictor.tasks if name not in found]
    if not names:
        return []
    reason = "the texts have no labels for it, or it is answered with a number"
    return [f"{counted(len(names), 'task')} not calibrated ({', '.join(names)}): {reason}."]


# Do the sets of labels hold the truth as often as promised, and what does that cost?
#
#     coverage   the share of texts whose set holds the gold label
#     unsure     the share of texts whose set holds several labels, or none
#     accuracy   the share of right labels among all other texts
#
# Each share has the exact binomial interval of Clopper & Pearson (1934): the set of a text is
# right
# or wrong like the toss of a coin, once the bounds are fixed.

_N_HALVINGS = 50


@dataclass(frozen=True)
class Share:
    """n_hits of n texts, with the 95 % interval. value: None where there is no text."""

    n_hits: int
    n: int
    value: float | None
    interval: tuple[float, float]


@dataclass(frozen=True)
class SetCoverage:
    """The sets of one task in one cell. by_label: the coverage of the texts that have each label;
    the promise is about all of them together, and a rare label may pay for a common one.
    """

    task: str
    cell: str
    promised: float
    coverage: Share
    unsure: Share
    n_several: int
    n_none: int
    accuracy: Share
    by_label: Mapping[str, Share]

    def __repr__(self) -> str:
        return one_line(self, task=self.task, cell=self.cell, coverage=self.coverage.value)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def binomial_share(n_hits: int, n: int) -> Share:
    """With the interval of Clopper and Pearson: the shares at which so few, or so many, hits come
    with a chance of 2.5 % each.
    """
    if not n:
        return Share(0, 0, None, (0.0, 1.0))
    low = _chance_at(n_hits, n, 0.025) if n_hits else 0.0
    high = _chance_at(n_hits + 1, n, 0.975) if n_hits < n else 1.0
    return Share(n_hits, n, n_hits / n, (low, high))


def _chance_at(k: int, n: int, tail: float) -> float:
    """The chance of a hit at which k hits or more of n come with the probability `tail`; which
    grows with the chance, so halving the interval cannot go wrong.
    """
    counts = np.arange(n + 1)
    logs = np.concatenate([[0.0], np.log(counts[1:])]).cumsum()  # log k!
    ways = logs[n] - logs[k:] - logs[n - counts[k:]]  # (hits,): log of n over hits
    low, high = 0.0, 1.0
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2
        logged = counts[k:] * np.log(middle) + (n - counts[k:]) * np.log1p(-middle)
        is_above = float(np.exp(ways + logged).sum()) > tail
        low, high = (low, middle) if is_above else (middle, high)
    return (low + high) / 2


def set_coverages(
    predictions: Mapping[str, TaskPredictions], corpus: Corpus
) -> tuple[SetCoverage, ...]:
    """Of every task whose answers have sets: over all texts, then by cell."""
    return tuple(_rows(predictions, corpus))


def _rows(predictions: Mapping[str, TaskPredictions], corpus: Corpus) -> Iterator[SetCoverage]:
    for result in predictions.values():
        if result.task.coverage is None:
            continue
        for cell, part in split_by_cell(result, corpus):
            yield _measure(cell, part, result.task.coverage)


def _measure(cell: str, part: TaskPredictions, promised: float) -> SetCoverage:
    gold = [str(example.labels[part.task.name]) for example in part.examples]
    sets = [answer.labels or () for answer in part.answers]
    holds = [own in labels for own, labels in zip(gold, sets, strict=True)]
    sure = [own == labels[0] for own, labels in zip(gold, sets, strict=True) if len(labels) == 1]
    by_label = {}
    for label in part.task.labels:
        of_label = [held for own, held in zip(gold, holds, strict=True) if own == label]
        by_label[label] = binomial_share(sum(of_label), len(of_label))
    n_none = sum(not labels for labels in sets)
    n_several = len(sets) - len(sure) - n_none
    return SetCoverage(
        task=part.task.name,
        cell=cell,
        promised=promised,
        coverage=binomial_share(sum(holds), len(holds)),
        unsure=binomial_share(n_several + n_none, len(sets)),
        n_several=n_several,
        n_none=n_none,
        accuracy=binomial_share(sum(sure), len(sure)),
        by_label=by_label,
    )
