"""Scores of a model on a corpus, over all of it and by cell."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import compress
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from litotes.core.errors import UserError
from litotes.core.json_text import parse_as
from litotes.core.numbers import Floats
from litotes.core.pages import render_paragraphs
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import grouped
from litotes.core.text import one_line
from litotes.core.values import Answer, Example, Prediction, Task
from litotes.data.corpus import ALL, NAMELESS, Corpus, cell_of
from litotes.data.sources import load_corpus
from litotes.evaluation.reliability import (
    Reliability,
    RiskCoverage,
    reliability,
    risk_coverage,
)
from litotes.evaluation.scores import (
    Json,
    RegressionScores,
    Result,
    Scores,
    SeveralScores,
    plain,
    score,
    score_regression,
    score_several,
)
from litotes.evaluation.significance import Difference, Tested, correct, difference
from litotes.model.folder import ModelFolder, read_trained_texts, text_hash
from litotes.prediction.answers import known_varieties
from litotes.prediction.predictor import Predictor

CHUNK = 256
AnyScores = Scores | RegressionScores | SeveralScores


@dataclass(frozen=True, repr=False)
class CellScores(Result):
    """The scores of one task in one cell; the cell "all" is the whole corpus."""

    cell: str
    scores: AnyScores
    n_truncated: int = 0
    n_unreadable: int = 0

    def headline(self) -> Json:
        return {"cell": self.cell, **self.scores.headline()}

    def as_json(self) -> Json:
        content = super().as_json()
        return content | content.pop("scores")

    @classmethod
    def from_json(cls, content: Json) -> CellScores:
        """Reads a cell's scores; any other content is a ValueError."""
        own = {name: content[name] for name in content if name in cls.__dataclass_fields__}
        scores = {name: value for name, value in content.items() if name not in own}
        return parse_as(cls, own | {"scores": scores})


@dataclass(frozen=True)
class TaskPredictions:
    """The texts that carry a gold label of one task, with the model's answers."""

    task: Task
    examples: tuple[Example, ...]
    answers: tuple[Answer, ...]
    truncated: tuple[bool, ...]
    unreadable: tuple[bool, ...]

    def __repr__(self) -> str:
        return one_line(self, task=self.task.name, n=len(self.examples))

    def gold(self) -> np.ndarray[Any, Any]:
        return self._numbers([example.labels[self.task.name] for example in self.examples])

    def predicted(self) -> np.ndarray[Any, Any]:
        return self._numbers([answer.label for answer in self.answers])

    def scores(self, *, seed: int = 0) -> AnyScores:
        if self.task.is_regression:
            return score_regression(self.gold(), self.predicted(), self.task, seed=seed)
        if self.task.multi_label:
            return score_several(self.gold(), self.predicted(), self.task, seed=seed)
        return replace(
            score(self.gold(), self.predicted(), self.task, seed=seed),
            calibration_error=self.reliability().ece,
            risk_area=self.risk_coverage().area,
        )

    def reliability(self) -> Reliability:
        """Measures how reliable the probabilities of the given labels are."""
        return reliability(self.confidence(), self.gold() == self.predicted())

    def risk_coverage(self) -> RiskCoverage:
        """Finds how many mistakes remain when the least sure labels are left out."""
        return risk_coverage(self.confidence(), self.gold() == self.predicted())

    def confidence(self) -> Floats:
        """The probability of the label given. (text,)"""
        return np.array([answer.probability or 0.0 for answer in self.answers])

    def only(self, keep: Iterable[bool]) -> TaskPredictions:
        """A part of the texts: those whose `keep` is true."""
        columns: Any = (self.examples, self.answers, self.truncated, self.unreadable)
        return TaskPredictions(self.task, *(tuple(compress(one, keep)) for one in columns))

    def _numbers(self, labels: Sequence[object]) -> np.ndarray[Any, Any]:
        """Class numbers or numbers, (text,); of several labels which a text has, (text, class)."""
        if self.task.is_regression:
            return np.array(labels, dtype=float)
        if self.task.multi_label:
            words = [own if isinstance(own, tuple) else () for own in labels]
            flags = [[label in own for label in self.task.labels] for own in words]
            return np.array(flags, dtype=np.bool_)
        return np.array([self.task.labels.index(str(label)) for label in labels], dtype=np.int64)


Predictions = Mapping[str, TaskPredictions]
"""By task."""


def kind_of_answer(task: Task) -> str:
    """Names what a task is answered with."""
    if task.is_choice:
        return "one label"
    return "several labels" if task.multi_label else "a number"


