"""A process that does job after job: from the parent (`Worker`) and from inside (`run_worker`).

A worker whose parent dies, even by SIGKILL, ends at once: a second start of the same jobs never
finds it still writing into their folders. Only the parent receives Ctrl-C, and then sends each
worker one SIGTERM: a training loop saves at its next step (training/interruption.py), anything
else may end where it is.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from litotes.core.errors import Stopped
from litotes.core.outcomes import Job, Outcome, Work, attempt
from litotes.core.progress import ignore_progress

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
