"""Candidates for the next built-in model: teachers once, students with several settings, scores.

    python -m reproduction.builtin_students DATA OUT [--teacher FOLDER] [--workers N]

DATA: a folder with vader, isarcasmeval2022, besstie, tweeteval-irony and glue in it. OUT: answers
of teachers, students, and scores.json. What is done is found again. A student is chosen by
`reserved`, texts of its own kind that no training saw; the other sets are reported and choose
nothing.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from litotes.core.storage import write_json
from litotes.data.corpus import Corpus
from litotes.data.sources import load
from litotes.distillation.answers import gather_lessons
from litotes.distillation.distill import plan_students, run_all
from litotes.distillation.plan import DistillPlan, plan_distillation
from litotes.distillation.settings import read_distill_recipe
from litotes.distillation.shapes import STUDENT
from litotes.distillation.students import StudentJob, run_student
from litotes.distillation.teachers import run_teacher
from litotes.evaluation.evaluate import evaluate
from litotes.model.checkpoint import load_model
from litotes.prediction.predictor import Predictor

RECIPE = Path(__file__).parent.parent / "recipes" / "distill_builtin.toml"
SOURCE = "vader:{0}/vader + isarcasm:{0}/isarcasmeval2022 + sampler + contrast + asides"
AVOID = ("glue/sst2:{0}/glue", "besstie:{0}/besstie", "irony:{0}/tweeteval-irony")
TESTS = {
    "vader": "vader:{0}/vader",
    "isarcasm": "isarcasm:{0}/isarcasmeval2022",
    "contrast": "contrast",
    "contrast, plain": "contrast?kind=plain",
    "contrast, litotes and negation": "contrast?kind=litotes+negation",
    "asides": "asides",
    "besstie": "besstie:{0}/besstie",
    "irony": "irony:{0}/tweeteval-irony",
    "sst2": "glue/sst2:{0}/glue",
}

STUDENTS: dict[str, dict[str, Any]] = {
    "share 0.5": {"share": 0.5},
    "share 0.3": {"share": 0.3},
    "share 0.8": {"share": 0.8},
    "labels alone": {"share": 0.0},
    "share 0.5, linear head": {"share": 0.5, "model__head": "linear"},
    "share 0.5, 5e-5": {"share": 0.5, "training__learning_rate": 5e-5},
    "share 0.5, 4 epochs": {"share": 0.5, "training__epochs": 4},
    "share 0.3, linear head": {"share": 0.3, "model__head": "linear"},
}
"""share as in `distill.share`, and what differs from the student of the recipe. All have its seed,
and so the same reserved texts.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--teacher", default="mpnet", help="an encoder's name or folder")
    parser.add_argument("--workers", type=int, default=6, help="trainings at the same time")
    given = parser.parse_args()
    plan = make_plan(given.data, given.out, given.teacher)
    run_all(plan.teachers, run_teacher, n_workers=given.workers, what="teachers")
    jobs = make_jobs(plan, given.out)
    run_all(jobs, run_student, n_workers=given.workers, what="students")
    scores = {}
    for name, job in jobs.items():
        scores[name] = score(job, plan.data.reserved, given.data)
        write_json(given.out / "scores.json", scores)
        print(name, scores[name], flush=True)


def make_plan(data: Path, out: Path, teacher: str) -> DistillPlan:
    avoid = [source.format(data) for source in AVOID]
    changes = [
        f"data.source={SOURCE.format(data)}",
        f"data.avoid={avoid}".replace("'", '"'),
        f"distill.teacher.model.encoder={teacher}",
        f"distill.teachers_folder={out / 'teachers'}",
        "training.reserved=0.1",
    ]
    return plan_distillation(read_distill_recipe(RECIPE, changes=changes), out / "student")


def make_jobs(plan: DistillPlan, out: Path) -> dict[str, StudentJob]:
    lessons = gather_lessons(plan)
    first = plan_students(plan, lessons)[STUDENT]
    jobs = {}
    for name, settings in STUDENTS.items():
        changes = {key: value for key, value in settings.items() if key != "share"}
        folder = out / "students" / name.replace(" ", "-").replace(",", "")
        jobs[name] = replace(
            first,
            name=name,
            recipe=plan.recipe.student.changed(**changes),
            lessons=replace(lessons, share=settings["share"]),
            model_folder=folder / "model",
            folder=folder,
        )
    return jobs


def score(job: StudentJob, reserved: Corpus | None, data: Path) -> dict[str, float]:
    """Macro-F1 of every set and task."""
    predictor = Predictor(load_model(job.model_folder))
    corpora = {} if reserved is None else {"reserved": reserved}
    for name, source in TESTS.items():
        whole = load(source.format(data))
        corpora[name] = whole.where(split=whole.test_split())
    return {
        f"{name}, {row.scores.task}": round(row.scores.macro_f1, 4)
        for name, corpus in corpora.items()
        for row in evaluate(predictor, corpus, seed=0)
        if row.cell == "all"
    }


if __name__ == "__main__":
    main()