def predict_corpus(
    predictor: Predictor, corpus: Corpus, *, watch: Watch = ignore_progress
) -> dict[str, TaskPredictions]:
    """Predicts every text that carries a label of one of the model's tasks; by task."""
    tasks = [task for name, task in predictor.tasks.items() if name in corpus.tasks]
    if not tasks:
        raise UserError(
            f"The model answers {', '.join(predictor.tasks)}; {corpus.name} is labelled for"
            f" {', '.join(corpus.tasks) or 'nothing'}. Nothing to score: name the column of the"
            f" labels in the source of a table, label.{next(iter(predictor.tasks))}=COLUMN."
        )
    for task in tasks:
        check_labels(task, corpus)
    names = {task.name for task in tasks}
    examples = [example for example in corpus if names & example.labels.keys()]
    if not examples:
        raise UserError(
            f"None of the {len(corpus)} texts chosen from {corpus.name} has a label of"
            f" {', '.join(names)}: nothing to score. Choose others with --where, or add labels."
        )
    answers = _predict(predictor, examples, watch)
    found = {}
    for task in tasks:
        own = [
            (example, answer.answers[task.name], answer.truncated, answer.unreadable)
            for example, answer in zip(examples, answers, strict=True)
            if task.name in example.labels
        ]
        if own:  # without labels there is no score
            found[task.name] = TaskPredictions(task, *zip(*own, strict=True))
    return found


def _predict(predictor: Predictor, examples: Sequence[Example], watch: Watch) -> list[Prediction]:
    """The corpus says of which variety a text is: where the model was calibrated for it, this
    decides which labels are possible.
    """
    known = known_varieties(predictor.runtimes)
    answers: dict[int, Prediction] = {}

    def variety_of(place: int) -> str | None:
        variety = examples[place].variety
        return variety if variety in known else predictor.variety

    for variety, places in grouped(range(len(examples)), variety_of).items():
        texts, pairs = zip(
            *((examples[one].text, examples[one].pair) for one in places), strict=True
        )
        own = predictor.for_variety(variety)
        found = predict_in_chunks(own, texts, pairs, what="testing", watch=watch)
        answers |= zip(places, found, strict=True)
    return [answers[place] for place in range(len(examples))]


def predict_in_chunks(
    predictor: Predictor,
    texts: Sequence[str],
    pairs: Sequence[str | None],
    *,
    what: str,
    watch: Watch,
) -> list[Prediction]:
    """The answers to all texts; so often progress is reported."""
    found: list[Prediction] = []
    for start in range(0, len(texts), CHUNK):
        end = start + CHUNK
        found += predictor.predict(texts[start:end], pairs=pairs[start:end])
        watch(what, len(found), len(texts), "")
    return found


def evaluate(
    model: Predictor | str | Path,
    data: Corpus | str,
    *,
    seed: int = 0,
    device: str | None = None,
    runtime: str | None = None,
    watch: Watch = ignore_progress,
) -> tuple[CellScores, ...]:
    """Scores a model, with 95 % intervals: over all texts first, then by cell if there are several.

    model: a loaded predictor, a model folder, or the name of a built-in model. data: a `Corpus`,
    all of whose texts are scored, or a source such as `sampler`: its test split, or, without one,
    the texts that the model of a folder was not trained on, with a warning that says so.

    >>> from litotes import load_corpus
    >>> rows = evaluate("builtin", load_corpus("sampler").where(variety="en-UK", split="test"))
    >>> rows[0].cell, rows[0].scores.task
    ('all', 'sentiment')
    """
    corpus = fair_texts(data, model) if isinstance(data, str) else data
    if not isinstance(model, Predictor):
        model = Predictor.load(model, device=device, runtime=runtime)
    return score_cells(predict_corpus(model, corpus, watch=watch), corpus, seed=seed)


def fair_texts(source: str, model: Predictor | str | Path) -> Corpus:
    """The texts to score a model on; what the caller's caller should know is a warning there."""
    trained_on = None if isinstance(model, Predictor) else read_trained_texts(model)
    corpus = select_fair_texts(load_corpus(source), trained_on)
    for note in corpus.notes:
        warnings.warn(note, stacklevel=3)
    return corpus


def score_cells(
    predictions: Predictions, corpus: Corpus, *, seed: int = 0
) -> tuple[CellScores, ...]:
    """The scores of each task, over the whole corpus and by cell."""
    rows = []
    for result in predictions.values():
        for cell, part in split_by_cell(result, corpus):
            counts = sum(part.truncated), sum(part.unreadable)
            rows.append(CellScores(cell, part.scores(seed=seed), *counts))
    return tuple(rows)


def split_by_cell(
    predictions: TaskPredictions, corpus: Corpus
) -> Iterator[tuple[str, TaskPredictions]]:
    """Yields all texts under the name "all", then those of each cell when there are several."""
    yield ALL, predictions
    cells = corpus.cells()
    if len(cells) < 2:
        return
    for cell in cells:
        part = predictions.only([cell_of(example) == cell for example in predictions.examples])
        if part.examples:
            yield NAMELESS if str(cell) == ALL else str(cell), part


def score_warnings(rows: Sequence[CellScores]) -> tuple[str, ...]:
    """Warnings about texts that were cut or are unreadable, and about cells where the model has
    collapsed.
    """
    return render_paragraphs("evaluation/notes.txt", "scores", rows=rows, all_cells=ALL)


