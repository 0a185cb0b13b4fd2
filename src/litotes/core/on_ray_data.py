"""Jobs for workers that stay: a Ray Dataset of the jobs' names, mapped by a pool of actors (Ray
Data, `ActorPoolStrategy`).

`run_on_ray` gives every job to any free worker, which suits long runs that share nothing. Here a
worker does hundreds of short jobs, and what it has loaded for the first serves all of them. Ray
restarts a worker that dies, and its job.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Generic

from litotes.core.errors import UserError
from litotes.core.on_ray import N_RETRIES, SHARED_FOLDER, cluster, count_places, is_local
from litotes.core.outcomes import Job, JobProgress, Outcome, Work, attempt, error_sentence
from litotes.core.progress import Watch, ignore_progress


def map_on_ray(
    jobs: Mapping[str, Job],
    work: Work[Job],
    *,
    begun: Path,
    n_workers: int | None,
    address: str | None,
    watch: Watch,
    n_gpus: float = 0,
    what: str = "runs",
) -> Iterator[Outcome]:
    """Does all jobs on the cluster at `address` (see `run_on_ray`) and gives each outcome as it
    comes.

    begun: an empty folder, shared by all nodes, where workers note what they begin: a job that
    kills worker after worker is given up. n_workers: each has a core; None: as many as fit.
    """
    watch(what, 0, len(jobs), "starting workers" if is_local(address) else SHARED_FOLDER)
    with cluster(address) as ray:
        needs = {name: n for name, n in (("CPU", 1.0), ("GPU", n_gpus)) if n}
        n_places = count_places(ray.nodes(), needs, is_local=is_local(address))
        n_workers = min(_n_workers(n_workers, n_places, address), len(jobs))
        progress = JobProgress(len(jobs), n_workers=n_workers, watch=watch, what=what)
        try:
            for row in _map_jobs(jobs, work, begun, n_workers=n_workers, n_gpus=n_gpus):
                error, trace = row["error"] or None, row["trace"] or None
                outcome = Outcome(row["name"], row["seconds"], error, trace)
                progress.add([outcome])
                progress.show({})
                yield outcome
        except KeyboardInterrupt as error:
            raise progress.stopped() from error
        except ray.exceptions.RayError as error:
            raise UserError(
                f"The cluster cannot go on ({error_sentence(error)}). Start the command again to"
                " go on."
            ) from error


def _map_jobs(
    jobs: Mapping[str, Job], work: Work[Job], begun: Path, *, n_workers: int, n_gpus: float
) -> Iterator[dict[str, Any]]:
    try:
        import ray.data
    except ImportError as error:
        raise UserError(
            f'Workers that stay need Ray Data ({error}): pip install "litotes[ray]".'
        ) from error
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # it prints
    with warnings.catch_warnings():
        # of Ray's own settings, about themselves
        warnings.simplefilter("ignore", DeprecationWarning)
        context = ray.data.DataContext.get_current().copy()
    context.enable_progress_bars = context.print_on_execution_start = False
    with ray.data.DataContext.current(context):
        names = ray.data.from_items(
            [{"name": name} for name in jobs], override_num_blocks=len(jobs)
        )
        reports = names.map_batches(
            _Actor,
            fn_constructor_args=(dict(jobs), work, begun),
            batch_size=1,
            # a job that waits could be done elsewhere
            compute=ray.data.ActorPoolStrategy(size=n_workers, max_tasks_in_flight_per_actor=1),
            num_cpus=1,
            num_gpus=n_gpus,
        )
        yield from reports.iter_rows()


def _n_workers(asked: int | None, n_there: int, address: str | None) -> int:
    if asked is not None and asked > n_there and is_local(address):
        raise UserError(
            f"{asked} workers need a core each, and this machine has room for {n_there}: use"
            f" --workers {n_there}, or leave it out."
        )
    return asked or n_there


class _Actor(Generic[Job]):
    """A worker that stays; it is given the names of jobs, one at a time."""

    def __init__(self, jobs: Mapping[str, Job], work: Work[Job], begun: Path) -> None:
        os.environ["RAYON_NUM_THREADS"] = "1"  # a worker has one core; the tokenizer would take all
        self.jobs, self.work, self.begun = jobs, work, begun

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        name = str(batch["name"][0])
        outcome = self._outcome(name)
        return {
            "name": [name],
            "seconds": [outcome.seconds],
            "error": [outcome.error or ""],
            "trace": [outcome.trace or ""],
        }

    def _outcome(self, name: str) -> Outcome:
        """Gives a job up after some deaths; Ray would restart it forever."""
        trace = self.begun / name
        n_deaths = len(trace.read_text().splitlines()) if trace.exists() else 0
        if n_deaths > N_RETRIES:
            return Outcome(
                name,
                0.0,
                f"{name} ended every worker it was given to: perhaps out of memory; use fewer"
                " --workers, or smaller parts.",
            )
        with trace.open("a") as stream:
            stream.write(f"{os.getpid()}\n")
        outcome = attempt(name, partial(self.work, self.jobs[name], ignore_progress))
        trace.unlink(missing_ok=True)
        return outcome
