"""One run of a study: train, test, and keep the answers; the model itself may go.

runs/KEY/facts.json        the resolved recipe, what it was trained on, notes, calibration: the same in every repetition
runs/KEY/timing.json       how long it took, and on which machine: never the same
runs/KEY/tests/KEY.json    gold labels and answers by column and task, no texts
runs/KEY/model/            the model folder, if models are kept
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from litotes.core.device import choose_device
from litotes.core.errors import UserError
from litotes.core.machine import machine
from litotes.core.progress import Watch
from litotes.core.storage import sha256_of, write_json
from litotes.data.corpus import Axis, Corpus, example_key, name_along
from litotes.data.sources import load
from litotes.evaluation.evaluate import Judged, check_labels, judge
from litotes.predict.predictor import Predictor
from litotes.study.plan import Study, TestedOn, hashed, shown
from litotes.training.recipe import Recipe
from litotes.training.run import Run, check_names, train

FORMAT = "1"
"""Of what a run writes, or of how it is made: a new number makes every run anew."""


@dataclass(frozen=True)
class RunJob:
    """A recipe, the tests (by key) its model has to take, and the folder of its own it writes into;
    `name` is for people.
    """

    name: str
    recipe: Recipe
    tests: Mapping[str, TestedOn]
    folder: Path
    device: str | None
    keep_model: bool

    def is_done(self) -> bool:
        return (self.folder / "facts.json").is_file() and all(
            self.answers_file(key).is_file() for key in self.tests
        )

    def answers_file(self, test: str) -> Path:
        return self.folder / "tests" / f"{test}.json"


def jobs_of(study: Study, out: Path, *, device: str | None = None) -> dict[str, RunJob]:
    """All runs of the study by key; a run that several experiments need is there once, with all
    their tests.

    Everything that can be known to go wrong is told here, before the first run.
    """
    for cached in (corpus_of, fingerprint, _encoder):
        cached.cache_clear()  # files may have changed since an earlier study of this process
    jobs: dict[str, RunJob] = {}
    for experiment in study.experiments:
        for setting in experiment.grid:
            check_names(setting.recipe)
            for test in experiment.tests:
                _check_test(test, setting.recipe)
            for seed in study.seeds:
                recipe = setting.recipe.changed(seed=setting.recipe.seed + seed)
                key = run_key(recipe)
                tests = {key_of_test(test, recipe): test for test in experiment.tests}
                earlier = jobs[key].tests if key in jobs else {}
                name = ", ".join(
                    [
                        experiment.settings.name,
                        *map(shown, setting.values.values()),
                        f"seed {recipe.seed}",
                    ]
                )
                jobs[key] = RunJob(
                    name,
                    recipe,
                    {**earlier, **tests},
                    out / "runs" / key,
                    device,
                    study.settings.keep_models,
                )
    return jobs


def run_key(recipe: Recipe) -> str:
    """The name of a run: its recipe, the texts it reads, and the encoder it starts from."""
    return hashed(
        FORMAT, recipe.key(), fingerprint(recipe.data.source), _encoder(recipe.model.encoder)
    )


def key_of_test(test: TestedOn, recipe: Recipe) -> str:
    """The name of a test: which texts, and what the columns are.

    Labels are mapped as in training when the corpus is the same.
    """
    source = test.data or recipe.data.source
    own = json.dumps(recipe.data.labels, sort_keys=True) if source == recipe.data.source else ""
    return hashed(source, fingerprint(source), test.where.model_dump_json(), test.by, own)


def work(job: RunJob, watch: Watch) -> None:
    """Does the job, or what is left of it."""
    if job.is_done():
        return
    run = train(job.recipe, job.folder / "model", device=job.device, resume=True, watch=watch)
    predictor = Predictor(*run.models, device=job.device)
    for key, test in job.tests.items():
        if not job.answers_file(key).is_file():
            write_json(job.answers_file(key), _answers(predictor, test, job.recipe, watch))
    seconds = [model.facts["seconds_per_step"] for model in run.models]
    write_json(
        job.folder / "timing.json", {"seconds_per_step": seconds, "machine": _machine(job.device)}
    )
    # last: a folder that has it is whole
    write_json(job.folder / "facts.json", _facts(run, job.recipe))
    if not job.keep_model:
        shutil.rmtree(job.folder / "model", ignore_errors=True)


def _machine(device: str | None) -> dict[str, Any]:
    chosen = choose_device(device)
    return {
        **machine(),
        "device": torch.cuda.get_device_name(chosen) if chosen.type == "cuda" else "cpu",
    }


@cache
def corpus_of(source: str) -> Corpus:
    """A corpus is read once, however many runs of this process are tested on it."""
    return load(source)


@cache
def fingerprint(source: str) -> str:
    return corpus_of(source).fingerprint()


@cache
def _encoder(encoder: str) -> str:
    """The hashes of an encoder's files where it is a folder; bundled encoders and Hub revisions are
    known by their names.
    """
    files = (
        sorted([*Path(encoder).glob("*.safetensors"), *Path(encoder).glob("*.json")])
        if Path(encoder).is_dir()
        else []
    )
    return " ".join(sha256_of(file) for file in files)


def _tested(test: TestedOn, recipe: Recipe, tasks: Sequence[str]) -> Corpus:
    """The texts of a test that carry a label of one of the tasks."""
    corpus = corpus_of(test.data or recipe.data.source)
    if test.data in (None, recipe.data.source):
        corpus = corpus.mapped(recipe.data.labels)
    common = [task for task in tasks if task in corpus.tasks]
    if not common:
        raise UserError(
            f"{corpus.name} is labelled for {', '.join(corpus.tasks)}; models of {', '.join(tasks)}"
            " cannot be tested on it."
        )
    chosen = corpus.where(variety=test.where.variety, source=test.where.source, task=common)
    return chosen.where(split=chosen.test_split())


def _check_test(test: TestedOn, recipe: Recipe) -> None:
    trained_on = (
        corpus_of(recipe.data.source).mapped(recipe.data.labels).where(task=recipe.data.tasks)
    )
    for task in trained_on.tasks.values():
        if task.is_regression:
            raise UserError(
                f"{task.name} of {trained_on.name} is answered with a number; a study is of"
                " macro-F1. Leave it out of data.tasks."
            )
    chosen = _tested(test, recipe, list(trained_on.tasks))
    for name in chosen.tasks:
        check_labels(trained_on.tasks[name], chosen)


def _answers(predictor: Predictor, test: TestedOn, recipe: Recipe, watch: Watch) -> dict[str, Any]:
    chosen = _tested(test, recipe, list(predictor.tasks))
    judged = judge(predictor, chosen, watch=watch)
    columns = sorted({name_along(example, test.by) for example in chosen})
    return {
        "test": test.model_dump(mode="json"),
        "columns": {name: _by_task(judged, name, test.by) for name in columns},
    }


def _by_task(judged: Mapping[str, Judged], column: str, axis: Axis) -> dict[str, Any]:
    content = {}
    for task, result in judged.items():
        part = result.only([name_along(example, axis) == column for example in result.examples])
        if part.examples:
            content[task] = {
                "labels": list(part.task.labels),
                "texts": _hash_of_texts(part),
                "gold": part.gold().tolist(),
                "answers": part.predicted().tolist(),
                "probability": [round(answer.probability or 0.0, 6) for answer in part.answers],
            }
    return content


def _hash_of_texts(part: Judged) -> str:
    """Two systems may be compared text by text when this is the same for both."""
    return sha256(
        "\n".join(example_key(example) for example in part.examples).encode()
    ).hexdigest()[:16]


def _facts(run: Run, recipe: Recipe) -> dict[str, Any]:
    return {
        "recipe": recipe.model_dump(mode="json"),
        "n_train": [model.facts["data"]["n_train"] for model in run.models],
        "best_epoch": [model.facts["best_epoch"] for model in run.models],
        "calibration": {
            task: one.as_json() for model in run.models for task, one in model.calibration.items()
        },
        "notes": list(run.notes),
    }
