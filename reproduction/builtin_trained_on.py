"""The third edition of the built-in model: the second, trained on in three ways, on a CPU too.

    python -m reproduction.builtin_trained_on DATA OUT [--workers 2]
    python reproduction/builtin_model.py OUT/model DATA --edition 3

DATA: as `builtin_students` has it. OUT/NAME/model: a model for each of `WAYS`, 20 to 45 minutes of
a core. OUT/scores.json: each of them, and mixtures of them and the editions, on texts that none
has learned from. OUT/model: the best.

- The texts are those of the second edition's student, so that what it kept apart stays apart, the
  texts that `contrast` got later (on topics that were learned from), and VADER's ratings and
  passages (`builtin_more_texts`).
- Texts written for this project have their label and the second edition's answer, half and half.
- Of older texts sentiment is as raters had it. Their sarcasm is as the first edition hears it, for
  it has learned from nothing else and hears strangers best; in reviews and editorials moved to how
  rare sarcasm is there (`distill.prevalence`). Learning without forgetting: Li and Hoiem 2016,
  arXiv 1606.09282.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import torch

from litotes.core.jobs import threads_per_worker
from litotes.core.numbers import counted
from litotes.core.progress import Watch
from litotes.core.values import Example
from litotes.data.corpus import example_key, text_key
from litotes.data.sources import load
from litotes.encoder.packing import make_text_set
from litotes.model.builtin import edition_folder
from litotes.model.checkpoint import Model, average_models, load_model, save_model
from litotes.model.folder import is_model_folder
from litotes.training.classification import Classification
from litotes.training.distillation.distill import run_all
from litotes.training.distillation.plan import DistillPlan
from litotes.training.distillation.teachers import (
    move_answer,
    stated_shares,
    with_even_answers,
    with_known_prevalence,
)
from litotes.training.inputs import Inputs, all_logits, freeze
from litotes.training.lessons import Lessons
from litotes.training.objective import RunContext
from litotes.training.recipe import TrainingSettings
from litotes.training.trainer import Trainer
from litotes.training.training_data import prepare
from reproduction.builtin_mixture import (
    Found,
    Parts,
    finish,
    fitted_on,
    is_harmless,
    look,
    mix,
    texts_of_none,
    tokenize,
    write_tried,
)
from reproduction.builtin_more_texts import (
    WRITTEN,
    allowed_ratings,
    mean_answer,
    ours_and_older,
    with_ratings,
    with_repeats,
)
from reproduction.builtin_students import SHARE, make_plan
from reproduction.printed_progress import PrintedProgress

LATER = re.compile(r"-9\d{3}[a-z]?$")
"""How the pairs of the texts end that `contrast` got between the second edition and the third."""
LATEST = re.compile(r"-8\d{3}[a-z]?$")
"""Of those that it got for the fourth."""
Shares = tuple[float, ...]
"""The probability of each class."""
Answered = Mapping[str, Shares]
"""By the key of a text."""
FOCUS = "litotes+negation+praise+thanks"
"""Kinds that are read twice where a way says so: the second edition's weakest."""
TWEETS = "iSarcasm"
N_OTHERS = 2500
"""Texts of each other kind to choose by."""


@dataclass(frozen=True)
class Way:
    """What a candidate differs in. focus, tweets: whether the kinds in `FOCUS` and the later texts,
    or the tweets that are labelled for sarcasm, are read twice.
    """

    seed: int
    epochs: int
    learning_rate: float
    focus: bool = True
    tweets: bool = False


WAYS = {
    "boldly": Way(30, 2, 5e-5),
    "gently": Way(31, 2, 2.5e-5, focus=False),
    "tweets twice": Way(32, 1, 5e-5, tweets=True),
}
FIRST, SECOND = "edition 1", "edition 2"
EDITIONS = {FIRST: 1, SECOND: 2}
MIXTURES: tuple[Parts, ...] = (
    *((name,) for name in WAYS),
    ("boldly", "gently"),
    tuple(WAYS),
    ("boldly", SECOND),
    ("boldly", "gently", SECOND),
    (*WAYS, SECOND),
    ("boldly", "gently") * 3 + (FIRST,),
)


@dataclass(frozen=True)
class WayJob:
    """One candidate to train. begins_as: folders of models, as whose mean it begins; the tasks and
    facts of the first.
    """

    way: Way
    examples: tuple[Example, ...]
    lessons: Lessons
    folder: Path
    begins_as: tuple[Path, ...]
    n_threads: int

    @property
    def model_folder(self) -> Path:
        return self.folder / "model"

    def is_done(self) -> bool:
        return is_model_folder(self.model_folder)


