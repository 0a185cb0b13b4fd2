"""Scores of a model on a corpus, over all of it and by cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from litotes.core.errors import UserError
from litotes.core.progress import Watch, ignore_progress
from litotes.core.values import Answer, Example, Prediction, Task
from litotes.data.corpus import Corpus
from litotes.evaluation.reliability import Reliability, reliability
from litotes.evaluation.scores import ClassScores, RegressionScores, Scores, score, score_regression
from litotes.predict.predictor import Predictor

_CHUNK = 256
AnyScores = Scores | RegressionScores


@dataclass(frozen=True)
class CellScores:
    """The scores of one task in one cell; the cell "all" is the whole corpus."""

    cell: str
    scores: AnyScores
    n_truncated: int = 0

    def as_json(self) -> dict[str, Any]:
        return {"cell": self.cell, "n_truncated": self.n_truncated} | self.scores.as_json()

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> CellScores:
        content = dict(content)
        cell, n_truncated = content.pop("cell"), content.pop("n_truncated")
        content["interval"] = tuple(content["interval"])
        if "classes" not in content:
            return cls(cell, RegressionScores(**content), n_truncated)
        content["classes"] = tuple(ClassScores(**one) for one in content["classes"])
        return cls(cell, Scores(**content), n_truncated)


@dataclass(frozen=True)
class TaskPredictions:
    """Texts of one task with the gold label and the model's answer."""

    task: Task
    examples: tuple[Example, ...]
    answers: tuple[Answer, ...]
    truncated: tuple[bool, ...]

    def gold(self) -> np.ndarray[Any, Any]:
        return self._numbers([example.labels[self.task.name] for example in self.examples])

    def predicted(self) -> np.ndarray[Any, Any]:
        return self._numbers([answer.label for answer in self.answers])

    def scores(self, *, seed: int = 0) -> AnyScores:
        if self.task.is_regression:
            return score_regression(self.gold(), self.predicted(), self.task, seed=seed)
        scores = score(self.gold(), self.predicted(), self.task, seed=seed)
        return replace(scores, calibration_error=self.reliability().ece)

    def reliability(self) -> Reliability:
        """How far the probabilities of the labels given can be believed."""
        return reliability(
            [answer.probability or 0.0 for answer in self.answers], self.gold() == self.predicted()
        )

    def only(self, keep: Sequence[bool]) -> TaskPredictions:
        kept = [place for place, wanted in enumerate(keep) if wanted]
        return TaskPredictions(
            self.task,
            tuple(self.examples[p] for p in kept),
            tuple(self.answers[p] for p in kept),
            tuple(self.truncated[p] for p in kept),
        )

    def row(self, cell: str, *, seed: int) -> CellScores:
        return CellScores(cell, self.scores(seed=seed), sum(self.truncated))

    def _numbers(self, labels: Sequence[object]) -> np.ndarray[Any, Any]:
        if self.task.is_regression:
            return np.array(labels, dtype=float)
        return np.array([self.task.labels.index(str(label)) for label in labels], dtype=np.int64)


def predict_corpus(
    predictor: Predictor, corpus: Corpus, *, watch: Watch = ignore_progress
) -> dict[str, TaskPredictions]:
    """Asks the model about every text that carries a label of one of its tasks. {task: TaskPredictions}"""
    tasks = [task for name, task in predictor.tasks.items() if name in corpus.tasks]
    if not tasks:
        raise UserError(
            f"The model answers {', '.join(predictor.tasks)}; {corpus.name} is labelled for"
            f" {', '.join(corpus.tasks)}. Nothing to score."
        )
    for task in tasks:
        check_labels(task, corpus)
    examples = [example for example in corpus if any(task.name in example.labels for task in tasks)]
    answers: list[Prediction] = []
    for start in range(0, len(examples), _CHUNK):
        chunk = examples[start : start + _CHUNK]
        answers.extend(
            predictor.predict(
                [example.text for example in chunk], pairs=[example.pair for example in chunk]
            )
        )
        watch("testing", len(answers), len(examples), "")
    predictions = {task.name: _task_predictions(task, examples, answers) for task in tasks}
    # an unlabelled task has no score
    return {name: result for name, result in predictions.items() if result.examples}


def evaluate(
    predictor: Predictor, corpus: Corpus, *, seed: int = 0, watch: Watch = ignore_progress
) -> tuple[CellScores, ...]:
    """Scores per task: over the whole corpus first, then by cell when there are several."""
    return score_cells(predict_corpus(predictor, corpus, watch=watch), corpus, seed=seed)


def score_cells(
    predictions: Mapping[str, TaskPredictions], corpus: Corpus, *, seed: int = 0
) -> tuple[CellScores, ...]:
    return tuple(
        part.row(cell, seed=seed)
        for result in predictions.values()
        for cell, part in split_by_cell(result, corpus)
    )


def split_by_cell(
    predictions: TaskPredictions, corpus: Corpus
) -> Iterator[tuple[str, TaskPredictions]]:
    """All texts under the name "all", then those of each cell of the corpus when there are several."""
    yield "all", predictions
    cells = corpus.cells()
    for cell in cells if len(cells) > 1 else ():
        part = predictions.only(
            [
                (example.variety, example.source) == (cell.variety, cell.source)
                for example in predictions.examples
            ]
        )
        if part.examples:
            yield str(cell), part


def score_warnings(rows: Sequence[CellScores]) -> list[str]:
    """A loud word for every cell in which the model gives one answer to everything, and one for
    texts that were cut.
    """
    cut = [
        f"{row.n_truncated} of {row.scores.n} {row.scores.task} texts tested on are longer than the"
        " model reads; their ends were not seen."
        for row in rows
        if row.cell == "all" and row.n_truncated
    ]
    return cut + [
        f"COLLAPSED: on {row.cell} the {row.scores.task} model answers {row.scores.collapsed_to!r}"
        f" to every one of {row.scores.n} texts. Its score is that of a constant; train longer,"
        " with another seed or learning rate, or with class weights."
        for row in rows
        if isinstance(row.scores, Scores) and row.scores.collapsed_to is not None
    ]


def _task_predictions(
    task: Task, examples: Sequence[Example], answers: Sequence[Prediction]
) -> TaskPredictions:
    places = [place for place, example in enumerate(examples) if task.name in example.labels]
    return TaskPredictions(
        task,
        tuple(examples[p] for p in places),
        tuple(answers[p].answers[task.name] for p in places),
        tuple(answers[p].truncated for p in places),
    )


def check_labels(task: Task, corpus: Corpus) -> None:
    """The corpus's labels must be among those the model knows."""
    if task.is_regression != corpus.tasks[task.name].is_regression:
        raise UserError(
            f"{task.name} is answered with a number on one side and with words on the other; model"
            f" and {corpus.name} do not fit."
        )
    strange = sorted(set(corpus.tasks[task.name].labels) - set(task.labels))
    used = {str(example.labels.get(task.name)) for example in corpus}
    if any(label in used for label in strange):
        raise UserError(
            f"{corpus.name} has the {task.name} label {strange[0]!r}, which the model does not know"
            f" (it knows {', '.join(task.labels)}). Select or map the labels first (bicodemix:"
            " classes=2)."
        )
