"""Scores of a model on a corpus, over all of it and by cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np

from litotes.core.errors import UserError
from litotes.core.json_text import parse_as
from litotes.core.progress import Watch, ignore_progress
from litotes.core.text import one_line
from litotes.core.values import Answer, Example, Prediction, Task
from litotes.data.cells import ALL, NAMELESS, cell_of
from litotes.data.corpus import Corpus
from litotes.evaluation.reliability import Reliability, ece_by_chance, reliability
from litotes.evaluation.risk_coverage import RiskCoverage, risk_coverage
from litotes.evaluation.scores import RegressionScores, Scores, score, score_regression
from litotes.evaluation.several_scores import SeveralScores, score_several
from litotes.prediction.answers import known_varieties
from litotes.prediction.predictor import Predictor

_CHUNK = 256
AnyScores = Scores | RegressionScores | SeveralScores


@dataclass(frozen=True)
class CellScores:
    """The scores of one task in one cell; the cell "all" is the whole corpus."""

    cell: str
    scores: AnyScores
    n_truncated: int = 0
    n_unreadable: int = 0

    def __repr__(self) -> str:
        return one_line(self, cell=self.cell, **self.scores.headline())

    def as_json(self) -> dict[str, Any]:
        counts = {"n_truncated": self.n_truncated, "n_unreadable": self.n_unreadable}
        return {"cell": self.cell, **counts, **self.scores.as_json()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> CellScores:
        """What is not such scores is a ValueError."""
        scores = dict(content)
        cell, n_truncated = scores.pop("cell", None), scores.pop("n_truncated", None)
        n_unreadable = scores.pop("n_unreadable", 0)  # earlier versions did not count them
        parsed: AnyScores
        if "subset_accuracy" in scores:
            parsed = parse_as(SeveralScores, scores)
        elif "classes" in scores:
            parsed = parse_as(Scores, scores)
        else:
            parsed = parse_as(RegressionScores, scores)
        counts = [parse_as(int, count) for count in (n_truncated, n_unreadable)]
        return cls(parse_as(str, cell), parsed, *counts)


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
        scores = score(self.gold(), self.predicted(), self.task, seed=seed)
        return replace(
            scores, calibration_error=self.reliability().ece, risk_area=self.risk_coverage().area
        )

    def reliability(self) -> Reliability:
        """How reliable the probabilities of the given labels are."""
        return reliability(self._confidence(), self.gold() == self.predicted())

    def ece_by_chance(self, *, seed: int = 0) -> float:
        """The calibration error that chance alone would give."""
        return ece_by_chance(self._confidence(), seed=seed)

    def risk_coverage(self) -> RiskCoverage:
        """How many mistakes remain when the least sure labels are left out."""
        return risk_coverage(self._confidence(), self.gold() == self.predicted())

    def _confidence(self) -> list[float]:
        return [answer.probability or 0.0 for answer in self.answers]

    def only(self, keep: Sequence[bool]) -> TaskPredictions:
        """A part of the texts: those whose `keep` is true."""
        return TaskPredictions(
            self.task,
            tuple(compress(self.examples, keep)),
            tuple(compress(self.answers, keep)),
            tuple(compress(self.truncated, keep)),
            tuple(compress(self.unreadable, keep)),
        )

    def row(self, cell: str, *, seed: int) -> CellScores:
        scores = self.scores(seed=seed)
        return CellScores(cell, scores, sum(self.truncated), sum(self.unreadable))

    def _numbers(self, labels: Sequence[object]) -> np.ndarray[Any, Any]:
        """Class numbers or numbers, (text,); of several labels which a text has, (text, class)."""
        if self.task.is_regression:
            return np.array(labels, dtype=float)
        if self.task.multi_label:
            words = [own if isinstance(own, tuple) else () for own in labels]
            flags = [[label in own for label in self.task.labels] for own in words]
            return np.array(flags, dtype=np.bool_)
        return np.array([self.task.labels.index(str(label)) for label in labels], dtype=np.int64)


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
        predictions = _task_predictions(task, examples, answers)
        if predictions.examples:  # without labels there is no score
            found[task.name] = predictions
    return found


def _predict(predictor: Predictor, examples: Sequence[Example], watch: Watch) -> list[Prediction]:
    answers: list[Prediction] = []
    for start in range(0, len(examples), _CHUNK):
        answers += _predict_chunk(predictor, examples[start : start + _CHUNK])
        watch("testing", len(answers), len(examples), "")
    return answers


def _predict_chunk(predictor: Predictor, examples: Sequence[Example]) -> list[Prediction]:
    """The corpus says of which variety a text is: where the model was calibrated for it, this
    decides which labels are possible.
    """
    known = known_varieties(predictor.runtimes)
    places_of: dict[str | None, list[int]] = {}
    for place, example in enumerate(examples):
        variety = example.variety if example.variety in known else predictor.variety
        places_of.setdefault(variety, []).append(place)
    found: dict[int, Prediction] = {}
    for variety, places in places_of.items():
        texts = [examples[place].text for place in places]
        pairs = [examples[place].pair for place in places]
        made = predictor.for_variety(variety).predict(texts, pairs=pairs)
        found.update(zip(places, made, strict=True))
    return [found[place] for place in range(len(examples))]


def evaluate(
    predictor: Predictor, corpus: Corpus, *, seed: int = 0, watch: Watch = ignore_progress
) -> tuple[CellScores, ...]:
    """Scores per task: over the whole corpus first, then by cell when there are several."""
    return score_cells(predict_corpus(predictor, corpus, watch=watch), corpus, seed=seed)


def score_cells(
    predictions: Mapping[str, TaskPredictions], corpus: Corpus, *, seed: int = 0
) -> tuple[CellScores, ...]:
    """The scores of each task, over the whole corpus and by cell."""
    rows = []
    for result in predictions.values():
        for cell, part in split_by_cell(result, corpus):
            rows.append(part.row(cell, seed=seed))
    return tuple(rows)


def split_by_cell(
    predictions: TaskPredictions, corpus: Corpus
) -> Iterator[tuple[str, TaskPredictions]]:
    """All texts under the name "all", then those of each cell when there are several."""
    yield ALL, predictions
    cells = corpus.cells()
    if len(cells) < 2:
        return
    for cell in cells:
        part = predictions.only([cell_of(example) == cell for example in predictions.examples])
        if part.examples:
            yield NAMELESS if str(cell) == ALL else str(cell), part


def score_warnings(rows: Sequence[CellScores]) -> list[str]:
    """Warnings about texts that were cut or are unreadable, and about cells where the model has
    collapsed.
    """
    cut, unreadable, collapsed = [], [], []
    for row in rows:
        scores = row.scores
        if row.cell == ALL and row.n_truncated:
            cut.append(
                f"{row.n_truncated} of {scores.n} {scores.task} texts tested on are longer than the"
                " model reads; their ends were not seen."
            )
        if row.cell == ALL and row.n_unreadable:
            unreadable.append(
                f"{row.n_unreadable} of {scores.n} {scores.task} texts tested on are unreadable:"
                " the model knows no part of them."
            )
        if isinstance(scores, Scores) and scores.collapsed_to is not None:
            collapsed.append(
                f"COLLAPSED: on {row.cell} the {scores.task} model answers {scores.collapsed_to!r}"
                f" to every one of {scores.n} texts. Its score is that of a constant; train longer,"
                " with another seed or learning rate, or with class weights."
            )
    return cut + unreadable + collapsed


def _task_predictions(
    task: Task, examples: Sequence[Example], answers: Sequence[Prediction]
) -> TaskPredictions:
    has_label = [task.name in example.labels for example in examples]
    labelled = list(compress(answers, has_label))
    return TaskPredictions(
        task,
        tuple(compress(examples, has_label)),
        tuple(answer.answers[task.name] for answer in labelled),
        tuple(answer.truncated for answer in labelled),
        tuple(answer.unreadable for answer in labelled),
    )


def check_labels(task: Task, corpus: Corpus) -> None:
    """The corpus's labels must be among those the model knows."""
    theirs = corpus.tasks[task.name]
    if task.multi_label != theirs.multi_label:
        raise UserError(
            f"Of {task.name} a text may have several labels on one side, and has one on the other;"
            f" model and {corpus.name} do not fit. In the source of a table several=| says that it"
            " may have several."
        )
    if task.is_regression != theirs.is_regression:
        raise UserError(
            f"{task.name} is answered with a number on one side and with words on the other; model"
            f" and {corpus.name} do not fit."
        )
    strange = sorted(set(theirs.labels) - set(task.labels))
    used: set[str] = set()
    for example in corpus:
        label = example.labels.get(task.name)
        used.update(label if isinstance(label, tuple) else (str(label),))
    if any(label in used for label in strange):
        raise UserError(
            f"{corpus.name} has the {task.name} label {strange[0]!r}, which the model does not know"
            f" (it knows {', '.join(task.labels)}). Select or map the labels first (bicodemix:"
            " classes=2)."
        )
