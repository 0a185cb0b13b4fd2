"""What of a large encoder's advantage a small student learns: BESSTIE, all varieties together.

    python -m reproduction.besstie_students DATA OUT [--teacher FOLDER] [--workers N] [--cells …]

DATA: a folder with besstie, twitter and tweeteval-irony in it. For each source and task of `CELLS`:
both encoders from labels alone, and students of cross-fitted teachers that also answer texts
without labels. OUT/students.json has every label given, from which intervals follow. What is done
is found again. All settings are fixed below; the test texts choose nothing.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from statistics import mean
from typing import Any

import torch

from litotes.core.machine import gpu_facts, machine
from litotes.core.storage import write_json
from litotes.evaluation.evaluate import predict_corpus
from litotes.model.checkpoint import average_models, load_model
from litotes.prediction.predictor import Predictor
from litotes.training.distillation.answers import gather_lessons
from litotes.training.distillation.distill import plan_students, run_all
from litotes.training.distillation.plan import DistillPlan, plan_distillation
from litotes.training.distillation.settings import distill_recipe_of
from litotes.training.distillation.shapes import STUDENT, Shape
from litotes.training.distillation.students import StudentJob, run_student
from litotes.training.distillation.teachers import TeacherJob, run_teacher
from reproduction.student_options import student_parser
from reproduction.variety_scores import scores_by_variety

CELLS = (("Google", "sentiment"), ("Reddit", "sentiment"), ("Reddit", "sarcasm"))
MORE = ("twitter:{0}/twitter?min_words=25", "irony:{0}/tweeteval-irony")
"""Texts to be answered by teachers; their labels are not read."""

TAUGHT: dict[str, dict[str, Any]] = {
    "half an answer": {"share": 0.5},
    "0.9 of an answer": {"share": 0.9},
    "three layers": {"share": 0.5, "layers": 3},
}
AVERAGED = "half an answer"
"""The students whose weights are also averaged over seeds."""


def main() -> None:
    parser = student_parser(__doc__, n_seeds=3)
    names = [" ".join(cell) for cell in CELLS]
    parser.add_argument("--cells", nargs="+", choices=names, default=names, metavar="CELL")
    given = parser.parse_args()
    wanted = [cell for cell in CELLS if " ".join(cell) in given.cells]
    plans = {cell: make_plan(given, *cell) for cell in wanted}
    teachers: dict[str, TeacherJob] = {}
    for (source, task), plan in plans.items():
        teachers |= {f"{source} {task}, {name}": job for name, job in plan.teachers.items()}
    run_all(teachers, run_teacher, n_workers=given.workers, what="teachers")
    jobs = {cell: make_jobs(plan, given) for cell, plan in plans.items()}
    every = {
        f"{source} {task}, {name}": job
        for (source, task), own in jobs.items()
        for name, job in own.items()
    }
    run_all(every, run_student, n_workers=given.workers, what="students")
    content = {"machine": machine() | gpu_facts(torch.device("cuda" if _gpu() else "cpu"))}
    cells = [collect(plan, cell, jobs[cell], given.seeds) for cell, plan in plans.items()]
    write_json(given.out / "students.json", content | {"cells": cells})
    for cell in cells:
        for name, scores in cell["macro_f1"].items():
            print(cell["source"], cell["task"], name, scores, flush=True)


def _gpu() -> bool:
    return torch.cuda.is_available()


def make_plan(given: argparse.Namespace, source: str, task: str) -> DistillPlan:
    plain = {"batch_texts": 32, "held_out": 0.0, "calibration": "none"}
    content = {
        "data": {
            "source": f"besstie:{given.data}/besstie",
            "tasks": [task],
            "where": {"source": source},
        },
        "model": {"encoder": given.student, "head": "mean"},
        "training": {"epochs": given.epochs or 6, "learning_rate": 8e-5, **plain},
        "distill": {
            "folds": 3,
            "teachers_a_fold": 2,
            "unlabelled": "source",
            "more": [more.format(given.data) for more in MORE],
            "baseline": False,
            "teachers_folder": str(given.out / "teachers" / f"{source}-{task}"),
            "teacher": {
                "model": {"encoder": given.teacher},
                "training": {"epochs": given.epochs or 4, "learning_rate": 3e-5},
            },
        },
    }
    recipe = distill_recipe_of(content, "besstie_students.py")
    return plan_distillation(recipe, given.out / f"{source}-{task}")


def make_jobs(plan: DistillPlan, given: argparse.Namespace) -> dict[str, StudentJob]:
    """All models of a cell by name, the slowest first."""
    lessons = gather_lessons(plan)
    first = plan_students(plan, lessons)[STUDENT]
    jobs = {}
    alone: dict[str, tuple[str, int, float]] = {
        "mpnet": (given.teacher, 4, 3e-5),
        "minilm": (given.student, 6, 5e-5),
    }
    for seed in range(given.seeds):
        seeded = {"seed": seed}
        for name, (encoder, epochs, rate) in alone.items():
            changes = seeded | {"model__encoder": encoder, "training__learning_rate": rate}
            changes["training__epochs"] = given.epochs or epochs
            jobs[f"{name}, {seed}"] = replace(
                first,
                recipe=first.recipe.changed(**changes),
                shape=Shape(encoder),
                lessons=None,
            )
        for name, settings in TAUGHT.items():
            jobs[f"{name}, {seed}"] = replace(
                first,
                recipe=first.recipe.changed(**seeded),
                shape=replace(first.shape, layers=settings.get("layers")),
                lessons=replace(lessons, share=settings["share"]),
            )
    folders = {name: plan.out.with_name("students") / f"{plan.out.name}, {name}" for name in jobs}
    return {
        name: replace(job, name=name, model_folder=folders[name] / "model", folder=folders[name])
        for name, job in jobs.items()
    }


def collect(
    plan: DistillPlan, cell: tuple[str, str], jobs: dict[str, StudentJob], n_seeds: int
) -> dict[str, Any]:
    """Every label given to the test texts, and the mean of the varieties' macro-F1."""
    source, task = cell
    test = plan.data.test
    if test is None:
        raise ValueError("BESSTIE has no test texts here")
    labels = test.tasks[task].labels
    texts = [example for example in test if task in example.labels]
    gold = [labels.index(example.labels[task]) for example in texts]
    varieties = [example.variety or "" for example in texts]
    predicted: dict[str, list[list[int]]] = {}
    for name, job in jobs.items():
        variant, _, _ = name.rpartition(",")
        predicted.setdefault(variant, []).append([int(n) for n in job.test_answers()[task]])
    own = [jobs[f"{AVERAGED}, {seed}"].model_folder for seed in range(n_seeds)]
    averaged = Predictor(average_models([load_model(folder) for folder in own]))
    answers = predict_corpus(averaged, test)[task].predicted()
    predicted[f"{AVERAGED}, mean of {n_seeds}"] = [answers.tolist()]
    scores = {
        name: [round(mean(scores_by_variety(gold, some, varieties).values()), 4) for some in runs]
        for name, runs in predicted.items()
    }
    return {
        "source": source,
        "task": task,
        "labels": list(labels),
        "texts": {"train": len(plan.data.train), "others": len(plan.others)},
        "gold": gold,
        "varieties": varieties,
        "predicted": predicted,
        "macro_f1": scores,
    }


if __name__ == "__main__":
    main()
