"""Many jobs on one machine, one after the other or in several processes.

A job is a description, `work(job, watch)` what is done with it: it writes its result into a folder
of its own, whole or not at all, and finds its own traces there when it is begun again. That is all
these runners ask, and why a job may be done twice but never lost. A worker that dies loses nothing:
its job is given to another one.

A worker whose parent dies, even by SIGKILL, ends at once: a second start of the same jobs never
finds it still writing into their folders. Only the parent receives Ctrl-C, and then sends each
worker one SIGTERM: a training loop saves at its next step, anything else may end where it is.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Generic, TypeVar

from litotes.core.errors import Stopped, UserError
from litotes.core.machine import n_cores
from litotes.core.progress import Watch, describe_duration, ignore_progress

Job = TypeVar("Job")
Work = Callable[[Job, Watch], None]
"""work(job, watch): a function of a module, so that another process can import it; it writes its
result into a folder of its own.
"""

_N_NAMED = 3  # jobs named as running; more would not fit a line


@dataclass(frozen=True)
class Outcome:
    """How one job ended.

    error: one sentence, None when all went well. trace: the traceback of a bug, as opposed to a
    user's mistake.
    """

    name: str
    seconds: float
    error: str | None = None
    trace: str | None = None


def attempt(name: str, do: Callable[[], None]) -> Outcome:
    """Does a job; an error becomes its outcome, and only a request to stop reaches the caller."""
    started = time.monotonic()
    error, trace = None, None
    try:
        do()
    except Stopped:
        raise
    except UserError as mistake:
        error = str(mistake)
    except Exception as bug:
        error, trace = error_sentence(bug), traceback.format_exc()
    return Outcome(name, time.monotonic() - started, error, trace)


def error_sentence(error: BaseException) -> str:
    """TypeName: the first line of its message."""
    return f"{type(error).__name__}: {str(error).strip()}".splitlines()[0].removesuffix(": ")


class JobProgress:
    """Counts outcomes, and reports what is running and how long the rest will take."""

    def __init__(self, n_total: int, *, n_workers: int, watch: Watch, what: str = "runs") -> None:
        self.n_total, self.n_workers, self.watch, self.what = n_total, n_workers, watch, what
        self.n_done = self.n_failed = 0
        self.seconds: list[float] = []

    def add(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            self.n_done += 1
            if outcome.error is None:
                self.seconds.append(outcome.seconds)
            else:
                self.n_failed += 1  # how soon a job failed says nothing about the others

    def show(self, running: Mapping[str, float]) -> None:
        """running: the jobs being done and when each was begun, by time.monotonic."""
        seconds = self._estimate_seconds_left(running.values())
        parts = [
            f"{self.n_failed} failed" if self.n_failed else "",
            f"running {_list_names(list(running))}" if running else "",
            f"about {describe_duration(seconds)} left" if seconds else "",
        ]
        self.watch(self.what, self.n_done, self.n_total, ", ".join(filter(None, parts)))

    def stopped(self) -> Stopped:
        """The exception for a user who pressed Ctrl-C."""
        return Stopped(
            f"Stopped with {self.n_done} of {self.n_total} {self.what} done. Start the command"
            " again to go on."
        )

    def _estimate_seconds_left(self, begun: Iterable[float]) -> float:
        """(mean × jobs waiting + what is left of those running) / workers; 0 when not known."""
        n_left = self.n_total - self.n_done
        if not self.seconds or not n_left:
            return 0.0
        now, mean = time.monotonic(), sum(self.seconds) / len(self.seconds)
        rests = [max(mean - (now - since), 0.0) for since in begun]
        return (mean * (n_left - len(rests)) + sum(rests)) / min(self.n_workers, n_left)


def _list_names(names: list[str]) -> str:
    n_more = len(names) - _N_NAMED
    return ", ".join(names[:_N_NAMED]) + (f" and {n_more} more" if n_more > 0 else "")


STOPPED = 143
"""The exit code of a worker that was asked to stop: 128 + SIGTERM, as shells count."""

# A forked process would inherit locks of threads that are not there, and a CUDA that does not work.
_SPAWN = multiprocessing.get_context("spawn")


class Worker:
    """A worker process, the job it has and since when."""

    def __init__(self, *, n_threads: int) -> None:
        self.job: str | None = None
        self.since = 0.0
        self.pipe, theirs = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=run_worker, args=(theirs, n_threads), daemon=True)
        with _without_interrupts():
            self.process.start()
        theirs.close()  # open on this side, it would never signal that the worker is gone

    def assign(self, name: str, work: Work[Job], job: Job) -> None:
        self.job, self.since = name, time.monotonic()
        with suppress(OSError):  # it has just died, which the next check finds out
            self.pipe.send(name)
            self.pipe.send((work, job))

    def read_outcome(self) -> Outcome | None:
        """How its job went; None while it is not known."""
        try:
            outcome: Outcome | None = self.pipe.recv() if self.pipe.poll() else None
        except (EOFError, OSError):  # it is dying; its exit code is known in a moment
            self.process.join(1.0)
            return None
        return outcome

    def ask_to_stop(self) -> None:
        """By SIGTERM; one without a job simply returns."""
        if self.job is not None:
            self.process.terminate()
            return
        with suppress(OSError):
            self.pipe.send(None)

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run_worker(pipe: Connection[Any, Any], n_threads: int) -> None:
    """What a worker process does from its start to its end."""
    _end_with_parent()
    if sys.platform == "win32":
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # elsewhere it is started with it blocked
    # before the first job's module imports torch, which reads it once
    os.environ["OMP_NUM_THREADS"] = str(n_threads)
    try:
        while (name := pipe.recv()) is not None:
            pipe.send(attempt(name, partial(_do, pipe, n_threads)))
    except (Stopped, KeyboardInterrupt):
        sys.exit(STOPPED)
    except (EOFError, OSError):
        os._exit(1)  # the parent is gone


def _do(pipe: Connection[Any, Any], n_threads: int) -> None:
    work, job = pipe.recv()  # imports the module of `work`; should that fail, the job has failed
    if "torch" in sys.modules:  # a main module that imports it came before OMP_NUM_THREADS
        import torch

        torch.set_num_threads(n_threads)
    work(job, ignore_progress)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """A process started within this never gets a Ctrl-C; the parent gets it afterwards."""
    if sys.platform == "win32":
        yield
        return
    # multiprocessing would start it within this, and Python 3.11 then unblocks Ctrl-C again
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
