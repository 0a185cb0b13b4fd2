"""The fourth edition of the built-in model: the third, trained on with the latest texts, on a CPU.

    python -m reproduction.builtin_with_readings DATA OUT [--workers 2]
    python reproduction/builtin_model.py OUT/model DATA --edition 4

DATA: as `builtin_students` has it. OUT/NAME/model: a model for each of `WAYS`, 25 to 50 minutes of
a core. OUT/scores.json: each of them, and mixtures of them and the editions, on texts that none has
learned from. OUT/model: the best. What is done is found again.

- The texts are those of the second edition's student, so that what it kept apart stays apart, with
  those that `contrast` got later (on topics that were learned from).
- Texts written for this project have their label and the third edition's answer, half and half.
- Of older texts sentiment is as VADER's raters had it (`builtin_more_texts`), of sentences with a
  label for half, with the third edition's answer. How sarcastic they are, readers say
  (`sarcasm_readings`; of a passage that of its most sarcastic sentence), or, in other ways, the
  first edition (`builtin_trained_on`; there raters count for three quarters).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from litotes.core.jobs import threads_per_worker
from litotes.core.values import Example
from litotes.data.corpus import example_key
from litotes.model.builtin import edition_folder
from litotes.model.checkpoint import load_model
from litotes.training.distillation.distill import run_all
from litotes.training.distillation.plan import DistillPlan
from litotes.training.distillation.teachers import with_even_answers, with_known_prevalence
from litotes.training.lessons import Answers, Lessons
from reproduction.builtin_mixture import Found, Parts
from reproduction.builtin_more_texts import (
    Rated,
    Soft,
    allowed_ratings,
    ours_and_older,
    with_ratings,
)
from reproduction.builtin_students import SHARE, make_plan
from reproduction.builtin_trained_on import (
    FIRST,
    LATER,
    LATEST,
    Way,
    WayJob,
    about_mixture,
    answer_all,
    as_the_second_edition,
    first_ears,
    keep_best,
    later_texts,
    read_options,
    read_twice,
    train_on,
    with_sarcasm,
)
from reproduction.printed_progress import PrintedProgress
from reproduction.sarcasm_readings import reading_of

THIRD = "edition 3"
EDITIONS = {FIRST: 1, THIRD: 3}
ABOUT = "Learned from labels, raters, readers who looked for sarcasm, and two earlier editions."


@dataclass(frozen=True)
class Course:
    """How a candidate is made. begins_as: the mean of these. by_readers: they say how sarcastic
    older texts are, not the first edition.
    """

    begins_as: Parts
    way: Way
    by_readers: bool = False


READERS, EARS, TWEETS_TWICE = "readers", "first edition's ears", "tweets twice"
WAYS = {
    READERS: Course((THIRD,), Way(40, 2, 5e-5), by_readers=True),
    EARS: Course((THIRD,), Way(42, 1, 5e-5)),
    TWEETS_TWICE: Course((THIRD, READERS), Way(43, 1, 3e-5, tweets=True)),
}
MIXTURES: tuple[Parts, ...] = (
    *((name,) for name in WAYS),
    (READERS, EARS),
    (EARS, TWEETS_TWICE),
    tuple(WAYS),
    (*WAYS, THIRD),
    (EARS, TWEETS_TWICE, THIRD),
)


def main() -> None:
    given = read_options(__doc__)
    plan = as_the_second_edition(make_plan(given.data, given.out, "minilm"), latest=True)
    jobs = make_jobs(plan, given.data, given.out, threads_per_worker(given.workers))
    for names in ((READERS,), [name for name in WAYS if name != READERS]):
        some = {name: jobs[name] for name in names}  # others begin with what readers taught
        run_all(some, train_on, n_workers=given.workers, what="ways", watch=PrintedProgress())
    keep_best(jobs, given, plan, _about, MIXTURES, EDITIONS)


def make_jobs(plan: DistillPlan, data: Path, out: Path, n_threads: int) -> dict[str, WayJob]:
    rated = allowed_ratings(plan, data)
    by_readers = readers_lessons(plan, rated)
    by_first = first_lessons(by_readers, plan, rated)
    heard, later = first_ears(by_first, plan), later_texts(LATER) | later_texts(LATEST)
    folders = {name: edition_folder(number) for name, number in EDITIONS.items()}
    jobs = {}
    for name, course in WAYS.items():
        if course.by_readers:
            lessons = read_twice(by_readers, plan, course.way, later)
        else:
            lessons = with_sarcasm(read_twice(by_first, plan, course.way, later), heard)
        begins_as = tuple(folders[part] for part in course.begins_as)
        folder = out / name.replace(" ", "-").replace("'", "")
        examples = plan.data.train.examples
        jobs[name] = WayJob(course.way, examples, lessons, folder, begins_as, n_threads)
        folders[name] = jobs[name].model_folder
    return jobs


def readers_lessons(plan: DistillPlan, rated: Sequence[Rated]) -> Lessons:
    """The third edition's answers, and of older texts what raters and readers said."""
    third = answer_all(load_model(edition_folder(EDITIONS[THIRD])), plan.data.train.examples)
    answers = dict(with_even_answers(third, plan))
    _, older = ours_and_older(plan.data.train)
    read = {example_key(one): answer for one in older for answer in heard_in([one]).values()}
    answers["sarcasm"] = {**answers["sarcasm"], **read}
    return with_ratings(_lessons(answers), plan, rated, heard_in)


def first_lessons(lessons: Lessons, plan: DistillPlan, rated: Sequence[Rated]) -> Lessons:
    """The same without what readers said, for the first edition to say; raters count again."""
    ours, _ = ours_and_older(plan.data.train)
    learned, written = (set(map(example_key, some)) for some in (plan.data.train, ours))
    answers = {
        task: {key: answer for key, answer in lessons.answers[task].items() if key in kept}
        for task, kept in (("sentiment", learned), ("sarcasm", written))
    }
    return with_ratings(_lessons(with_known_prevalence(answers, plan)), plan, rated)


def _lessons(answers: Answers) -> Lessons:
    return Lessons(dict(answers), (), share=SHARE, temperature=1.0, about=ABOUT)


def heard_in(sentences: Sequence[Example]) -> Soft:
    """How sarcastic readers find the most sarcastic of neighbouring sentences; nothing of texts
    that were not read.
    """
    readings = [reading_of(one) for one in sentences]
    known = [one for one in readings if one is not None]
    return {"sarcasm": (1 - max(known), max(known))} if known else {}


def _about(parts: Parts, found: Found) -> str:
    words = {FIRST: "the first edition's", THIRD: "its own"}
    return about_mixture("The third edition", parts, WAYS, words, found)


if __name__ == "__main__":
    main()
