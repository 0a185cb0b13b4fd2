"""Many jobs on one machine, one after the other or in several processes.

A job is a description, `work(job, watch)` what is done with it: it writes its result into a folder
of its own, whole or not at all, and finds its own traces there when it is begun again. That is all
these runners ask, and why a job may be done twice but never lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import partial

from litotes.core.errors import UserError
from litotes.core.outcomes import Job, JobProgress, Outcome, Work, attempt
from litotes.core.progress import Watch
from litotes.core.worker_pool import run_in_workers

__all__ = ["Outcome", "run_jobs"]


def run_jobs(
    jobs: Mapping[str, Job], work: Work[Job], *, n_workers: int, watch: Watch, what: str = "runs"
) -> Iterator[Outcome]:
    """Does all jobs, begun in their order, and gives each outcome as it comes; a failed job does
    not end the others.

    One worker is this very process: Ctrl-C, debuggers and each job's own progress work as for a
    single run. More are processes of their own, which share the processor's cores; with those only
    whole jobs are told to `watch`.

    Ctrl-C ends everything with `Stopped` or KeyboardInterrupt; the same call goes on later. Leave
    out jobs known to be done: their zero seconds would spoil the guess of the time left. what: what
    the jobs are called where they are counted.
    """
    if n_workers < 1:
        raise UserError(f"{n_workers} workers can do nothing; use --workers 1 or more.")
    if n_workers == 1:
        return _one_by_one(jobs, work, watch=watch, what=what)
    return run_in_workers(jobs, work, n_workers=n_workers, watch=watch, what=what)


def _one_by_one(
    jobs: Mapping[str, Job], work: Work[Job], *, watch: Watch, what: str
) -> Iterator[Outcome]:
    progress = JobProgress(len(jobs), n_workers=1, watch=watch, what=what)
    for name, job in jobs.items():
        progress.show({name: time.monotonic()})
        outcome = attempt(name, partial(work, job, watch))
        progress.add([outcome])
        progress.show({})
        yield outcome