def check_labels(task: Task, corpus: Corpus) -> None:
    """The corpus's labels must be among those the model knows."""
    theirs = corpus.tasks[task.name]
    if kind_of_answer(task) != kind_of_answer(theirs):
        raise UserError(
            f"The model answers {task.name} with {kind_of_answer(task)}, {corpus.name} with"
            f" {kind_of_answer(theirs)}: they do not fit. In the source of a table several=| says"
            " that a text may have several labels."
        )
    labels = (example.labels.get(task.name) for example in corpus)
    used = {str(one) for own in labels for one in (own if isinstance(own, tuple) else [own])}
    if strange := sorted(used & {*theirs.labels} - {*task.labels}):
        raise UserError(
            f"{corpus.name} has the {task.name} label {strange[0]!r}, which the model does not know"
            f" (it knows {', '.join(task.labels)}). Select or map the labels first (bicodemix:"
            " classes=2)."
        )


# Which texts of a corpus a model may be scored on: the test split, or texts it has not seen, with
# labels that it knows.


def select_fair_texts(corpus: Corpus, trained_on: Set[str] | None) -> Corpus:
    """The test split; of a corpus without one, all texts that the model was not trained on.

    trained_on: the hashes of the texts it was; None: its folder does not state them. What the user
    should know is in the notes of the corpus.
    """
    if corpus.splits() != ("train",):
        return warn_of_trained_texts(corpus.where(split=corpus.test_split()), trained_on)
    fresh = tuple(one for one in corpus if text_hash(one) not in (trained_on or ()))
    n_seen = len(corpus) - len(fresh)
    if not fresh:
        raise UserError(
            f"The model was trained on all {n_seen} texts of {corpus.name}: scores on them would"
            " say nothing. Give texts that are new to it."
        )
    facts = {"corpus": corpus, "n_seen": n_seen, "is_known": trained_on is not None}
    notes = render_paragraphs("evaluation/notes.txt", "no_split", **facts)
    return replace(corpus, examples=fresh).with_notes(*notes)


def warn_of_trained_texts(corpus: Corpus, trained_on: Set[str] | None) -> Corpus:
    """The same corpus, with a note where the model was trained on some of its texts."""
    n_seen = sum(text_hash(example) in trained_on for example in corpus) if trained_on else 0
    if not n_seen:
        return corpus
    return corpus.with_notes(
        f"WARNING: the model was trained on {n_seen} of these {len(corpus)} texts: scores on them"
        " are too high."
    )


def map_labels_as_trained(corpus: Corpus, folder: ModelFolder) -> Corpus:
    """The corpus with labels that the model does not know mapped as its recipe maps them."""
    for part in folder.models:
        recipe = part.description.get("facts", {}).get("recipe", {})
        try:
            stated = parse_as(dict[str, dict[str, str]], recipe.get("data", {}).get("labels", {}))
        except ValueError as error:
            raise part.damaged(f"the labels of its recipe: {error}") from error
        words = {}
        for task, mapping in stated.items():
            if task in corpus.tasks and task in part.tasks:
                strange = {*corpus.tasks[task].labels} - {*part.tasks[task].labels}
                words[task] = {word: label for word, label in mapping.items() if word in strange}
        corpus = corpus.map_labels(words)
    return corpus


# Two models on the same texts: what one gains over the other, over all of them and by cell.


@dataclass(frozen=True)
class ModelDifference(Tested):
    """The first model minus the second in one cell."""

    task: str
    cell: str
    difference: Difference
    adjusted_p: float

    def as_json(self) -> Json:
        content: Json = plain(self)
        return content | content.pop("difference")


def compare_models(
    own: Predictions, other: Predictions, corpus: Corpus, *, seed: int = 0
) -> tuple[ModelDifference, ...]:
    """Rows as those of `score_cells`, for the classification tasks that both models answer."""
    tasks = [name for name in own if name in other and own[name].task.is_choice]
    if not tasks:
        raise UserError(
            "The models have no task in common here that is answered with one label: one answers"
            f" {', '.join(own)}, the other {', '.join(other)}."
        )
    rows = []
    for name in tasks:
        # the labels of both in the same order, so that a number means the same word
        labels = tuple(dict.fromkeys([*own[name].task.labels, *other[name].task.labels]))
        both = [replace(one, task=Task(name, labels)) for one in (own[name], other[name])]
        cells = zip(*(split_by_cell(one, corpus) for one in both), strict=True)
        for (cell, first), (_, second) in cells:
            answers = first.predicted()[np.newaxis], second.predicted()[np.newaxis]  # (seed, text)
            apart = difference(first.gold(), *answers, len(labels), seed=seed)
            rows.append(ModelDifference(name, cell, apart, apart.p))
    return tuple(correct(rows, p_of=attrgetter("difference.p")))
