"""One run of a study: train, test, and keep the answers; the model itself may go.

runs/KEY/facts.json        the resolved recipe, what it was trained on, notes, calibration: the same
                           in every repetition
runs/KEY/timing.json       how long it took, and on which machine: never the same
runs/KEY/tests/KEY.json    gold labels and answers by column and task, no texts
runs/KEY/model/            the model folder, if models are kept
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from litotes.core.machine import choose_device, machine
from litotes.core.progress import Watch, prefix_watch
from litotes.core.storage import write_json
from litotes.data.cells import ColumnNames
from litotes.data.keys import example_key
from litotes.evaluation.evaluate import TaskPredictions, predict_corpus, warn_of_trained_texts
from litotes.model.trained_texts import read_trained_texts
from litotes.prediction.predictor import Predictor
from litotes.study.corpora import select_test_texts
from litotes.study.plan import TestedOn
from litotes.training.recipe import Recipe
from litotes.training.run import Run, train


@dataclass(frozen=True)
class RunJob:
    """A recipe, the tests (by key) of its model, and the folder that the run writes into.

    name: for people. label: before its own progress, such as `2/6 en-AU`.
    n_threads: that torch computes with; another number adds in another order, and answers differ in
    their last digits.
    """

    name: str
    recipe: Recipe
    tests: Mapping[str, TestedOn]
    folder: Path
    model_folder: Path
    keep_model: bool
    n_threads: int
    device: str | None
    label: str = ""

    def is_done(self) -> bool:
        if not (self.folder / "facts.json").is_file():
            return False
        if self.keep_model and not self.model_folder.is_dir():
            return False
        return all(self.answers_file(key).is_file() for key in self.tests)

    def answers_file(self, test: str) -> Path:
        return self.folder / "tests" / f"{test}.json"


def run_job(job: RunJob, watch: Watch) -> None:
    """Does the job, or what is left of it."""
    if job.is_done():
        return
    if job.label:
        watch = prefix_watch(watch, job.label)
    with _threads(job.n_threads):
        run = train(job.recipe, job.model_folder, device=job.device, resume=True, watch=watch)
        _test(run, job, watch)
    write_json(job.folder / "timing.json", _times(run, job))
    # last: a folder that has it is complete
    write_json(job.folder / "facts.json", _facts(run, job))
    if not job.keep_model:
        shutil.rmtree(job.model_folder, ignore_errors=True)


def _test(run: Run, job: RunJob, watch: Watch) -> None:
    """Writes the answers to all tests that are missing."""
    predictor = Predictor(*run.models, device=job.device)
    for key, test in job.tests.items():
        if not job.answers_file(key).is_file():
            write_json(job.answers_file(key), _answers(predictor, test, job.recipe, watch))


@contextmanager
def _threads(n: int) -> Iterator[None]:
    """Within this, torch computes with n threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _times(run: Run, job: RunJob) -> dict[str, Any]:
    seconds = [model.facts["seconds_per_step"] for model in run.models]
    return {"seconds_per_step": seconds, "machine": _machine(job.device)}


def _machine(device: str | None) -> dict[str, Any]:
    chosen = choose_device(device)
    name = torch.cuda.get_device_name(chosen) if chosen.type == "cuda" else "cpu"
    return {**machine(), "device": name}


def _answers(predictor: Predictor, test: TestedOn, recipe: Recipe, watch: Watch) -> dict[str, Any]:
    chosen = select_test_texts(test, recipe, list(predictor.tasks))
    predictions = predict_corpus(predictor, chosen, watch=watch)
    names = ColumnNames(chosen, test.by)
    columns = sorted(set(map(names.name, chosen)))
    return {
        "test": test.model_dump(mode="json"),
        "columns": {name: _by_task(predictions, name, names) for name in columns},
    }


def _by_task(
    predictions: Mapping[str, TaskPredictions], column: str, names: ColumnNames
) -> dict[str, Any]:
    content = {}
    for task, result in predictions.items():
        part = result.only([names.name(example) == column for example in result.examples])
        if part.examples and part.task.is_choice:
            content[task] = _part_json(part)
    return content


def _part_json(part: TaskPredictions) -> dict[str, Any]:
    return {
        "labels": list(part.task.labels),
        "texts": _hash_of_texts(part),
        "gold": part.gold().tolist(),
        "answers": part.predicted().tolist(),
        "probability": [round(answer.probability or 0.0, 6) for answer in part.answers],
    }


def _hash_of_texts(part: TaskPredictions) -> str:
    """Two systems may be compared text by text when this is the same for both."""
    keys = "\n".join(example_key(example) for example in part.examples)
    return sha256(keys.encode()).hexdigest()[:16]


def seen_notes(
    trained: frozenset[str] | None,
    tests: Iterable[TestedOn],
    recipe: Recipe,
    tasks: Sequence[str],
) -> list[str]:
    """A warning for each other corpus with texts that the model was trained on; those that leak
    within the model's own are the affair of `data.leaks`. trained: their hashes.
    """
    notes: dict[str, None] = {}  # a set that keeps its order
    for test in tests:
        if test.data in (None, recipe.data.source):
            continue
        chosen = select_test_texts(test, recipe, tasks)
        noted = warn_of_trained_texts(replace(chosen, notes=()), trained)
        notes |= dict.fromkeys(f"{note} (Tested on {chosen.name}.)" for note in noted.notes)
    return list(notes)


def _facts(run: Run, job: RunJob) -> dict[str, Any]:
    recipe, calibration = job.recipe, {}
    tasks = [task for model in run.models for task in model.classifier.tasks]
    seen = seen_notes(read_trained_texts(job.model_folder), job.tests.values(), recipe, tasks)
    for model in run.models:
        for task, one in model.calibration.items():
            calibration[task] = one.as_json()
    return {
        "recipe": recipe.model_dump(mode="json"),
        "n_train": [model.facts["data"]["n_train"] for model in run.models],
        "best_epoch": [model.facts["best_epoch"] for model in run.models],
        "held_out": [_held_out_score(model.facts) for model in run.models],
        "calibration": calibration,
        "notes": [*run.notes, *seen],
    }


def _held_out_score(facts: Mapping[str, Any]) -> float | None:
    """Of the epoch that was kept; None: nothing was held out, or it could not tell."""
    for line in facts["history"]:
        if line["epoch"] == facts["best_epoch"]:
            score: float | None = line.get("held_out")
            return score
    return None
