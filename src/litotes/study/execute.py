"""All runs of a study, on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from litotes.core.progress import Watch, unwatched
from litotes.core.storage import locked
from litotes.scale.jobs import run_jobs
from litotes.scale.on_ray import run_on_ray
from litotes.scale.outcomes import Outcome
from litotes.study.job import RunJob, jobs_of, work
from litotes.study.plan import Study


@dataclass(frozen=True)
class Executed:
    """The runs of a study by key, and why some of them have no result. n_found: how many were there
    before.
    """

    jobs: dict[str, RunJob]
    failures: dict[str, Outcome]
    n_found: int


def execute(
    study: Study,
    out: Path,
    *,
    n_workers: int = 1,
    on: str = "here",
    device: str | None = None,
    watch: Watch = unwatched,
) -> Executed:
    """Does every run that is not done yet; what fails is collected, and tried again the next time."""
    # whole paths: other processes may work elsewhere
    jobs = jobs_of(study, out.resolve(), device=device)
    with locked(out):
        todo = {key: job for key, job in jobs.items() if not job.is_done()}
        # what people see while it runs
        named = {f"{job.name} ({key})": job for key, job in todo.items()}
        keys = dict(zip(named, todo, strict=True))
        outcomes = _outcomes(named, n_workers, on, watch)
        failures = {
            keys[outcome.name]: outcome for outcome in outcomes if outcome.error is not None
        }
    return Executed(jobs, failures, len(jobs) - len(todo))


def _outcomes(todo: dict[str, RunJob], n_workers: int, on: str, watch: Watch) -> Iterator[Outcome]:
    if not todo:
        return iter(())
    if on == "ray":
        device = next(iter(todo.values())).device or ""
        return run_on_ray(
            todo,
            work,
            address=None,
            watch=watch,
            n_gpus_per_job=1 if device.startswith("cuda") else 0,
        )
    return run_jobs(todo, work, n_workers=n_workers, watch=watch)
