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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

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
    """The outcome of one job.

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
        self.n_done = 0
        self.seconds: list[float] = []  # how soon a job failed says nothing about the others

    def report(
        self, outcomes: Sequence[Outcome] = (), running: Mapping[str, float] | None = None
    ) -> None:
        """Adds outcomes. running: the jobs being done and when each was begun, by time.monotonic.

        What is left takes (mean × jobs waiting + what is left of those running) / workers.
        """
        running, now = running or {}, time.monotonic()
        self.n_done += len(outcomes)
        self.seconds += [one.seconds for one in outcomes if one.error is None]
        n_left, n_failed = self.n_total - self.n_done, self.n_done - len(self.seconds)
        notes = [f"{n_failed} failed"] if n_failed else []
        if running:
            n_more = len(running) - _N_NAMED
            more = f" and {n_more} more" if n_more > 0 else ""
            notes.append(f"running {', '.join(islice(running, _N_NAMED))}{more}")
        if self.seconds and n_left:
            mean = sum(self.seconds) / len(self.seconds)
            rests = sum(max(mean - (now - since), 0.0) for since in running.values())
            seconds = (mean * (n_left - len(running)) + rests) / min(self.n_workers, n_left)
            if seconds:  # nothing is known of jobs that take longer than others did
                notes.append(f"about {describe_duration(seconds)} left")
        self.watch(self.what, self.n_done, self.n_total, ", ".join(notes))

    def stopped(self) -> Stopped:
        """The exception for a user who pressed Ctrl-C."""
        return Stopped(
            f"Stopped with {self.n_done} of {self.n_total} {self.what} done. Start the command"
            " again to go on."
        )


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
        """Reads how its job went; None while it is not known."""
        try:
            outcome: Outcome | None = self.pipe.recv() if self.pipe.poll() else None
        except (EOFError, OSError):  # it is dying; its exit code is known in a moment
            self.process.join(1.0)
            return None
        if outcome is not None:
            self.job = None
        return outcome

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run_worker(pipe: Connection[Any, Any], n_threads: int) -> None:
    """Runs a worker process from its start to its end."""
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
"""The time a worker may take to save when it is asked to stop."""

_SECONDS_BETWEEN_LOOKS = 1.0
_KILLED = -9  # the exit code after SIGKILL, which is what the system sends when memory runs out


def _in_workers(
    jobs: Mapping[str, Job], work: Work[Job], progress: JobProgress
) -> Iterator[Outcome]:
    n_workers = progress.n_workers
    waiting, n_deaths = deque(jobs), Counter[str]()
    workers: list[Worker] = []

    def collect(worker: Worker) -> Outcome | None:
        """The outcome of its job, if it is known; a dead worker's job is taken back."""
        # checked before its pipe is read: what a worker said before it died counts
        is_dead, name = worker.process.exitcode is not None, worker.job
        outcome = worker.read_outcome()
        if outcome is not None or not is_dead or name is None:
            return outcome
        workers.remove(worker)
        worker.kill()
        n_deaths[name] += 1
        if n_deaths[name] < MAX_DEATHS:
            waiting.append(name)  # at the end, where fewer others compete for memory
            return None
        return Outcome(name, time.monotonic() - worker.since, error=_death_message(name, worker))

    with _ended_at_last(workers):
        try:
            outcomes: list[Outcome] = []
            while True:
                # before the caller takes its time with the outcomes
                workers[:] = [one for one in workers if one.job or one.process.is_alive()]
                idle = [one for one in workers if one.job is None]
                while waiting and (idle or len(workers) < n_workers):
                    if not idle:
                        idle = [Worker(n_threads=threads_per_worker(n_workers))]
                        workers += idle
                    name = waiting.popleft()
                    idle.pop(0).assign(name, work, jobs[name])
                busy = {one.job: one for one in workers if one.job is not None}
                progress.report(outcomes, {name: one.since for name, one in busy.items()})
                yield from outcomes
                if not busy:
                    return
                wait([one.pipe for one in busy.values()], timeout=_SECONDS_BETWEEN_LOOKS)
                outcomes = list(filter(None, map(collect, busy.values())))
        except KeyboardInterrupt as error:
            raise progress.stopped() from error


@contextmanager
def _ended_at_last(workers: Sequence[Worker]) -> Iterator[None]:
    """Asks the workers to stop, by SIGTERM where they have a job; kills those that do not."""
    try:
        yield
    finally:
        deadline = time.monotonic() + GRACE_SECONDS
        try:
            for worker in workers:
                if worker.job is not None:
                    worker.process.terminate()
                with suppress(OSError):
                    worker.pipe.send(None)  # one that waits for a job simply returns
            for worker in workers:
                worker.process.join(max(deadline - time.monotonic(), 0.0))
        finally:  # also at a second Ctrl-C
            for worker in workers:
                worker.kill()


def _death_message(name: str, worker: Worker) -> str:
    code = worker.process.exitcode or 0
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    advice = (
        "perhaps out of memory; use fewer --workers"
        if code == _KILLED
        else "run it with --workers 1 to see why"
    )
    return f"{name} ended its worker twice ({how}): {advice}."


def threads_per_worker(n_workers: int) -> int:
    """A worker's share of the cores of this process; fewer if OMP_NUM_THREADS asks for fewer."""
    share = max(1, n_cores() // max(n_workers, 1))
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(share, max(int(asked), 1)) if asked.isdecimal() else share


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
    run = _one_by_one if n_workers == 1 else _in_workers
    n_workers = min(n_workers, len(jobs))
    return run(jobs, work, JobProgress(len(jobs), n_workers=n_workers, watch=watch, what=what))


def _one_by_one(
    jobs: Mapping[str, Job], work: Work[Job], progress: JobProgress
) -> Iterator[Outcome]:
    for name, job in jobs.items():
        progress.report(running={name: time.monotonic()})
        outcome = attempt(name, partial(work, job, progress.watch))
        progress.report([outcome])
        yield outcome
