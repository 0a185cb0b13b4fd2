"""Quality against speed: the teachers, their students, and a student of labels alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.machine import choose_device
from litotes.core.numbers import Floats, classes_of, macro_f1
from litotes.core.progress import Watch
from litotes.core.values import MISSING, Task
from litotes.data.corpus import Corpus
from litotes.encoder import pretrained
from litotes.encoder.packing import make_text_set, targets
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.evaluation.scores import N_RESAMPLES, interval
from litotes.evaluation.significance import (
    AnswerPatterns,
    find_patterns,
    mean_interval,
    scores_of,
    seed_margin,
    split_draws,
    widen_interval,
)
from litotes.model.checkpoint import load_model
from litotes.model.classifier import Classifier, seconds_in_turns
from litotes.model.folder import open_model
from litotes.training.distillation.plan import DistillPlan
from litotes.training.distillation.students import StudentJob
from litotes.training.distillation.teachers import read_answers

N_TIMED = 128
"""Texts that speed is measured on."""
TEACHER = "teacher"
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Score:
    """Macro-F1 on the test split, mean over `n_models` models, with its 95 % interval over texts
    and models.
    """

    macro_f1: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Point:
    """A kind of model: how good, how fast, how large.

    texts_per_second: on this machine, from pieces to answers. score: the mean over tasks; None
    where there is nothing to test on.
    """

    name: str
    n_models: int
    n_layers: int
    width: int
    n_parameters: int
    texts_per_second: float
    score: Score | None
    tasks: Mapping[str, Score]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def measure_points(
    plan: DistillPlan, students: Sequence[StudentJob], *, watch: Watch
) -> tuple[Point, ...]:
    """A point for the teachers, the students and the baseline."""
    models: dict[str, tuple[Classifier, PieceTokenizer]] = {TEACHER: _a_teacher(plan)}
    answers: dict[str, list[Mapping[str, Sequence[float]]]] = {TEACHER: []}
    for job in plan.teachers.values():
        given = read_answers(job).test
        answers[TEACHER].append({task: labels.tolist() for task, labels in given.items()})
    for student in students:
        model = load_model(student.model_folder)
        models[student.name] = (model.classifier, model.tokenizer)
        answers[student.name] = [student.test_answers()]
    speeds = _texts_per_second(plan, models, watch)
    points = []
    for name, (classifier, _) in models.items():
        spec = classifier.encoder.spec
        tasks = _scores(plan.data.test, answers[name], seed=plan.recipe.student.seed)
        points.append(
            Point(
                name,
                n_models=len(answers[name]),
                n_layers=spec.n_layers,
                width=spec.width,
                n_parameters=sum(parameter.numel() for parameter in classifier.parameters()),
                texts_per_second=speeds[name],
                score=_mean_score(plan.data.test, answers[name], seed=plan.recipe.student.seed),
                tasks=tasks,
            )
        )
    return tuple(points)


def _a_teacher(plan: DistillPlan) -> tuple[Classifier, PieceTokenizer]:
    """A classifier as large as a teacher, whose weights may be gone."""
    job = next(iter(plan.teachers.values()))
    if job.recipe is None:
        model = load_model(open_model(job.model_folder).models[0])
        return model.classifier, model.tokenizer
    settings = job.recipe.model
    choices = settings.model_dump(
        include={"weighting", "weighting_options", "pruning", "pruning_options"}
    )
    source = pretrained.load(settings.encoder, max_pieces=settings.max_pieces, **choices)
    tasks = list(plan.data.train.tasks.values())
    classifier = Classifier(source.encoder, tasks, head=settings.head, dropout=settings.dropout)
    return classifier, source.tokenizer


def _texts_per_second(
    plan: DistillPlan, models: Mapping[str, tuple[Classifier, PieceTokenizer]], watch: Watch
) -> dict[str, float]:
    device = choose_device(plan.device)
    texts = (plan.data.test or plan.data.train).examples[:N_TIMED]
    timed = {}
    for name, (classifier, tokenizer) in models.items():
        timed[name] = (classifier.to(device), make_text_set(texts, (), tokenizer))
    seconds = seconds_in_turns(timed, what="distill: rounds", n_rounds=3, watch=watch)
    return {name: len(texts) / own for name, own in seconds.items()}


def _scores(
    test: Corpus | None, models: Sequence[Mapping[str, Sequence[float]]], *, seed: int
) -> dict[str, Score]:
    """The score of each classification task."""
    scores = {}
    for task, gold, labels in _by_task(test, models):
        n_classes = len(task.labels)
        value = float(scores_of(find_patterns(gold, labels, n_classes)).mean())
        scores[task.name] = Score(value, mean_interval(gold, labels, n_classes, seed=seed))
    return scores


def _mean_score(
    test: Corpus | None, models: Sequence[Mapping[str, Sequence[float]]], *, seed: int
) -> Score | None:
    """The mean over tasks; a text is drawn with all of its labels."""
    tasks = list(_by_task(test, models))
    if test is None or not tasks:
        return None
    by_task = []
    for task, gold, labels in tasks:
        by_task.append(scores_of(find_patterns(gold, labels, len(task.labels))))  # (model,)
    of_models = np.mean(by_task, axis=0)
    value = float(of_models.mean())
    over_texts = interval(_resample(test, tasks, seed))
    margin = seed_margin(of_models)
    return Score(value, widen_interval(value, over_texts, margin, within=(0.0, 1.0)))


def _resample(test: Corpus, tasks: Sequence[tuple[Task, Labels, Labels]], seed: int) -> Floats:
    """The mean over tasks and models, on resampled texts. (resample,)"""
    rows = []
    for task, gold, labels in tasks:
        own = np.full((1 + len(labels), len(test)), MISSING)
        own[:, [task.name in example.labels for example in test]] = np.vstack([gold, labels])
        rows.append(own)
    # (task · (1 + model), pattern): few texts differ in every label and answer
    columns, n = np.unique(np.vstack(rows), axis=1, return_counts=True)
    parts = np.split(columns, len(tasks))
    generator, drawn = np.random.default_rng(seed), []
    for size in split_draws(N_RESAMPLES, len(n)):
        times = generator.multinomial(n.sum(), n / n.sum(), size=size)  # (resample, pattern)
        scores = []
        for (task, _, _), part in zip(tasks, parts, strict=True):
            has = part[0] != MISSING
            found = AnswerPatterns(n[has], part[0, has], part[1:, has], len(task.labels))
            among = np.array([classes_of(counts) for counts in found.confusions(found.n)])
            scores.append(macro_f1(found.confusions(times[:, has]), among).mean(1))
        drawn.append(np.mean(scores, axis=0))
    return np.concatenate(drawn)


def _by_task(
    test: Corpus | None, models: Sequence[Mapping[str, Sequence[float]]]
) -> list[tuple[Task, Labels, Labels]]:
    """Each classification task that all models answer, its gold labels (text,) and their labels
    (model, text).
    """
    found = []
    for task in () if test is None else test.tasks.values():
        if not task.is_choice or any(task.name not in answers for answers in models):
            continue
        labelled = [example for example in test or () if task.name in example.labels]
        gold = targets(labelled, [task])[task.name].numpy()
        labels = np.array([answers[task.name] for answers in models], dtype=np.int64)
        found.append((task, gold, labels))
    return found
