"""The corpora of a study: each is read once, and known by its texts wherever it lies."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

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
    TaskPredictions,
    check_labels,
    predict_corpus,
    warn_of_trained_texts,
)
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
    """Files may have changed since an earlier study of this process."""
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
    if not folder.is_dir():
        return ""
    files = sorted([*folder.glob("*.safetensors"), *folder.glob("*.json")])
    return " ".join(sha256_of(file) for file in files)


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


def check_test(test: TestedOn, recipe: Recipe, tasks: Sequence[str] | None) -> None:
    """A test must be of classification tasks whose labels the model learns.

    tasks: those that are tested; None: all that the model learns.
    """
    corpus = load_once(recipe.data.source).map_labels(recipe.data.labels)
    trained_on = corpus.where(task=recipe.data.tasks)
    tested = [task for name, task in trained_on.tasks.items() if tasks is None or name in tasks]
    for task in tested:
        if not task.is_choice:
            kind = "several labels" if task.multi_label else "a number"
            raise UserError(
                f"{task.name} of {trained_on.name} is answered with {kind}; a study is of"
                " macro-F1 of one label. Leave it out of data.tasks."
            )
    chosen = select_test_texts(test, recipe, [task.name for task in tested])
    for name in chosen.tasks:
        check_labels(trained_on.tasks[name], chosen)


# One run of a study: train, test, and keep the answers; the model itself may go.
#
# runs/KEY/facts.json        the resolved recipe, what it was trained on, notes, calibration: the
# same
#                            in every repetition
# runs/KEY/timing.json       how long it took, and on which machine: never the same
# runs/KEY/tests/KEY.json    gold labels and answers by column and task, no texts
# runs/KEY/model/            the model folder, if models are kept


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
    write_json(job.folder / "facts.json", _run_facts(run, job))
    if not job.keep_model:
        shutil.rmtree(job.model_folder, ignore_errors=True)


def _test(run: Run, job: RunJob, watch: Watch) -> None:
    """Writes the answers to all tests that are missing."""
    predictor = Predictor(*run.models, device=job.device)
    for key, test in job.tests.items():
        if not job.answers_file(key).is_file():
            write_json(job.answers_file(key), _test_answers(predictor, test, job.recipe, watch))


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


def _test_answers(
    predictor: Predictor, test: TestedOn, recipe: Recipe, watch: Watch
) -> dict[str, Any]:
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


def _run_facts(run: Run, job: RunJob) -> dict[str, Any]:
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


# All runs of a study, on this machine or on a cluster.

THREADS = "threads.json"
_MAX_THREADS = 4096
"""In OUT/runs: with how many threads the runs of this study compute."""


@dataclass(frozen=True)
class StudyRuns:
    """The runs of a study by key, and why some of them have no result.

    n_found: how many were done before.
    """

    jobs: dict[str, RunJob]
    failures: dict[str, Outcome]
    n_found: int

    def reasons(self) -> dict[str, str]:
        """Why a run has no result, by its key."""
        return {key: str(outcome.error) for key, outcome in self.failures.items()}


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
        _check(experiment)
    if n_workers is None:
        n_workers = 1 if on == "ray" else choose_workers(_encoders(study), device)
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
            for seed in study.seeds:
                recipe = setting.recipe.changed(seed=setting.recipe.seed + seed)
                key = run_key(recipe)
                tests = dict(jobs[key].tests) if key in jobs else {}
                for test in experiment.tests:
                    tests[key_of_test(test, recipe)] = test
                jobs[key] = RunJob(
                    name=_job_name(experiment, setting, recipe.seed),
                    recipe=recipe,
                    tests=tests,
                    folder=out / "runs" / key,
                    model_folder=_model_folder(setting, out, key, recipe.seed),
                    keep_model=study.settings.keep_models,
                    n_threads=n_threads,
                    device=device,
                    label=_label(setting, seed if len(study.seeds) > 1 else None),
                )
    numbered = enumerate(jobs.items(), start=1)
    return {
        key: replace(job, label=f"{number}/{len(jobs)} {job.label}")
        for number, (key, job) in numbered
    }


def _encoders(study: Study) -> Iterator[str]:
    for experiment in study.experiments:
        for setting in experiment.grid:
            yield setting.recipe.model.encoder


def _check(experiment: Experiment) -> None:
    """What is known to go wrong is reported before the first run."""
    for setting in experiment.grid:
        check_names(setting.recipe)
        for test in experiment.tests:
            check_test(test, setting.recipe, experiment.tasks)


def _job_name(experiment: Experiment, setting: Setting, seed: int) -> str:
    values = map(format_value, setting.values.values())
    return ", ".join([experiment.settings.name, *values, f"seed {seed}"])


def _label(setting: Setting, seed: int | None) -> str:
    """What tells a run from the others, in few words."""
    values = ", ".join(map(format_value, setting.values.values()))
    return values if seed is None else f"{values} seed {setting.recipe.seed + seed}"


def _model_folder(setting: Setting, out: Path, key: str, seed: int) -> Path:
    if setting.model_name is None:
        return out / "runs" / key / "model"
    return out / "models" / f"{setting.model_name}-{seed}"


def _n_threads(file: Path, n_workers: int, on: str) -> int:
    """How many threads a run computes with: decided when the study begins, and kept.

    torch adds up in another order with another number of threads, so a study that is resumed with
    more or fewer workers would otherwise not end in the same report.
    """
    if file.is_file():
        advice = "Delete the study's folder, or set it to the number of threads it began with."
        n_threads = read_as(file, dict[str, int], advice=advice).get("n_threads", 0)
        if not 1 <= n_threads <= _MAX_THREADS:
            raise UserError(f"{file}: damaged (n_threads is {n_threads}). {advice}")
        return n_threads
    if on == "ray":
        n_threads = 1  # a run is given one core of the cluster
    elif n_workers == 1:
        n_threads = torch.get_num_threads()
    else:
        n_threads = threads_per_worker(n_workers)
    write_json(file, {"n_threads": n_threads})
    return n_threads


def _run(
    todo: Mapping[str, RunJob], n_workers: int, on: str, watch: Watch
) -> Iterator[tuple[str, Outcome]]:
    """The outcomes of all jobs, each with its key."""
    if not todo:
        return
    keys = {f"{job.name} ({key})": key for key, job in todo.items()}  # names, for people who watch
    jobs = {name: todo[key] for name, key in keys.items()}
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
    """What one model answered to the texts of one task in one column, as `study/job.py` writes it;
    so are the files below.
    """

    labels: list[str]
    texts: str
    gold: list[int]
    answers: list[int]
    probability: list[float]

    def __post_init__(self) -> None:
        if not len(self.gold) == len(self.answers) == len(self.probability):
            raise ValueError("answers to another number of texts")
        if not all(0 <= place < len(self.labels) for place in (*self.gold, *self.answers)):
            raise ValueError("an answer that is none of the labels")
        if not all(0 <= probability <= 1 for probability in self.probability):
            raise ValueError("a probability that is none")


@dataclass(frozen=True)
class _Answers:
    test: Any
    columns: dict[str, dict[str, _Part]]


@dataclass(frozen=True)
class _Facts:
    recipe: Any
    n_train: list[int]
    best_epoch: list[int | None]
    calibration: dict[str, Calibration]
    notes: list[str]
    held_out: list[float | None] = field(default_factory=list)  # runs of earlier versions: unknown


@dataclass(frozen=True)
class _Timing:
    seconds_per_step: list[float]
    machine: dict[str, Any]


@dataclass(frozen=True)
class CellAnswers:
    """What the models of one cell answered.

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
    """The files of all runs; each is read once. reasons: why a run has no result, by its key."""

    def __init__(
        self, jobs: Mapping[str, RunJob], reasons: Mapping[str, str], seeds: Sequence[int]
    ) -> None:
        self.jobs, self.reasons, self.seeds = jobs, reasons, seeds
        self._contents: dict[Path, Any] = {}

    def failure(self, setting: Setting) -> str | None:
        """Why a setting has no result; None when all its seeds are done."""
        for seed in self.seeds:
            key = _key(setting, seed)
            if not self.jobs[key].is_done():
                return self.reasons.get(key, "not run yet")
        return None

    def failures(self, experiment: Experiment) -> dict[str, str]:
        """Of all settings without results, by name."""
        reasons = {setting.name: self.failure(setting) for setting in experiment.grid}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    def cells(self, setting: Setting, test: TestedOn) -> Iterator[tuple[str, str, CellAnswers]]:
        """The answers of a setting's models, (task, column, answers of all seeds)."""
        by_seed = [self._columns(setting, seed, test) for seed in self.seeds]
        calibrations = [self._facts(setting, seed).calibration for seed in self.seeds]
        for column, tasks in by_seed[0].items():
            for task in tasks:
                parts = [columns[column][task] for columns in by_seed]
                temperatures = [one.get(task, Calibration()).temperature for one in calibrations]
                yield task, column, _cell_answers(task, parts, temperatures)

    def notes(self, experiment: Experiment) -> tuple[str, ...]:
        """What the runs noted, each note once."""
        notes: dict[str, None] = {}  # a set that keeps its order
        for setting, seed in self._done(experiment):
            notes |= dict.fromkeys(self._facts(setting, seed).notes)
        return tuple(notes)

    def held_out(self, experiment: Experiment) -> dict[str, tuple[float | None, ...]]:
        """The held-out scores of every setting's models, in the epochs that were kept."""
        found: dict[str, tuple[float | None, ...]] = {}
        for setting, seed in self._done(experiment):
            scores = self._facts(setting, seed).held_out
            found[setting.name] = (*found.get(setting.name, ()), *scores)
        return found

    def seconds(self, experiment: Experiment) -> dict[str, tuple[float, ...]]:
        """Seconds per step of every run, by the kind of its setting."""
        found: dict[str, tuple[float, ...]] = {}
        for setting, seed in self._done(experiment):
            times = self._timing(setting, seed).seconds_per_step
            found[setting.kind] = (*found.get(setting.kind, ()), *times)
        return found

    def machines(self, experiment: Experiment) -> tuple[dict[str, Any], ...]:
        """The machines that the runs were timed on, each once."""
        found = {}
        for setting, seed in self._done(experiment):
            if machine := self._timing(setting, seed).machine:
                found[json.dumps(machine, sort_keys=True)] = machine
        return tuple(found.values())

    def _done(self, experiment: Experiment) -> Iterator[tuple[Setting, int]]:
        for setting in experiment.grid:
            if self.failure(setting) is None:
                for seed in self.seeds:
                    yield setting, seed

    def _columns(self, setting: Setting, seed: int, test: TestedOn) -> dict[str, dict[str, _Part]]:
        job = self.jobs[_key(setting, seed)]
        file = job.answers_file(key_of_test(test, job.recipe))
        return self._read(file, _Answers).columns

    def _facts(self, setting: Setting, seed: int) -> _Facts:
        return self._read(self.jobs[_key(setting, seed)].folder / "facts.json", _Facts)

    def _timing(self, setting: Setting, seed: int) -> _Timing:
        return self._read(self.jobs[_key(setting, seed)].folder / "timing.json", _Timing)

    def _read(self, file: Path, kind: type[Content]) -> Content:
        if file not in self._contents:
            advice = f"Delete {file} and start the command again: what is missing is made again."
            self._contents[file] = read_as(file, kind, advice=advice)
        content: Content = self._contents[file]
        return content


def _key(setting: Setting, seed: int) -> str:
    return run_key(setting.recipe.changed(seed=setting.recipe.seed + seed))


def _cell_answers(task: str, parts: Sequence[_Part], temperatures: Sequence[float]) -> CellAnswers:
    """parts: what each seed's file says about one cell."""
    first = parts[0]
    return CellAnswers(
        gold=np.array(first.gold),
        answers=np.array([part.answers for part in parts]),
        probability=np.array([part.probability for part in parts]),
        temperature=np.array(temperatures),
        labels=tuple(first.labels),
        texts=short_hash(first.texts, task, *first.labels, json.dumps(first.gold)),
    )
