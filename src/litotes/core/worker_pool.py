"""Jobs in several worker processes.

A worker that dies loses nothing: its job is given to another one.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from multiprocessing.connection import wait
from types import TracebackType
from typing import Generic

from litotes.core.outcomes import Job, JobProgress, Outcome, Work
from litotes.core.processor import n_cores
from litotes.core.progress import Watch
from litotes.core.worker import Worker

MAX_DEATHS = 2
"""A job that has killed so many workers is not given to another one."""

GRACE_SECONDS = 10.0
"""How long a worker may take to save when it is asked to stop."""

_SECONDS_BETWEEN_LOOKS = 1.0
_KILLED = -9  # the exit code after SIGKILL, which is what the system sends when memory runs out


def run_in_workers(
    jobs: Mapping[str, Job], work: Work[Job], *, n_workers: int, watch: Watch, what: str = "runs"
) -> Iterator[Outcome]:
    """The jobs in up to `n_workers` processes; see `run_jobs`."""
    n_workers = min(n_workers, len(jobs))
    progress = JobProgress(len(jobs), n_workers=n_workers, watch=watch, what=what)
    with WorkerPool(jobs, work, n_workers=n_workers) as pool:
        try:
            pool.hand_out()
            progress.show(pool.running())
            while pool.running():
                outcomes = pool.collect()
                progress.add(outcomes)
                pool.hand_out()  # before the caller takes its time with the outcomes
                progress.show(pool.running())
                yield from outcomes
        except KeyboardInterrupt as error:
            raise progress.stopped() from error


class WorkerPool(Generic[Job]):
    """The workers, and the jobs that wait for one."""

    def __init__(self, jobs: Mapping[str, Job], work: Work[Job], *, n_workers: int) -> None:
        self.jobs, self.work, self.n_workers = jobs, work, n_workers
        self.n_threads = threads_per_worker(n_workers)
        self.waiting = deque(jobs)
        self.workers: list[Worker] = []
        self.n_deaths: Counter[str] = Counter()

    def __enter__(self) -> WorkerPool[Job]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        deadline = time.monotonic() + GRACE_SECONDS
        try:
            for worker in self.workers:
                worker.ask_to_stop()
            for worker in self.workers:
                worker.process.join(max(deadline - time.monotonic(), 0.0))
        finally:  # also at a second Ctrl-C
            for worker in self.workers:
                worker.kill()

    def running(self) -> dict[str, float]:
        """The jobs being done, and when each was begun."""
        return {worker.job: worker.since for worker in self.workers if worker.job is not None}

    def hand_out(self) -> None:
        """Gives a job to every worker that has none, in the order of the jobs."""
        alive = [one for one in self.workers if one.job is not None or one.process.is_alive()]
        self.workers = alive
        while self.waiting and (worker := self._free_worker()) is not None:
            name = self.waiting.popleft()
            worker.assign(name, self.work, self.jobs[name])

    def collect(self) -> list[Outcome]:
        """Waits a moment for outcomes; takes back the jobs of workers that died."""
        busy = [worker for worker in self.workers if worker.job is not None]
        wait([worker.pipe for worker in busy], timeout=_SECONDS_BETWEEN_LOOKS)
        outcomes = (self._collect_from(worker) for worker in busy)
        return [outcome for outcome in outcomes if outcome is not None]

    def _collect_from(self, worker: Worker) -> Outcome | None:
        # checked before its pipe is read: what a worker said before it died counts
        is_dead = worker.process.exitcode is not None
        outcome = worker.read_outcome()
        if outcome is not None:
            worker.job = None
            return outcome
        return self._take_back(worker) if is_dead else None

    def _free_worker(self) -> Worker | None:
        for worker in self.workers:
            if worker.job is None:
                return worker
        if len(self.workers) < self.n_workers:
            self.workers.append(Worker(n_threads=self.n_threads))
            return self.workers[-1]
        return None

    def _take_back(self, worker: Worker) -> Outcome | None:
        """Takes back the job of a dead worker; gives it up when it has killed too many."""
        assert worker.job is not None
        self.workers.remove(worker)
        worker.kill()
        self.n_deaths[worker.job] += 1
        if self.n_deaths[worker.job] < MAX_DEATHS:
            self.waiting.append(worker.job)  # at the end, where fewer others compete for memory
            return None
        return Outcome(worker.job, time.monotonic() - worker.since, error=_death_message(worker))


def _death_message(worker: Worker) -> str:
    code = worker.process.exitcode or 0
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    advice = (
        "perhaps out of memory; use fewer --workers"
        if code == _KILLED
        else "run it with --workers 1 to see why"
    )
    return f"{worker.job} ended its worker twice ({how}): {advice}."


def threads_per_worker(n_workers: int) -> int:
    """A worker's share of the cores of this process; fewer if OMP_NUM_THREADS asks for fewer."""
    share = max(1, n_cores() // max(n_workers, 1))
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(share, max(int(asked), 1)) if asked.isdecimal() else share
