"""Learns from labelled texts when a model has to say "unsure", and writes it into its folder."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from litotes.core.errors import UserError
from litotes.core.numbers import counted
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import grouped
from litotes.core.text import one_line
from litotes.data.corpus import Corpus
from litotes.evaluation.evaluate import (
    Predictions,
    TaskPredictions,
    fair_texts,
    predict_corpus,
    split_by_cell,
)
from litotes.evaluation.scores import Interval, Json, Result
from litotes.evaluation.shares import exact_interval
from litotes.model.builtin import is_builtin
from litotes.model.calibration import (
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

    def as_json(self) -> Json:
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


def calibrate(
    model: str | Path,
    data: Corpus | str,
    *,
    coverage: float = 0.9,
    by_variety: bool = False,
    out: str | Path | None = None,
    device: str | None = None,
    runtime: str | None = None,
    watch: Watch = ignore_progress,
) -> UnsureResult:
    """Lets a model answer "unsure": from then on `Answer.labels` holds the truth with a probability
    of `coverage`, on texts like these; with `by_variety`, in each variety that has enough texts.

    The bounds are written into the model folder, or into a copy (`out`), and are read when it is
    loaded the next time. Of a source, the texts that `evaluate` would score are used.
    """
    corpus = fair_texts(data, model) if isinstance(data, str) else data
    with folder_to_calibrate(model, None if out is None else Path(out)) as folder:
        predictor = Predictor.load(folder, device=device, runtime=runtime)
        return calibrate_folder(
            folder, predictor, corpus, coverage=coverage, by_variety=by_variety, watch=watch
        )


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
    notes: list[str] = []
    by_part = [
        {
            name: _fit_task(predictions[name], runtime, coverage, by_variety, notes)
            for name, task in runtime.tasks.items()
            if name in predictions and task.is_choice
        }
        for runtime in predictor.runtimes
    ]
    found = dict(ChainMap(*reversed(by_part)))
    if left_out := [name for name in predictor.tasks if name not in found]:
        reason = "the texts have no labels for it, or it is answered with a number"
        names = ", ".join(left_out)
        notes.append(f"{counted(len(left_out), 'task')} not calibrated ({names}): {reason}.")
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
    predictions: TaskPredictions,
    runtime: Runtime,
    coverage: float,
    by_variety: bool,
    notes: list[str],
) -> LabelSets:
    """The bounds of one task; each variety that has too few texts is noted."""
    task, gold = predictions.task, predictions.gold()
    probabilities = [
        [answer.probabilities[label] for label in task.labels] for answer in predictions.answers
    ]
    calibration = runtime.calibration.get(task.name, Calibration())
    shares = label_shares(np.array(probabilities), calibration.threshold)  # (text, class)
    if len(gold) < needed_texts(coverage):
        raise UserError(f"{task.name}: {too_few(len(gold), coverage)}")
    overall = fit_bound(shares, gold, coverage)
    if not by_variety:
        return LabelSets(coverage, overall)
    places_of = grouped(range(len(gold)), lambda place: predictions.examples[place].variety)
    named = {name: places for name, places in places_of.items() if name is not None}
    if not named:
        raise UserError(
            "The texts name no variety, so nothing can be calibrated by it: leave --by variety"
            " out, or name the column of varieties in the source of a table, variety=COLUMN."
        )
    bounds = {}
    for name, places in sorted(named.items()):
        if len(places) >= needed_texts(coverage):
            bounds[name] = fit_bound(shares[places], gold[places], coverage)
            continue
        notes.append(
            f"{task.name}, {name}: {too_few(len(places), coverage)} Until then the bound of all"
            " texts is used for it, which promises nothing about this variety alone."
        )
    return LabelSets(coverage, overall, bounds)


# Do the sets of labels hold the truth as often as promised, and what does that cost?
#
#     coverage   the share of texts whose set holds the gold label
#     unsure     the share of texts whose set holds several labels, or none
#     accuracy   the share of right labels among all other texts
#
# Each share has the exact binomial interval: the set of a text is right or wrong like the toss of a
# coin, once the bounds are fixed.


@dataclass(frozen=True)
class Share:
    """n_hits of n texts, with the 95 % interval. value: None where there is no text."""

    n_hits: int
    n: int
    value: float | None
    interval: Interval


@dataclass(frozen=True, repr=False)
class SetCoverage(Result):
    """The sets of one task in one cell. by_label: the coverage of the texts that have each label;
    the promise is about all of them together, and a rare label may pay for a common one.
    """

    shown = ("task", "cell", "coverage")
    task: str
    cell: str
    promised: float
    coverage: Share
    unsure: Share
    n_several: int
    n_none: int
    accuracy: Share
    by_label: Mapping[str, Share]


def share_of(hits: Sequence[bool]) -> Share:
    """Computes the share of texts that are hits, with the interval of Clopper and Pearson."""
    n_hits, n = sum(hits), len(hits)
    return Share(n_hits, n, n_hits / n if n else None, exact_interval(n_hits, n))


def set_coverages(predictions: Predictions, corpus: Corpus) -> tuple[SetCoverage, ...]:
    """Measures every task whose answers have sets: over all texts, then by cell."""
    found = []
    for result in predictions.values():
        if (promised := result.task.coverage) is not None:
            for cell, part in split_by_cell(result, corpus):
                found.append(_measure(cell, part, promised))
    return tuple(found)


def _measure(cell: str, part: TaskPredictions, promised: float) -> SetCoverage:
    gold = [str(example.labels[part.task.name]) for example in part.examples]
    both = [(own, answer.labels or ()) for own, answer in zip(gold, part.answers, strict=True)]
    return SetCoverage(
        task=part.task.name,
        cell=cell,
        promised=promised,
        coverage=share_of([own in labels for own, labels in both]),
        unsure=share_of([len(labels) != 1 for _, labels in both]),
        n_several=sum(len(labels) > 1 for _, labels in both),
        n_none=sum(not labels for _, labels in both),
        accuracy=share_of([own == labels[0] for own, labels in both if len(labels) == 1]),
        by_label={
            label: share_of([own in labels for own, labels in both if own == label])
            for label in part.task.labels
        },
    )
