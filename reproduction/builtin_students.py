"""Candidates for the built-in model: teachers once, students with several settings, the mean of
the students of each head, scores.

    python -m reproduction.builtin_students DATA OUT [--teacher FOLDER | --alone] [--workers N]

DATA: a folder with vader, isarcasmeval2022, besstie, tweeteval-irony and glue in it. OUT: answers
of teachers, students, and scores.json. What is done is found again. One is chosen by `reserved`,
texts of its own kind that no training saw; the other sets are reported and choose nothing.
--alone: without teachers, from labels.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import torch

from litotes.core.storage import write_json, write_text
from litotes.data.corpus import Corpus
from litotes.data.sources import load
from litotes.distillation.answers import gather_lessons, with_even_answers
from litotes.distillation.distill import plan_students, run_all
from litotes.distillation.plan import DistillPlan, plan_distillation
from litotes.distillation.prevalence import with_known_prevalence
from litotes.distillation.settings import read_distill_recipe
from litotes.distillation.shapes import STUDENT
from litotes.distillation.students import StudentJob, run_student
from litotes.distillation.teachers import run_teacher
from litotes.evaluation.evaluate import evaluate
from litotes.model.averaging import average_models
from litotes.model.checkpoint import load_model, save_model
from litotes.model.folder import is_model_folder
from litotes.prediction.predictor import Predictor
from litotes.text.packing import make_text_set
from litotes.training.held_out import fit_calibrations
from litotes.training.inputs import PieceInputs
from litotes.training.lessons import Lessons

RECIPE = Path(__file__).parent.parent / "recipes" / "distill_builtin.toml"
SOURCE = "vader:{0}/vader + isarcasm:{0}/isarcasmeval2022 + sampler + contrast + asides"
AVOID = ("glue/sst2:{0}/glue", "besstie:{0}/besstie", "irony:{0}/tweeteval-irony")
PRAISE = "contrast, sarcastic praise"
"""Of these texts only those that are not meant."""
TESTS = {
    "vader": "vader:{0}/vader",
    "isarcasm": "isarcasm:{0}/isarcasmeval2022",
    "contrast": "contrast",
    "contrast, plain": "contrast?kind=plain",
    "contrast, litotes and negation": "contrast?kind=litotes+negation",
    PRAISE: "contrast?kind=praise+thanks",
    "asides": "asides",
    "besstie": "besstie:{0}/besstie",
    "irony": "irony:{0}/tweeteval-irony",
    "sst2": "glue/sst2:{0}/glue",
}

HEADS = ("linear", "mean")
STUDENTS: dict[str, dict[str, Any]] = {
    "share 0.5": {"share": 0.5},
    "share 0.3": {"share": 0.3, "seed": 1},
    "share 0.3, 5 epochs": {"share": 0.3, "seed": 2, "training__epochs": 5},
    "share 0.5, 5e-5": {"share": 0.5, "seed": 3, "training__learning_rate": 5e-5},
    "labels alone, 5 epochs": {"share": 0.0, "seed": 4, "training__epochs": 5},
}
"""Of each head: share as in `distill.share`, and what differs from the student of the recipe. They
differ in seed, but hold the same texts out and reserve the same.
"""
ALONE: dict[str, dict[str, Any]] = {
    "6 epochs": {"training__epochs": 6},
    "5 epochs": {"seed": 1, "training__epochs": 5},
    "5 epochs, 5e-5": {"seed": 2, "training__epochs": 5, "training__learning_rate": 5e-5},
    "4 epochs, 1e-4": {"seed": 3, "training__epochs": 4, "training__learning_rate": 1e-4},
    "4 epochs": {"seed": 4, "training__epochs": 4},
}
"""The same without teachers."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--teacher", default="mpnet", help="an encoder's name or folder")
    parser.add_argument("--alone", action="store_true", help="without teachers")
    parser.add_argument("--workers", type=int, default=6, help="trainings at the same time")
    given = parser.parse_args()
    plan = make_plan(given.data, given.out, "minilm" if given.alone else given.teacher)
    if not given.alone:
        run_all(plan.teachers, run_teacher, n_workers=given.workers, what="teachers")
    jobs = make_jobs(plan, given.out, alone=given.alone)
    run_all(jobs, run_student, n_workers=given.workers, what="students")
    folders = {name: job.model_folder for name, job in jobs.items()}
    for head in HEADS:
        own = [folder for name, folder in folders.items() if name.startswith(head)]
        folders[f"{head}, mean of {len(own)}"] = average(own, given.out / "students" / head, plan)
    own = {} if plan.data.reserved is None else {"reserved": plan.data.reserved}
    scores = {name: score(folder, own) for name, folder in folders.items()}
    best = max(scores, key=lambda name: on_reserved(scores[name]))
    write_text(given.out / "best.txt", f"{folders[best]}\n")
    print(f"The best on reserved texts: {best}, in {folders[best]}", flush=True)
    corpora = load_tests(given.data)
    for name in sorted(folders, key=lambda name: on_reserved(scores[name]), reverse=True):
        scores[name] |= score(folders[name], corpora)
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


