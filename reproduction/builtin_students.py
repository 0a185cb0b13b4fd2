"""Candidates for the built-in model: teachers once, students with several settings, scores.

    python -m reproduction.builtin_students DATA OUT [--teacher FOLDER | --alone] [--workers N]

DATA: a folder with vader, isarcasmeval2022, besstie, tweeteval-irony and glue in it. OUT: answers
of teachers, students, and scores.json. What is done is found again. They are compared by texts that
no training saw and that are no test: reserved ones of the same kinds, and some of other kinds, for
people will ask about their own (`KEPT_APART`). The test sets are reported and choose nothing.
`builtin_mixture` makes one model of them. --alone: without teachers, from labels.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from litotes.core.storage import write_json
from litotes.data.corpus import Corpus, text_key
from litotes.data.sources import load
from litotes.evaluation.evaluate import evaluate
from litotes.model.checkpoint import load_model
from litotes.prediction.predictor import Predictor
from litotes.training.distillation.distill import plan_students, run_all
from litotes.training.distillation.plan import DistillPlan, DistillRecipe, plan_distillation
from litotes.training.distillation.students import STUDENT, StudentJob, run_student
from litotes.training.distillation.teachers import (
    gather_lessons,
    run_teacher,
    with_even_answers,
    with_known_prevalence,
)
from litotes.training.lessons import Lessons
from reproduction.builtin_more_texts import (
    allowed_ratings,
    ours_and_older,
    with_dressed_texts,
    with_ratings,
    with_repeats,
)

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

KEPT_APART = {"other comments": "besstie:{0}/besstie", "other tweets": "irony:{0}/tweeteval-irony"}
"""Not learned from, only chosen by: all but their test texts."""
N_KEPT_APART = 6000

HEAD = "linear"
"""It prunes best."""
N_SMALL = 8
"""So many students fit on a GPU at the same time."""
SHARE = 0.5
"""Of the teachers' answers, as in `distill.share`."""
RATINGS, DRESSED, TWICE, THRICE = "ratings", "dressed", "twice", "three times"


@dataclass(frozen=True)
class Student:
    """What differs from the recipe's. more: texts besides, as `builtin_more_texts` makes them."""

    seed: int
    epochs: int
    more: tuple[str, ...] = ()


STUDENTS = {
    "half an answer": Student(0, 8),
    "ratings": Student(1, 6, (RATINGS,)),
    "dressed": Student(2, 6, (DRESSED,)),
    "ratings, older twice": Student(7, 6, (RATINGS, TWICE)),
    "ratings, older three times": Student(8, 5, (RATINGS, THRICE)),
    "ratings, dressed, older three times": Student(9, 4, (RATINGS, DRESSED, THRICE)),
    "older three times": Student(10, 5, (THRICE,)),
    "older texts, ratings": Student(6, 6, (RATINGS,)),
}
"""They differ in seed but hold the same texts out. Older texts: those that were not written for
this project.
"""
OLDER = "older texts"


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
    jobs = make_jobs(plan, given.out, given.data, alone=given.alone)
    run_all(jobs, run_student, n_workers=max(given.workers, N_SMALL), what="students")
    folders = {name: job.model_folder for name, job in jobs.items()}
    chosen_by = kept_apart(given.data, plan)
    scores = {name: score(folder, chosen_by) for name, folder in folders.items()}
    order = sorted(folders, key=lambda name: on_kept_apart(scores[name]), reverse=True)
    print(f"The best on texts kept apart: {order[0]}, in {folders[order[0]]}", flush=True)
    corpora = load_tests(given.data)
    for name in order:
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
    return plan_distillation(DistillRecipe.read(RECIPE, changes=changes), out / "student")


def make_jobs(plan: DistillPlan, out: Path, data: Path, *, alone: bool) -> dict[str, StudentJob]:
    lessons = even_lessons(plan) if alone else gather_lessons(plan)
    first = plan_students(plan, lessons)[STUDENT]
    ours, older = ours_and_older(plan.data.train)
    rated = allowed_ratings(plan, data)
    jobs = {}
    for name, student in STUDENTS.items():
        own = replace(lessons, share=0.0 if alone else SHARE)
        if RATINGS in student.more:
            own = with_ratings(own, plan, rated)
        if DRESSED in student.more:
            own = with_dressed_texts(own, plan, ours)
        for word, n_copies in ((TWICE, 1), (THRICE, 2)):
            if word in student.more:
                own = with_repeats(own, plan, older, n_copies=n_copies)
        changes: dict[str, Any] = {
            "seed": student.seed,
            "model__head": HEAD,
            "training__epochs": student.epochs,
            "training__split_seed": plan.recipe.seed,
        }
        corpus = first.corpus
        if name.startswith(OLDER):
            corpus = replace(plan.data.train, examples=tuple(older))
            changes["training__reserved"] = 0.0  # they are no longer among these texts
        folder = out / "students" / name.replace(" ", "-").replace(",", "")
        jobs[name] = replace(
            first,
            name=name,
            recipe=plan.recipe.student.changed(**changes),
            corpus=corpus,
            lessons=own,
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


def kept_apart(data: Path, plan: DistillPlan, n_most: int = N_KEPT_APART) -> dict[str, Corpus]:
    """Texts to choose by; n_most: of each other kind."""
    if plan.data.reserved is None:
        raise ValueError("the recipe reserves no texts to choose by")
    found = {"reserved": plan.data.reserved}
    for name, source in KEPT_APART.items():
        whole = load(source.format(data))
        test = {text_key(one.text) for one in whole.where(split=whole.test_split())}
        own = whole.where(split=[one for one in whole.splits() if one != whole.test_split()])
        examples = tuple(one for one in own if text_key(one.text) not in test)
        found[name] = draw_texts(replace(own, examples=examples), n_most)
    return found


def draw_texts(corpus: Corpus, n_most: int) -> Corpus:
    """At most so many, at random, always the same."""
    examples = list(corpus.examples)
    Random(0).shuffle(examples)
    return replace(corpus, examples=tuple(examples[:n_most]))


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


def on_kept_apart(scores: Mapping[str, float]) -> float:
    """What one is chosen by: the mean over sets and tasks of macro-F1."""
    own = [
        value
        for name, value in scores.items()
        if name.partition(",")[0] in ("reserved", *KEPT_APART) and not name.endswith("ece")
    ]
    return sum(own) / len(own)


if __name__ == "__main__":
    main()
