"""The built-in model: students of five mpnet teachers that answered 268,000 variants of the texts.

    python -m reproduction.builtin texts DATA OUT
    python -m reproduction.builtin teachers OUT [--ears M] [--workers 6] [--device cuda]
    python -m reproduction.builtin students OUT [--workers 6] [--device cuda]
    python -m reproduction.builtin last-pass OUT
    python -m reproduction.builtin keep DATA OUT
    python -m reproduction.builtin.measure OUT/model DATA

DATA: a folder with vader, isarcasmeval2022, besstie, tweeteval-irony and glue in it. `texts` takes
three minutes on a CPU, `teachers` and `students` two and three on an H200, `last-pass` half an hour
on two cores with bfloat16. What is done is found again. `keep` chooses, by texts that nothing has
learned from: OUT/scores.json, OUT/model.

The shipped model had the ears, and the start of one candidate, from models that are no longer part
of the package; here both are the built-in model, or `--ears`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from litotes.core.values import Example
from litotes.data.corpus import Corpus, example_key, text_key
from litotes.model.checkpoint import Model, load_model, save_model
from litotes.training.distillation.distill import run_all
from reproduction.builtin.choice import (
    BySet,
    Found,
    Leads,
    Parts,
    finish,
    fitted_on,
    is_harmless,
    judge,
    look,
    mix,
    tokenize,
    write_tried,
)
from reproduction.builtin.imitation import (
    TASKS,
    TEXTS,
    LastPass,
    PrintedProgress,
    Student,
    StudentJob,
    TeacherJob,
    load_leads,
    run_last_pass,
    run_student,
    run_teacher,
)
from reproduction.builtin.texts import (
    ASKED,
    N_FOLDS,
    PASSAGE,
    VARIANT,
    Row,
    as_shipped,
    make_plan,
    read_texts,
    texts_of_none,
    write_texts,
)

STUDENTS = {
    "variants": Student(50),
    "ears": Student(52, ears=0.5),
    "older twice": Student(53, epochs=2, older=2, ears=0.5),
    "built-in on": Student(54, begins_as="builtin", learning_rate=1e-4, ears=0.5),
    "no variants": Student(55, epochs=8, n_variants=0),
    "faster": Student(51, learning_rate=4e-4, ears=0.25),
}
"""Ears: of a model that hears strangers' sarcasm."""
TRAINED_ON = "trained on"
LAST_PASS = LastPass(("ears", "faster", "older twice"), seed=60, learning_rate=1.5e-4, ears=0.25)
BEFORE = "built-in"
"""The model there was."""
MIXTURES: tuple[Parts, ...] = (
    ("ears", "faster", "older twice"),
    (TRAINED_ON, "faster"),
    (TRAINED_ON, "ears", "faster", "older twice"),
)
"""Besides each student alone."""
AS_GOOD = 0.002
"""Of a mean of macro-F1: less than these texts can tell."""
N_TEXTS = 110_000
"""Of the last pass."""


def main(words: Sequence[str] | None = None) -> None:
    given = _parse(words)
    out: Path = given.out.resolve()
    watch = PrintedProgress()
    if given.step == "texts":
        write_texts(
            as_shipped(make_plan(given.data, out, "minilm")),
            given.data,
            out / TEXTS,
            teacher=given.teacher,
        )
    elif given.step == "teachers":
        teachers = {}
        for fold in (*range(N_FOLDS), None):
            teacher = given.ears if fold is None else given.teacher
            teachers[f"fold {fold}"] = TeacherJob(out, fold, teacher, given.device)
        run_all(teachers, run_teacher, n_workers=given.workers, what="teachers", watch=watch)
    elif given.step == "students":
        jobs = {name: StudentJob(out, name, one, given.device) for name, one in STUDENTS.items()}
        run_all(jobs, run_student, n_workers=given.workers, what="students", watch=watch)
    elif given.step == "last-pass":
        run_last_pass(out, TRAINED_ON, LAST_PASS, n_texts=N_TEXTS)
    else:
        keep(given.data, out)