def make_jobs(plan: DistillPlan, out: Path, *, alone: bool) -> dict[str, StudentJob]:
    lessons = even_lessons(plan) if alone else gather_lessons(plan)
    first = plan_students(plan, lessons)[STUDENT]
    jobs = {}
    for head in HEADS:
        for about, settings in (ALONE if alone else STUDENTS).items():
            name = f"{head}, {about}"
            changes = {key: value for key, value in settings.items() if key != "share"}
            changes |= {"model__head": head, "training__split_seed": plan.recipe.student.seed}
            folder = out / "students" / name.replace(" ", "-").replace(",", "")
            jobs[name] = replace(
                first,
                name=name,
                recipe=plan.recipe.student.changed(**changes),
                lessons=replace(lessons, share=settings.get("share", 0.0)),
                model_folder=folder / "model",
                folder=folder,
            )
    return jobs


def even_lessons(plan: DistillPlan) -> Lessons:
    """No teacher's answers: only that texts without sentiment are as likely to have either, and how
    rare sarcasm is in reviews.
    """
    about = "Learned from labels; of texts without sentiment that either is as likely."
    answers = with_known_prevalence(with_even_answers({}, plan), plan)
    return Lessons(answers, (), share=0.0, temperature=1.0, about=about)


def average(folders: Iterable[Path], to: Path, plan: DistillPlan) -> Path:
    """The mean of models, calibrated on the texts that they held out; all else as in the first."""
    first, *others = folders
    if is_model_folder(to):
        return to
    model = average_models([load_model(folder) for folder in (first, *others)])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    held_out = plan.data.held_out
    if held_out is None:
        raise ValueError("the recipe holds no texts out to calibrate by")
    classifier = model.classifier.to(device)
    texts = make_text_set(held_out.examples, classifier.tasks.values(), model.tokenizer)
    inputs = PieceInputs(texts, device)
    fitted = fit_calibrations(classifier, inputs, plan.recipe.student.training)
    copytree(first, to, dirs_exist_ok=True)
    note = f"The mean of the weights of {1 + len(others)} students."
    facts = {**model.facts, "notes": [*model.facts["notes"], note]}
    classifier.cpu()
    save_model(replace(model, calibration=fitted, facts=facts), to, card=note + "\n")
    return to


def load_tests(data: Path) -> dict[str, Corpus]:
    corpora = {}
    for name, source in TESTS.items():
        whole = load(source.format(data))
        corpora[name] = whole.where(split=whole.test_split())
    return corpora


def score(folder: Path, corpora: Mapping[str, Corpus]) -> dict[str, float]:
    """Macro-F1 of every set and task; of sarcastic praise the share called negative; and how far
    stated and true shares of right answers lie apart.
    """
    predictor = Predictor(load_model(folder))
    found = {}
    for name, corpus in corpora.items():
        if name == PRAISE:
            found[name] = _praise_seen_through(predictor, corpus)
            continue
        for row in evaluate(predictor, corpus, seed=0):
            if row.cell == "all":
                found[f"{name}, {row.scores.task}"] = round(row.scores.macro_f1, 4)
                error = row.scores.calibration_error
                found[f"{name}, {row.scores.task}, ece"] = round(error, 4)
    return found


def _praise_seen_through(predictor: Predictor, corpus: Corpus) -> float:
    """How much sarcastic praise is called negative."""
    texts = [
        example.text
        for example in corpus
        if example.labels.get("sarcasm") == "sarcastic"
        and example.labels.get("sentiment") == "negative"
    ]
    answers = predictor.predict(texts)
    seen = [answer.answers["sentiment"].label == "negative" for answer in answers]
    return round(sum(seen) / len(seen), 4)


def on_reserved(scores: dict[str, float]) -> float:
    """What a student is chosen by: the mean over both tasks."""
    own = [scores[f"reserved, {task}"] for task in ("sentiment", "sarcasm")]
    return sum(own) / len(own)


if __name__ == "__main__":
    main()
