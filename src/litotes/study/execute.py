"""All runs of a study, on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from litotes.core.errors import UserError
from litotes.core.jobs import Outcome, run_jobs, threads_per_worker
from litotes.core.json_text import read_as
from litotes.core.progress import Watch, ignore_progress
from litotes.core.ray_jobs import run_on_ray
from litotes.core.storage import clear_staged, locked, write_json
from litotes.study.corpora import check_test, forget, key_of_test, run_key
from litotes.study.job import RunJob, run_job
from litotes.study.plan import Experiment, Setting, Study, format_value
from litotes.training.run import check_names
from litotes.training.workers import choose_workers

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