def main() -> None:
    given = read_options(__doc__)
    plan = as_the_second_edition(make_plan(given.data, given.out, "minilm"))
    lessons = make_lessons(plan, given.data)
    heard, later = first_ears(lessons, plan), later_texts()
    jobs = {
        name: WayJob(
            way,
            plan.data.train.examples,
            with_sarcasm(read_twice(lessons, plan, way, later), heard),
            given.out / name,
            (edition_folder(2),),
            threads_per_worker(given.workers),
        )
        for name, way in WAYS.items()
    }
    run_all(jobs, train_on, n_workers=given.workers, what="ways", watch=PrintedProgress())
    keep_best(jobs, given, plan, _about, MIXTURES, EDITIONS)


def read_options(about: str | None) -> argparse.Namespace:
    """What is asked of every script that trains editions on."""
    parser = argparse.ArgumentParser(description=(about or "").split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--workers", type=int, default=2, help="trainings at the same time")
    return parser.parse_args()


def as_the_second_edition(plan: DistillPlan, *, latest: bool = False) -> DistillPlan:
    """The plan with the texts that the second edition's student had learned from and kept apart,
    and the later ones whose topics it had learned from. latest: those of the fourth edition too.
    """
    later, newest = later_texts(), later_texts(LATEST)
    whole = plan.data.whole
    apart_from = later | newest
    before = replace(whole, examples=tuple(one for one in whole if one.text not in apart_from))
    if latest:
        later |= newest
    data = prepare(plan.recipe.student, before)
    apart = {one.group for part in (data.held_out, data.reserved) if part for one in part}
    more = [
        one
        for one in whole
        if one.text in later and one.split == "train" and one.group not in apart
    ]
    train = replace(data.train, examples=(*data.train.examples, *more))
    return replace(plan, data=replace(data, train=train))


def later_texts(which: re.Pattern[str] = LATER) -> set[str]:
    """Texts that `contrast` did not have when the second edition was made."""
    found = set()
    for file in (files("litotes.data") / "contrast").iterdir():
        if file.name.endswith(".jsonl"):
            rows = map(json.loads, file.read_text("utf-8").splitlines())
            found |= {row["text"] for row in rows if which.search(row.get("pair") or "")}
    return found


def make_lessons(plan: DistillPlan, data: Path) -> Lessons:
    """What is to be answered: by the second edition, and by raters."""
    second = load_model(edition_folder(2))
    answers = answer_all(second, plan.data.train.examples)
    answers = dict(with_even_answers(with_known_prevalence(answers, plan), plan))
    about = "Learned from labels, raters, and the answers of both editions."
    own = Lessons(answers, (), share=SHARE, temperature=1.0, about=about)
    return with_ratings(own, plan, allowed_ratings(plan, data))


def answer_all(model: Model, examples: Sequence[Example]) -> dict[str, Answered]:
    """By task."""
    tasks = list(model.classifier.tasks.values())
    inputs = Inputs(make_text_set(examples, tasks, model.tokenizer), torch.device("cpu"))
    with torch.inference_mode():
        logits = all_logits(inputs, model.classifier.eval())
    keys = list(map(example_key, examples))
    return {
        task: dict(zip(keys, map(tuple, some.double().softmax(-1).tolist()), strict=True))
        for task, some in logits.items()
    }


def first_ears(lessons: Lessons, plan: DistillPlan) -> Answered:
    """How sarcastic the first edition finds older texts and those made of them; where it is known
    how rare sarcasm is, that is the mean of its answers.
    """
    _, older = ours_and_older(plan.data.train)
    texts = (*older, *lessons.unlabelled)
    heard = answer_all(load_model(edition_folder(1)), texts)["sarcasm"]
    moves = {
        source: _move_of(source, plan, older, heard) for source in plan.recipe.distill.prevalence
    }
    known, learned = zip(*moves.values(), strict=True)
    of_any = (mean_answer(known), mean_answer(learned))
    found = {}
    for one in texts:
        key = example_key(one)
        move = moves.get(one.source or "")
        if one.source is None and key in lessons.answers["sarcasm"]:
            move = of_any  # made from reviews or editorials: all others have no answer yet
        found[key] = move_answer(heard[key], *move) if move else heard[key]
    return found


def with_sarcasm(lessons: Lessons, heard: Answered) -> Lessons:
    """The lessons with these answers in place of their own."""
    sarcasm = {**lessons.answers["sarcasm"], **heard}
    return replace(lessons, answers={**lessons.answers, "sarcasm": sarcasm})


def _move_of(
    source: str, plan: DistillPlan, older: Iterable[Example], heard: Answered
) -> tuple[Shares, Shares]:
    """Known shares of the source, and those that the first edition gives."""
    known = stated_shares(
        plan.data.train.tasks["sarcasm"], plan.recipe.distill.prevalence[source]["sarcasm"]
    )
    return known, mean_answer([heard[example_key(one)] for one in older if one.source == source])


def read_twice(lessons: Lessons, plan: DistillPlan, way: Way, later: Set[str]) -> Lessons:
    """The lessons, and again what this way reads twice. later: texts that `contrast` got later."""
    ours, older = ours_and_older(plan.data.train)
    chosen = []
    if way.focus:
        kinds = {text_key(one.text) for name in WRITTEN for one in load(f"{name}?kind={FOCUS}")}
        chosen += [one for one in ours if one.text in later or text_key(one.text) in kinds]
    if way.tweets:
        chosen += [one for one in older if one.source == TWEETS]
    return with_repeats(lessons, plan, chosen, n_copies=1)


def train_on(job: WayJob, watch: Watch) -> None:
    """Models, trained on; what stays as it was there stays so."""
    torch.set_num_threads(job.n_threads)
    model = average_models(list(map(load_model, job.begins_as)))
    classifier, way = model.classifier, job.way
    settings = TrainingSettings(
        epochs=way.epochs,
        patience=way.epochs,
        batch_texts=32,
        learning_rate=way.learning_rate,
        freeze_below=1,
        held_out=0,
    )
    examples = [*job.examples, *job.lessons.unlabelled]
    texts = make_text_set(examples, list(classifier.tasks.values()), model.tokenizer)
    teacher = job.lessons.teacher_of(examples, texts, classifier.tasks, balanced=True)
    freeze(classifier, settings.freeze_below)
    job.folder.mkdir(parents=True, exist_ok=True)
    device = torch.device("cpu")
    key = f"{job.lessons.key()}-{way}"  # what was begun another way is not gone on with
    context = RunContext(device, job.folder, key, watch=watch)
    inputs = Inputs(texts, device)
    objective = Classification(
        classifier, inputs, settings, context, seed=way.seed, teacher=teacher
    )
    Trainer(objective, context).run(resume=True)
    facts = dict(model.facts)
    facts["data"] = facts["data"] | {"n_train": len(examples)}
    trained = replace(model, classifier=classifier.eval(), calibration={}, facts=facts)
    save_model(trained, job.model_folder, card="")


def keep_best(
    jobs: Mapping[str, WayJob],
    given: argparse.Namespace,
    plan: DistillPlan,
    about: Callable[[Parts, Found], str],
    mixtures: Sequence[Parts],
    editions: Mapping[str, int],
) -> None:
    """Keeps the mixture with the best mean that loses nothing more than it may in a set of another
    kind against the first edition; lines, temperatures and scores of all are kept beside it.
    """
    sets = texts_of_none(given.data, plan, N_OTHERS)
    models = {name: load_model(job.model_folder) for name, job in jobs.items()}
    models |= {name: load_model(edition_folder(number)) for name, number in editions.items()}
    texts = tokenize(sets, models[FIRST])
    tried: dict[Parts, Found] = {}
    for parts in (*((name,) for name in editions), *mixtures):
        tried[parts] = look(mix(models, parts), texts)
        print(" + ".join(parts), tried[parts]["mean"], tried[parts]["scores"], flush=True)
    first = tried[FIRST,]["scores"]
    best = max(
        mixtures,
        key=lambda parts: (is_harmless(tried[parts]["scores"], first), tried[parts]["mean"]),
    )
    write_tried(given.out / "scores.json", tried, chosen=list(best))
    print(f"The best: {' + '.join(best)}", flush=True)
    model = finish(mix(models, best), tried[best], about(best, tried[best]))
    save_model(model, given.out / "model", card="")


def about_mixture(
    base: str, parts: Parts, ways: Container[str], words: Mapping[str, str], found: Found
) -> str:
    """A sentence for people. base: what was trained on. words: whose weights an edition's are."""
    n_ways = counted(len({part for part in parts if part in ways}), "way")
    about = f"{base}, trained on in {n_ways}, the mean of their weights"
    for name, whose in words.items():
        if name in parts:
            about += f" and, for {parts.count(name) / len(parts):.2g}, {whose}"
    return f"{about}. {fitted_on(sum(found['n_texts'].values()))}"


def _about(parts: Parts, found: Found) -> str:
    words = {FIRST: "the first edition's", SECOND: "its own"}
    return about_mixture("The second edition", parts, WAYS, words, found)


if __name__ == "__main__":
    main()
