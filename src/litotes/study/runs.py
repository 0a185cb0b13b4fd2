"""The runs of a study: planned from its grid, done here or on a cluster, and read back.

runs/KEY/facts.json        the resolved recipe, what it was trained on, notes, calibration: the same
                           in every repetition
runs/KEY/timing.json       how long it took, and on which machine: never the same
runs/KEY/tests/KEY.json    gold labels and answers by column and task, no texts
runs/KEY/model/            the model folder, if models are kept
runs/threads.json          with how many threads the runs of this study compute

A corpus is read once, and known by its texts wherever it lies.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import torch
from pydantic import Field

from litotes.core.errors import UserError
from litotes.core.jobs import Outcome, run_jobs, threads_per_worker
from litotes.core.json_text import read_as
from litotes.core.machine import choose_device, machine
from litotes.core.numbers import Counts, Floats
from litotes.core.progress import Watch, ignore_progress, prefix_watch
from litotes.core.ray_jobs import run_on_ray
from litotes.core.storage import clear_staged, locked, sha256_of, write_json
from litotes.data.corpus import ColumnNames, Corpus, example_key
from litotes.data.sources import load_with_test_part
from litotes.evaluation.evaluate import (
    check_labels,
    kind_of_answer,
    predict_corpus,
    warn_of_trained_texts,
)
from litotes.evaluation.scores import Json
from litotes.model.calibration import Calibration
from litotes.model.folder import read_trained_texts
from litotes.prediction.predictor import Predictor
from litotes.study.plan import Experiment, Setting, Study, TestedOn, format_value, short_hash
from litotes.training.course import Run, check_names
from litotes.training.processes import choose_workers
from litotes.training.recipe import Recipe
from litotes.training.run import train

FORMAT = "1"
"""Of what a run writes, or of how it is made: a new number makes all runs again."""


def forget() -> None:
    """Empties the caches: files may have changed since an earlier study of this process."""
    for cached in (load_once, fingerprint, _encoder_hashes):
        cached.cache_clear()


@cache
def load_once(source: str) -> Corpus:
    """A corpus is read once, however many runs of this process are tested on it.

    Whatever a run is trained or tested on, a table without a split is divided in the same way.
    """
    return load_with_test_part(source)


@cache
def fingerprint(source: str) -> str:
    return load_once(source).fingerprint()


@cache
def _encoder_hashes(encoder: str) -> str:
    """The hashes of an encoder's files where it is a folder.

    Bundled encoders and Hub revisions are known by their names.
    """
    folder = Path(encoder)
    files = sorted([*folder.glob("*.safetensors"), *folder.glob("*.json")])
    return " ".join(map(sha256_of, files)) if folder.is_dir() else ""


def run_key(recipe: Recipe) -> str:
    """The name of a run: its recipe, the texts it reads, and the encoder it starts from."""
    texts, encoder = fingerprint(recipe.data.source), _encoder_hashes(recipe.model.encoder)
    return short_hash(FORMAT, recipe.key(), texts, encoder)


def key_of_test(test: TestedOn, recipe: Recipe) -> str:
    """The name of a test: which texts, and what the columns are.

    Labels are mapped as in training when the corpus is the same.
    """
    source = test.data or recipe.data.source
    own = json.dumps(recipe.data.labels, sort_keys=True) if source == recipe.data.source else ""
    return short_hash(source, fingerprint(source), test.where.model_dump_json(), test.by, own)


def select_test_texts(test: TestedOn, recipe: Recipe, tasks: Sequence[str]) -> Corpus:
    """The texts of a test that carry a label of one of the tasks."""
    corpus = load_once(test.data or recipe.data.source)
    if test.data in (None, recipe.data.source):
        corpus = corpus.map_labels(recipe.data.labels)
    common = [task for task in tasks if task in corpus.tasks]
    if not common:
        raise UserError(
            f"{corpus.name} is labelled for {', '.join(corpus.tasks)}; models of {', '.join(tasks)}"
            " cannot be tested on it."
        )
    chosen = corpus.where(variety=test.where.variety, source=test.where.source, task=common)
    return chosen.where(split=chosen.test_split())


def check_experiment(experiment: Experiment) -> None:
    """Reports what is known to go wrong before the first run: names that do not exist, tests of
    other than classification tasks, or with labels that the model does not learn.
    """
    for setting in experiment.grid:
        recipe = setting.recipe
        check_names(recipe)
        corpus = load_once(recipe.data.source).map_labels(recipe.data.labels)
        trained_on = corpus.where(task=recipe.data.tasks)
        tasks = experiment.tasks or list(trained_on.tasks)
        tested = [task for name, task in trained_on.tasks.items() if name in tasks]
        for task in tested:
            if not task.is_choice:
                raise UserError(
                    f"{task.name} of {trained_on.name} is answered with {kind_of_answer(task)}; a"
                    " study is of macro-F1 of one label. Leave it out of data.tasks."
                )
        for test in experiment.tests:
            chosen = select_test_texts(test, recipe, [task.name for task in tested])
            for name in chosen.tasks:
                check_labels(trained_on.tasks[name], chosen)


# One run of a study: train, test, and keep the answers; the model itself may go.


@dataclass(frozen=True)
class RunJob:
    """A recipe, the tests (by key) of its model, and the folder that the run writes into.

    name: for people. number: before its name where its progress is shown, such as `2/6`.
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
    number: str = ""

    @property
    def title(self) -> str:
        return f"{self.number} {self.name}"

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
    watch, n_threads = prefix_watch(watch, job.title), torch.get_num_threads()
    torch.set_num_threads(job.n_threads)
    try:
        run = train(job.recipe, job.model_folder, device=job.device, resume=True, watch=watch)
        predictor = Predictor(*run.models, device=job.device)
        for key, test in job.tests.items():
            if not job.answers_file(key).is_file():
                answers = _answer_test(predictor, test, job.recipe, watch)
                write_json(job.answers_file(key), answers)
    finally:
        torch.set_num_threads(n_threads)
    device = choose_device(job.device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    timing = {
        "seconds_per_step": [model.facts["seconds_per_step"] for model in run.models],
        "machine": {**machine(), "device": name},
    }
    write_json(job.folder / "timing.json", timing)
    # last: a folder that has it is complete
    write_json(job.folder / "facts.json", _run_facts(run, job))
    if not job.keep_model:
        shutil.rmtree(job.model_folder, ignore_errors=True)


def _answer_test(predictor: Predictor, test: TestedOn, recipe: Recipe, watch: Watch) -> Json:
    chosen = select_test_texts(test, recipe, list(predictor.tasks))
    predictions = predict_corpus(predictor, chosen, watch=watch)
    names = ColumnNames(chosen, test.by)
    columns: dict[str, Json] = {name: {} for name in sorted(set(map(names.name, chosen)))}
    for column, content in columns.items():
        for task, result in predictions.items():
            part = result.only([names.name(example) == column for example in result.examples])
            if part.examples and part.task.is_choice:
                keys = "\n".join(map(example_key, part.examples))
                content[task] = {
                    "labels": list(part.task.labels),
                    # two systems may be compared text by text when this is the same for both
                    "texts": sha256(keys.encode()).hexdigest()[:16],
                    "gold": part.gold().tolist(),
                    "answers": part.predicted().tolist(),
                    "probability": [round(one, 6) for one in part.confidence().tolist()],
                }
    return {"test": test.model_dump(mode="json"), "columns": columns}


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
        if test.data not in (None, recipe.data.source):
            chosen = replace(select_test_texts(test, recipe, tasks), notes=())
            noted = warn_of_trained_texts(chosen, trained).notes
            notes |= dict.fromkeys(f"{note} (Tested on {chosen.name}.)" for note in noted)
    return list(notes)


def _run_facts(run: Run, job: RunJob) -> Json:
    tasks = [task for model in run.models for task in model.classifier.tasks]
    trained = read_trained_texts(job.model_folder)
    seen = seen_notes(trained, job.tests.values(), job.recipe, tasks)
    facts = [model.facts for model in run.models]
    by_epoch = [{line["epoch"]: line.get("held_out") for line in one["history"]} for one in facts]
    return {
        "recipe": job.recipe.model_dump(mode="json"),
        "n_train": [one["data"]["n_train"] for one in facts],
        "best_epoch": [one["best_epoch"] for one in facts],
        # of the epoch that was kept; None: nothing was held out, or it could not tell
        "held_out": [own.get(one["best_epoch"]) for own, one in zip(by_epoch, facts, strict=True)],
        "calibration": {
            task: one.as_json() for model in run.models for task, one in model.calibration.items()
        },
        "notes": [*run.notes, *seen],
    }


# All runs of a study, on this machine or on a cluster.

THREADS = "threads.json"


@dataclass(frozen=True)
class _Threads:
    """The content of THREADS."""

    n_threads: Annotated[int, Field(ge=1, le=4096)]


@dataclass(frozen=True)
class StudyRuns:
    """The runs of a study by key, and why some of them have no result.

    n_found: how many were done before.
    """

    jobs: dict[str, RunJob]
    failures: dict[str, Outcome]
    n_found: int

    def failures_by_name(self) -> dict[str, str]:
        return {self.jobs[key].name: str(one.error) for key, one in self.failures.items()}


def execute(
    study: Study,
    out: Path,
    *,
    n_workers: int | None = None,
    on: str = "here",
    device: str | None = None,
    watch: Watch = ignore_progress,
) -> StudyRuns:
    """Does every run that is not done yet; what fails is collected, and tried again next time.

    n_workers: runs at the same time; None: one on a CPU, as many as fit on a GPU.
    """
    forget()
    for experiment in study.experiments:
        check_experiment(experiment)
    if n_workers is None:
        encoders = (one.recipe.model.encoder for one in study.settings_of_runs())
        n_workers = 1 if on == "ray" else choose_workers(encoders, device)
    with locked(out):
        for name in ("runs", "figures"):
            clear_staged(out / name, below=True)
        n_threads = _n_threads(out / "runs" / THREADS, n_workers, on)
        # resolved: other processes may work elsewhere
        jobs = plan_jobs(study, out.resolve(), n_threads=n_threads, device=device)
        todo = {key: job for key, job in jobs.items() if not job.is_done()}
        outcomes = dict(_run(todo, n_workers, on, watch))
    failures = {key: outcome for key, outcome in outcomes.items() if outcome.error is not None}
    return StudyRuns(jobs, failures, len(jobs) - len(todo))


def plan_jobs(
    study: Study, out: Path, *, n_threads: int = 1, device: str | None = None
) -> dict[str, RunJob]:
    """All runs of the study by key.

    One that several experiments need is there once, with the tests of all of them.
    """
    jobs: dict[str, RunJob] = {}
    for experiment in study.experiments:
        for setting in experiment.grid:
            values = ", ".join(map(format_value, setting.values.values()))
            for recipe in study.recipes(setting):
                key, seed = run_key(recipe), f"seed {recipe.seed}"
                folder, name = out / "runs" / key, setting.model_name
                own = out / "models" / f"{name}-{recipe.seed}"
                tests = {key_of_test(test, recipe): test for test in experiment.tests}
                jobs[key] = RunJob(
                    name=", ".join(filter(None, (experiment.settings.name, values, seed))),
                    recipe=recipe,
                    tests={**jobs[key].tests, **tests} if key in jobs else tests,
                    folder=folder,
                    model_folder=folder / "model" if name is None else own,
                    keep_model=study.settings.keep_models,
                    n_threads=n_threads,
                    device=device,
                )
    return {
        key: replace(job, number=f"{number}/{len(jobs)}")
        for number, (key, job) in enumerate(jobs.items(), start=1)
    }


def _n_threads(file: Path, n_workers: int, on: str) -> int:
    """Decides how many threads a run computes with, once when the study begins.

    torch adds up in another order with another number of threads, so a study that is resumed with
    more or fewer workers would otherwise not end in the same report.
    """
    if file.is_file():
        advice = "Delete the study's folder, or set it to the number of threads it began with."
        return read_as(file, _Threads, advice=advice).n_threads
    if on == "ray":
        n_threads = 1  # a run is given one core of the cluster
    else:
        n_threads = torch.get_num_threads() if n_workers == 1 else threads_per_worker(n_workers)
    write_json(file, {"n_threads": n_threads})
    return n_threads


def _run(
    todo: Mapping[str, RunJob], n_workers: int, on: str, watch: Watch
) -> Iterator[tuple[str, Outcome]]:
    """The outcomes of all jobs, each with its key."""
    if not todo:
        return
    keys = {job.title: key for key, job in todo.items()}  # for people who watch
    jobs = {job.title: job for job in todo.values()}
    if on == "ray":
        device = next(iter(jobs.values())).device or ""
        n_gpus = 1 if device.startswith("cuda") else 0
        outcomes = run_on_ray(jobs, run_job, address=None, watch=watch, n_gpus_per_job=n_gpus)
    else:
        outcomes = run_jobs(jobs, run_job, n_workers=n_workers, watch=watch)
    for outcome in outcomes:
        yield keys[outcome.name], outcome


# What the runs of a study have written, read back.

Content = TypeVar("Content")


@dataclass(frozen=True)
class _Part:
    """The answers of one model to the texts of one task in one column, as `_answer_test` writes
    them; so are the files below.
    """

    labels: list[str]
    texts: str
    gold: list[int]
    answers: list[int]
    probability: list[float]


@dataclass(frozen=True)
class _Answers:
    test: Any
    columns: dict[str, dict[str, _Part]]


@dataclass(frozen=True)
class _Facts:
    recipe: Any
    n_train: list[int]
    best_epoch: list[int | None]
    held_out: list[float | None]
    calibration: dict[str, Calibration]
    notes: list[str]


@dataclass(frozen=True)
class _Timing:
    seconds_per_step: list[float]
    machine: Json


@dataclass(frozen=True)
class CellAnswers:
    """The answers of the models of one cell.

    gold (text,); answers and their probability (seed, text); temperature (seed,). labels: the
    names of the classes. texts: a hash; cells with the same one were tested on the same texts.
    """

    gold: Counts
    answers: Counts
    probability: Floats
    temperature: Floats
    labels: tuple[str, ...]
    texts: str

    @property
    def n_classes(self) -> int:
        return len(self.labels)


class RunFiles:
    """The files of all runs; each is read once."""

    def __init__(self, study: Study, runs: StudyRuns) -> None:
        self.study, self.runs = study, runs
        self._contents: dict[Path, Any] = {}

    def _jobs(self, setting: Setting) -> dict[str, RunJob]:
        """The runs of a setting, one a seed, by key."""
        keys = map(run_key, self.study.recipes(setting))
        return {key: self.runs.jobs[key] for key in keys}

    def failure(self, setting: Setting) -> str | None:
        """Tells why a setting has no result; None when all its seeds are done."""
        for key, job in self._jobs(setting).items():
            if not job.is_done():
                failed = self.runs.failures.get(key)
                return "not run yet" if failed is None else str(failed.error)
        return None

    def cells(self, setting: Setting, test: TestedOn) -> Iterator[tuple[str, str, CellAnswers]]:
        """The answers of a setting's models, (task, column, answers of all seeds)."""
        jobs = self._jobs(setting).values()
        files = [job.answers_file(key_of_test(test, job.recipe)) for job in jobs]
        by_seed = [self._read(file, _Answers).columns for file in files]
        calibrations = [self._read(job.folder / "facts.json", _Facts).calibration for job in jobs]
        for column, tasks in by_seed[0].items():
            for task, first in tasks.items():
                parts = [columns[column][task] for columns in by_seed]
                temperatures = [own.get(task, Calibration()).temperature for own in calibrations]
                same_texts = short_hash(first.texts, task, *first.labels, json.dumps(first.gold))
                own = CellAnswers(
                    gold=np.array(first.gold),
                    answers=np.array([part.answers for part in parts]),
                    probability=np.array([part.probability for part in parts]),
                    temperature=np.array(temperatures),
                    labels=tuple(first.labels),
                    texts=same_texts,
                )
                yield task, column, own

    def gather(self, experiment: Experiment) -> Json:
        """Collects what the runs of an experiment noted and measured, or why they failed: all but
        the answers, as `ExperimentResults` names it.
        """
        failed: dict[str, str] = {}
        done: list[tuple[Setting, _Facts, _Timing]] = []
        for setting in experiment.grid:
            if (reason := self.failure(setting)) is not None:
                failed[setting.name] = reason
                continue
            for job in self._jobs(setting).values():
                facts = self._read(job.folder / "facts.json", _Facts)
                done.append((setting, facts, self._read(job.folder / "timing.json", _Timing)))
        held_out = defaultdict[str, tuple[float | None, ...]](tuple)
        seconds = defaultdict[str, tuple[float, ...]](tuple)
        for setting, facts, timing in done:
            held_out[setting.name] += tuple(facts.held_out)
            seconds[setting.kind] += tuple(timing.seconds_per_step)
        machines = {
            json.dumps(timing.machine, sort_keys=True): timing.machine for *_, timing in done
        }
        return {
            "notes": tuple(dict.fromkeys(note for _, facts, _ in done for note in facts.notes)),
            "seconds_per_step": seconds,
            "machines": tuple(machines.values()),
            "failed": failed,
            "held_out": held_out,
        }

    def _read(self, file: Path, kind: type[Content]) -> Content:
        if file not in self._contents:
            advice = f"Delete {file} and start the command again: what is missing is made again."
            self._contents[file] = read_as(file, kind, advice=advice)
        content: Content = self._contents[file]
        return content
