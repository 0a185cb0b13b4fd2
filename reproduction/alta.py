"""The ALTA 2026 shared task with a large encoder, and with students of under 50 M parameters.

    python -m reproduction.alta DATA OUT [--teacher FOLDER] [--seeds 5] [--workers N]

DATA: a folder with besstie in it. One model a task, told each text's source and variety. Every
attempt of `ATTEMPTS` is trained with each seed on the same nine tenths of the training texts; the
other tenth chooses, by the worse of the two varieties, the best attempt of either size for each
task. The score of a pair of models is the mean over tasks of macro-F1 in the worse variety of the
validation file, which chooses nothing. OUT/alta.json has all labels given, and for the chosen pairs
and the vote of their seeds intervals of 95 % over texts. What is done is found again; attempts
follow one another, and of a run that was stopped those are judged that are whole (--found).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch

from bench.gpu_facts import gpu_facts
from litotes.core.machine import machine
from litotes.core.numbers import Floats, confusion, macro_f1
from litotes.core.storage import is_complete, write_json
from litotes.evaluation.scores import interval
from litotes.evaluation.shared_task import VARIETIES
from litotes.training.distillation.distill import plan_students, run_all, run_job
from litotes.training.distillation.plan import (
    DistillPlan,
    DistillRecipe,
    Job,
    Shape,
    plan_distillation,
)
from litotes.training.distillation.students import STUDENT
from litotes.training.distillation.teachers import gather_lessons, read_answers

TASKS = ("sentiment", "sarcasm")
N_RESAMPLES = 2000


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
    parser = student_parser(__doc__, n_seeds=5)
    parser.add_argument("--found", action="store_true", help="train nothing, judge what there is")
    given = parser.parse_args()
    plans = {task: make_plan(given, task) for task in TASKS}
    teachers = {
        f"{task}, {name}": job
        for task, plan in plans.items()
        for name, job in plan.teachers.items()
    }
    if not given.found:
        run_all(teachers, run_job, n_workers=given.workers, what="teachers")
        jobs = {task: make_jobs(plan, given) for task, plan in plans.items()}
        # attempt by attempt, for both tasks
        names = list(jobs[TASKS[0]])
        every = {f"{task}, {name}": jobs[task][name] for name in names for task in TASKS}
        run_all(every, run_job, n_workers=given.workers, what="models")
    found = {task: collect(plan, task, given.seeds) for task, plan in plans.items()}
    where = machine() | gpu_facts(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    chosen = {size: choose(found, is_large=size == "large") for size in ("small", "large")}
    over_texts(found, chosen)
    write_json(given.out / "alta.json", {"machine": where, "tasks": found, "chosen": chosen})
    for size, one in chosen.items():
        print(size, one["attempts"], f"{one['mean']:.4f}", one["scores"], flush=True)
        print(one["over_texts"], one.get("better", ""), flush=True)


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
    return plan_distillation(DistillRecipe.of(content, "alta.py"), given.out / task)


def make_jobs(plan: DistillPlan, given: argparse.Namespace) -> dict[str, Job]:
    """All models of a task by name, the slowest first."""
    lessons = gather_lessons(plan)
    first = plan_students(plan, lessons)[STUDENT]
    jobs = {}
    for name, attempt in ATTEMPTS.items():
        encoder = given.teacher if attempt.is_large else given.student
        share = attempt.share
        for seed in range(given.seeds):
            folder = folder_of(plan, name, seed)
            recipe = first.recipe.changed(
                seed=seed,
                model__encoder=encoder,
                training__epochs=given.epochs or attempt.epochs,
                training__learning_rate=attempt.rate,
                training__split_seed=plan.recipe.seed,
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


def folder_of(plan: DistillPlan, name: str, seed: int) -> Path:
    return plan.out.with_name("models") / f"{plan.out.name}, {name}, {seed}"


def collect(plan: DistillPlan, task: str, n_seeds: int) -> dict[str, Any]:
    """For each attempt that is whole, and each seed: labels given, macro-F1 by variety, and the
    held-out score.
    """
    test = plan.data.test
    if test is None:
        raise ValueError("BESSTIE has no validation texts here")
    texts = [example for example in test if task in example.labels]
    labels = test.tasks[task].labels
    gold = [labels.index(example.labels[task]) for example in texts]
    varieties = [example.variety or "" for example in texts]
    attempts: dict[str, dict[str, list[Any]]] = {}
    for name in ATTEMPTS:
        folders = [folder_of(plan, name, seed) for seed in range(n_seeds)]
        if not all(is_complete(folder / "answers") for folder in folders):
            continue
        own: dict[str, list[Any]] = {"predicted": [], "valid": [], "held_out": []}
        for folder in folders:
            predicted = read_answers(folder / "answers").test[task].tolist()
            scores = scores_by_variety(gold, predicted, varieties)
            own["predicted"].append(predicted)
            own["valid"].append([round(scores[variety], 4) for variety in VARIETIES])
            own["held_out"].append(best_held_out(folder / "model"))
        attempts[name] = own
    return {"labels": list(labels), "gold": gold, "varieties": varieties, "attempts": attempts}


def best_held_out(folder: Path) -> float:
    """Of the epoch that was kept."""
    lines = (folder / "history.jsonl").read_text(encoding="utf-8").splitlines()
    return max(float(json.loads(line)["held_out"]) for line in lines)


def over_texts(found: dict[str, Any], chosen: dict[str, dict[str, Any]]) -> None:
    """Adds to each size intervals over the validation texts, drawn again within each variety: of
    the mean score of the seeds, of the vote of all of them, of every cell, and of what the large
    ones are better.
    """
    generator = np.random.default_rng(0)
    draws = [_draw_cells(found, chosen, None)]
    draws += [_draw_cells(found, chosen, generator) for _ in range(N_RESAMPLES)]
    cells = np.array(draws)  # (draw, size, task, seed or vote, variety)
    by_row = cells.min(-1).mean(2)  # the worse variety of each task. (draw, size, seed or vote)
    by_name = {"mean": by_row[..., :-1].mean(-1), "vote": by_row[..., -1]}
    by_cell = cells[..., :-1, :].mean(-2)  # (draw, size, task, variety)
    for at, task in enumerate(TASKS):
        for number, variety in enumerate(VARIETIES):
            by_name[f"{task} {variety}"] = by_cell[:, :, at, number]
    for at, size in enumerate(chosen):
        chosen[size]["over_texts"] = {name: _spread(one[:, at]) for name, one in by_name.items()}
    small, large = map(list(chosen).index, ("small", "large"))
    chosen["large"]["better"] = {
        name: _spread(one[:, large] - one[:, small]) for name, one in by_name.items()
    }


def _draw_cells(
    found: dict[str, Any],
    chosen: dict[str, dict[str, Any]],
    generator: np.random.Generator | None,
) -> Floats:
    """Macro-F1 of all seeds and their vote on the same texts. (size, task, seed or vote, variety)

    generator: draws the texts; None: all as they are.
    """
    by_task = []
    for task in TASKS:
        own = found[task]
        places = _places(own["varieties"], generator)
        gold, varieties = np.take(own["gold"], places), np.take(own["varieties"], places)
        by_size = []
        for one in chosen.values():
            predicted = np.array(own["attempts"][one["attempts"][task]]["predicted"])[:, places]
            rows = [*predicted, predicted.mean(0) > 0.5]  # each (text,)
            scores = [scores_by_variety(gold, row, varieties) for row in rows]
            by_size.append([[row[variety] for variety in VARIETIES] for row in scores])
        by_task.append(by_size)
    return np.array(by_task).swapaxes(0, 1)


def _places(varieties: Sequence[str], generator: np.random.Generator | None) -> list[int]:
    """All texts, or as many of each variety drawn with replacement."""
    if generator is None:
        return list(range(len(varieties)))
    found: list[int] = []
    for variety in sorted(set(varieties)):
        places = [place for place, own in enumerate(varieties) if own == variety]
        found += generator.choice(places, len(places)).tolist()
    return found


def _spread(values: Floats) -> list[float]:
    """As it is, and from where to where it lies in 95 % of the draws."""
    return [round(float(value), 4) for value in (values[0], *interval(values[1:]))]


def choose(found: dict[str, Any], *, is_large: bool) -> dict[str, Any]:
    """The attempt of this size that the held-out texts favour for each task, and the pair's score
    with every seed.
    """
    chosen, worse = {}, []
    for task, own in found.items():
        attempts = own["attempts"]
        names = [name for name in attempts if ATTEMPTS[name].is_large == is_large]
        chosen[task] = max(names, key=lambda name: mean(attempts[name]["held_out"]))
        worse.append([min(pair) for pair in attempts[chosen[task]]["valid"]])
    scores = [round(mean(pair), 4) for pair in zip(*worse, strict=True)]
    spread = stdev(scores) if len(scores) > 1 else 0.0
    return {"attempts": chosen, "scores": scores, "mean": mean(scores), "stdev": spread}


# What is asked of every script that trains students of a large encoder.


def student_parser(about: str | None, *, n_seeds: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--teacher", default="mpnet", help="an encoder's name or folder")
    parser.add_argument("--student", default="minilm", help="likewise")
    parser.add_argument("--seeds", type=int, default=n_seeds)
    parser.add_argument("--workers", type=int, default=6, help="trainings at the same time")
    parser.add_argument("--epochs", type=int, help="of everything, for a trial")
    return parser


# Macro-F1 of two classes in each variety of English.


def scores_by_variety(
    gold: Sequence[int], predicted: Sequence[int], varieties: Sequence[str]
) -> dict[str, float]:
    """All three in the order of the texts; the varieties in theirs."""
    found = {}
    for variety in sorted(set(varieties)):
        places = [place for place, own in enumerate(varieties) if own == variety]
        counts = confusion(np.take(gold, places), np.take(predicted, places), 2)
        found[variety] = float(macro_f1(counts))
    return found


if __name__ == "__main__":
    main()