def keep(data: Path, out: Path) -> None:
    """Keeps the best, with its line, its temperatures and what is known about it."""
    plan = as_shipped(make_plan(data, out, "minilm"))
    sets = texts_of_none(data, plan)
    folders = {name: StudentJob(out, name, Student(0), None) for name in (*STUDENTS, TRAINED_ON)}
    folders = {name: job for name, job in folders.items() if job.is_done()}
    models = {name: load_model(job.model_folder) for name, job in folders.items()}
    rows = read_texts(out / TEXTS)
    asked = [text_key(row.text) for row in rows if row.kind == ASKED]
    n_texts = {name: len(corpus) for name, corpus in sets.items()}
    tried: dict[Parts, Found] = {}
    for name, job in folders.items():
        leads = load_leads(job.folder)
        by_task = {
            task: leads_in(sets, task, dict(zip(asked, own.tolist(), strict=True)))
            for task, own in leads.items()
        }
        tried[name,] = judge(by_task, n_texts)
    models[BEFORE] = load_model("builtin")
    texts = tokenize(sets, models[BEFORE])
    for parts in ((BEFORE,), *MIXTURES):
        if all(part in models for part in parts):
            tried[parts] = look(mix(models, parts), texts)
            write_tried(out / "scores.json", tried)
    best = choose(tried)
    write_tried(out / "scores.json", tried, chosen=list(best))
    for parts, found in tried.items():
        print(" + ".join(parts), found["mean"], found["area"], found["scores"], flush=True)
    print(f"The best: {' + '.join(best)}", flush=True)
    model = finish(mix(models, best), tried[best], about(best, tried[best], rows))
    save_model(with_facts(model, rows), out / "model", card="")


def choose(tried: Mapping[Parts, Found]) -> Parts:
    """The largest area under the ROC curve among those whose mean of macro-F1 is as good as the
    best one's, of those that lose nothing against the model there was elsewhere.
    """
    before = tried[BEFORE,]["scores"]
    candidates = [parts for parts in tried if parts != (BEFORE,)]
    harmless = [parts for parts in candidates if is_harmless(tried[parts]["scores"], before)]
    left = harmless or candidates
    best = max(tried[parts]["mean"] for parts in left)
    alike = [parts for parts in left if tried[parts]["mean"] >= best - AS_GOOD]
    return max(alike, key=lambda parts: tried[parts]["area"])


def leads_in(sets: Mapping[str, Corpus], task: str, leads: Mapping[str, float]) -> BySet:
    """What was answered to the texts of each set that have a label. leads: by the key of a text."""
    second = TASKS[task].labels[1]
    found = {}
    for name, corpus in sets.items():
        own: list[Example] = [one for one in corpus if task in one.labels]
        gold = np.array([int(one.labels[task] == second) for one in own])
        if len(set(gold.tolist())) == 2:
            found[name] = Leads(np.array([leads[example_key(one)] for one in own]), gold)
    return found


def about(parts: Parts, found: Found, rows: Sequence[Row]) -> str:
    n_variants = sum(row.kind == VARIANT for row in rows)
    n_others = sum(row.kind not in (VARIANT, ASKED) for row in rows)
    how = "A student"
    if parts == (TRAINED_ON,):
        how = f"The mean of {len(LAST_PASS.parts)} students, trained on,"
    elif len(parts) > 1:
        how = f"The mean of {len(parts)} students"
    return (
        f"{how} of {N_FOLDS} cross-fitted mpnet teachers, who answered {n_variants:,} variants of"
        f" {n_others:,} texts. {fitted_on(sum(found['n_texts'].values()))}"
    )


def with_facts(model: Model, rows: Sequence[Row]) -> Model:
    """What an edition says about itself: of how its first weights came about, nothing."""
    *before, last = model.facts["notes"]
    own = {name: model.facts[name] for name in ("key", "recipe", "versions")}
    n_train = sum(row.kind not in (VARIANT, PASSAGE, ASKED) for row in rows)
    notes = [note for note in before if " student" not in note and " edition" not in note]
    even = {task: [1.0] * len(one.labels) for task, one in TASKS.items()}
    facts = {
        **own,
        "data": model.facts["data"] | {"n_train": n_train},
        "notes": [*notes, last],
        "class_weights": even,
    }
    return replace(model, facts=facts)


def _parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    steps = parser.add_subparsers(dest="step", required=True)
    for name in ("texts", "teachers", "students", "last-pass", "keep"):
        step: Any = steps.add_parser(name)
        if name in ("texts", "keep"):
            step.add_argument("data", type=Path)
        step.add_argument("out", type=Path)
        if name in ("texts", "teachers"):
            step.add_argument("--teacher", default="mpnet", help="an encoder's name or folder")
        if name == "teachers":
            step.add_argument("--ears", default="builtin", help="a model folder, or builtin")
        if name in ("teachers", "students"):
            step.add_argument("--workers", type=int, default=6, help="trainings at the same time")
            step.add_argument("--device")
    return parser.parse_args(words)


if __name__ == "__main__":
    main()
