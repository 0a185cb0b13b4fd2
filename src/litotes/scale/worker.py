"""A process that takes job after job, seen from the parent (`Worker`) and from inside (`serve`).

A worker whose parent dies, however brutally, ends at once: nobody who starts the same jobs again
meets it in their folders. Ctrl-C is for the parent alone, which then tells each worker once, by
SIGTERM: a training loop saves at its next step (training/interruption.py), anything else may end
where it is.
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
from litotes.core.progress import unwatched
from litotes.scale.outcomes import Job, Outcome, Work, attempt

STOPPED = 143
"""The exit code of a worker that did as it was told: 128 + SIGTERM, as shells count."""

# A forked process would inherit locks of threads that are not there, and a CUDA that does not work.
_SPAWN = multiprocessing.get_context("spawn")


class Worker:
    """A worker process, the job it has and since when."""

    def __init__(self, *, n_threads: int) -> None:
        self.job: str | None = None
        self.since = 0.0
        self.pipe, theirs = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=serve, args=(theirs, n_threads), daemon=True)
        with _deaf_to_interrupts():
            self.process.start()
        theirs.close()  # held open here, it would never tell that the worker has gone

    def give(self, name: str, work: Work[Job], job: Job) -> None:
        self.job, self.since = name, time.monotonic()
        with suppress(OSError):  # it has just died: the next look at it will tell
            self.pipe.send(name)
            self.pipe.send((work, job))

    def answer(self) -> Outcome | None:
        """How its job went; None when it has not said so."""
        try:
            outcome: Outcome | None = self.pipe.recv() if self.pipe.poll() else None
        except (EOFError, OSError):  # it is dying; what ends it will be known in a moment
            self.process.join(1.0)
            return None
        return outcome

    def tell_to_stop(self) -> None:
        """One without a job may leave in good order."""
        if self.job is not None:
            self.process.terminate()
            return
        with suppress(OSError):
            self.pipe.send(None)

    def end(self) -> None:
        """Not a moment longer."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def serve(pipe: Connection[Any, Any], n_threads: int) -> None:
    """What a worker process does all its life."""
    _end_with_parent()
    if sys.platform == "win32":
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # elsewhere it is born deaf to it
    # before the first job's module imports torch, which looks once
    os.environ["OMP_NUM_THREADS"] = str(n_threads)
    try:
        while (name := pipe.recv()) is not None:
            pipe.send(attempt(name, partial(_do, pipe, n_threads)))
    except (Stopped, KeyboardInterrupt):
        sys.exit(STOPPED)
    except (EOFError, OSError):
        os._exit(1)  # the parent has gone


def _do(pipe: Connection[Any, Any], n_threads: int) -> None:
    work, job = pipe.recv()  # imports the module of `work`; should that fail, the job has failed
    if "torch" in sys.modules:  # a main module that imports it came before OMP_NUM_THREADS
        import torch

        torch.set_num_threads(n_threads)
    work(job, unwatched)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """A process started in here never gets a Ctrl-C; this one gets it when it is over."""
    if sys.platform == "win32":
        yield
        return
    # multiprocessing would start it in here, and Python 3.11 then listens to Ctrl-C again
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
