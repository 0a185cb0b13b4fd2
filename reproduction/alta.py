"""The ALTA 2026 shared task with a large encoder, and with students of under 50 M parameters.

    python -m reproduction.alta DATA OUT [--teacher FOLDER] [--seeds 5] [--workers N]

DATA: a folder with besstie in it. One model a task, told each text's source and variety. Every
attempt of `ATTEMPTS` is trained with each seed on the same nine tenths of the training texts; the
other tenth chooses, by the worse of the two varieties, the best attempt of either size for each
task. The score of a pair of models is the mean over tasks of macro-F1 in the worse variety of the
validation file, which chooses nothing. OUT/alta.json has all labels given. What is done is found
again.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from statistics import mean, stdev
from typing import Any

import torch

from litotes.core.machine import gpu_facts, machine
from litotes.core.storage import write_json
from litotes.distillation.answers import gather_lessons
from litotes.distillation.distill import plan_students, run_all
from litotes.distillation.plan import DistillPlan, plan_distillation
from litotes.distillation.settings import distill_recipe_of
from litotes.distillation.shapes import STUDENT, Shape
from litotes.distillation.students import StudentJob, run_student
from litotes.distillation.teachers import run_teacher
from litotes.model.checkpoint import load_model
from reproduction.student_options import student_parser
from reproduction.variety_scores import scores_by_variety

TASKS = ("sentiment", "sarcasm")
VARIETIES = ("en-AU", "en-UK")


@dataclass(frozen=True)
class Attempt:
    """share: of the teachers' answers, None to learn from labels alone."""

    is_large: bool
    epochs: int
    rate: float
    share: float | None = None


ATTEMPTS = {
    "mpnet, 3e-5": Attempt(True, 4, 3e-5),
    "mpnet, 2e-5": Attempt(True, 6, 2e-5),
    "minilm": Attempt(False, 6, 5e-5),
    "student, half an answer": Attempt(False, 6, 8e-5, share=0.5),
    "student, 0.9 of an answer": Attempt(False, 6, 8e-5, share=0.9),
}


def main() -> None:
    given = student_parser(__doc__, n_seeds=5).parse_args()
    plans = {task: make_plan(given, task) for task in TASKS}
    teachers = {
        f"{task}, {name}": job
        for task, plan in plans.items()
        for name, job in plan.teachers.items()
    }
    run_all(teachers, run_teacher, n_workers=given.workers, what="teachers")
    jobs = {task: make_jobs(plan, given) for task, plan in plans.items()}
    every = {f"{task}, {name}": job for task, own in jobs.items() for name, job in own.items()}
    run_all(every, run_student, n_workers=given.workers, what="models")
    found = {task: collect(plans[task], task, jobs[task], given.seeds) for task in TASKS}
    where = machine() | gpu_facts(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    chosen = {size: choose(found, is_large=size == "large") for size in ("small", "large")}
    write_json(given.out / "alta.json", {"machine": where, "tasks": found, "chosen": chosen})
    for size, one in chosen.items():
        print(size, one["attempts"], f"{one['mean']:.4f}", one["scores"], flush=True)


def make_plan(given: argparse.Namespace, task: str) -> DistillPlan:
    plain = {"batch_texts": 32, "held_out": 0.1, "calibration": "none"}
    content = {
        "data": {
            "source": f"besstie:{given.data}/besstie?prefix=variety",
            "tasks": [task],
            "where": {"variety": list(VARIETIES)},
        },
        "model": {"encoder": given.student, "head": "mean"},
        "training": {"selection": "worst_group", "patience": 10, **plain},
        "distill": {
            "folds": 3,
            "teachers_a_fold": 2,
            "unlabelled": "source",
            "baseline": False,
            "teachers_folder": str(given.out / "teachers" / task),
            "teacher": {
                "model": {"encoder": given.teacher},
                "training": {"epochs": given.epochs or 4, "learning_rate": 3e-5},
            },
        },
    }
    return plan_distillation(distill_recipe_of(content, "alta.py"), given.out / task)


def make_jobs(plan: DistillPlan, given: argparse.Namespace) -> dict[str, StudentJob]:
    """All models of a task by name, the slowest first."""
    lessons = gather_lessons(plan)
    first = plan_students(plan, lessons)[STUDENT]
    jobs = {}
    for name, attempt in ATTEMPTS.items():
        encoder = given.teacher if attempt.is_large else given.student
        share = attempt.share
        for seed in range(given.seeds):
            folder = plan.out.with_name("models") / f"{plan.out.name}, {name}, {seed}"
            recipe = first.recipe.changed(
                seed=seed,
                model__encoder=encoder,
                training__epochs=given.epochs or attempt.epochs,
                training__learning_rate=attempt.rate,
                training__split_seed=plan.recipe.student.seed,
            )
            jobs[f"{name}, {seed}"] = replace(
                first,
                name=f"{name}, {seed}",
                recipe=recipe,
                shape=Shape(encoder),
                lessons=None if share is None else replace(lessons, share=share),
                model_folder=folder / "model",
                folder=folder,
            )
    return jobs


def collect(
    plan: DistillPlan, task: str, jobs: dict[str, StudentJob], n_seeds: int
) -> dict[str, Any]:
    """For each attempt and seed: labels given, macro-F1 by variety, and the held-out score."""
    test = plan.data.test
    if test is None:
        raise ValueError("BESSTIE has no validation texts here")
    texts = [example for example in test if task in example.labels]
    labels = test.tasks[task].labels
    gold = [labels.index(example.labels[task]) for example in texts]
    varieties = [example.variety or "" for example in texts]
    attempts: dict[str, dict[str, list[Any]]] = {}
    for name in ATTEMPTS:
        own: dict[str, list[Any]] = {"predicted": [], "valid": [], "held_out": []}
        for seed in range(n_seeds):
            job = jobs[f"{name}, {seed}"]
            predicted = [int(number) for number in job.test_answers()[task]]
            scores = scores_by_variety(gold, predicted, varieties)
            own["predicted"].append(predicted)
            own["valid"].append([round(scores[variety], 4) for variety in VARIETIES])
            history = load_model(job.model_folder).facts["history"]
            own["held_out"].append(max(line["held_out"] for line in history))
        attempts[name] = own
    return {"labels": list(labels), "gold": gold, "attempts": attempts}


def choose(found: dict[str, Any], *, is_large: bool) -> dict[str, Any]:
    """The attempt of this size that the held-out texts favour for each task, and the pair's score
    with every seed.
    """
    names = [name for name, attempt in ATTEMPTS.items() if attempt.is_large == is_large]
    chosen, worse = {}, []
    for task, own in found.items():
        attempts = own["attempts"]
        chosen[task] = max(names, key=lambda name: mean(attempts[name]["held_out"]))
        worse.append([min(pair) for pair in attempts[chosen[task]]["valid"]])
    scores = [round(mean(pair), 4) for pair in zip(*worse, strict=True)]
    spread = stdev(scores) if len(scores) > 1 else 0.0
    return {"attempts": chosen, "scores": scores, "mean": mean(scores), "stdev": spread}


if __name__ == "__main__":
    main()
