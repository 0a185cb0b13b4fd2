"""Cheap jobs for workers to do; they import nothing heavy, so that a worker starts in a moment."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from litotes.core.errors import Stopped, UserError
from litotes.core.progress import Watch


@dataclass(frozen=True)
class ToyJob:
    """What to do, and the file to write."""

    what: str
    file: Path


def toy_jobs(folder: Path, *whats: str) -> dict[str, ToyJob]:
    """Named 0-write, 1-fail, …"""
    return {f"{n}-{what}": ToyJob(what, folder / f"{n}-{what}") for n, what in enumerate(whats)}


def run(job: ToyJob, watch: Watch) -> None:
    """Writes its file."""
    begun = job.file.with_name(f"{job.file.name}.begun")
    n_before = len(begun.read_text().splitlines()) if begun.exists() else 0
    with begun.open("a") as stream:
        stream.write(f"{os.getpid()}\n")
    DOES[job.what](job, n_before)
    watch("toy job", 1, 1, job.what)
    job.file.write_text(f"{os.getpid()}")


def pids(folder: Path) -> set[int]:
    """Of all processes that ever began a job here."""
    return {int(line) for file in folder.glob("*.begun") for line in file.read_text().splitlines()}


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    # nobody may have asked after a dead orphan
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def wait_until(condition: Callable[[], bool], *, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _write(job: ToyJob, n_before: int) -> None:
    """Nothing else."""


def _fail(job: ToyJob, n_before: int) -> None:
    raise UserError("There is no tea. Buy some.")


def _crash(job: ToyJob, n_before: int) -> None:
    raise ValueError("no tea\n" + "x" * 300_000)  # more than a pipe holds


def _interrupt(job: ToyJob, n_before: int) -> None:
    raise KeyboardInterrupt


def _stop(job: ToyJob, n_before: int) -> None:
    raise Stopped("Stopped after step 1.")


def _stop_once(job: ToyJob, n_before: int) -> None:
    """As a training loop whose process, but nobody else's, was sent SIGTERM."""
    if n_before == 0:
        _stop(job, n_before)


def _die(job: ToyJob, n_before: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_once(job: ToyJob, n_before: int) -> None:
    if n_before == 0:
        _die(job, n_before)


def _die_later(job: ToyJob, n_before: int) -> None:
    wait_until(job.file.with_name("now").exists, seconds=20)
    _die_once(job, n_before)


def _leave(job: ToyJob, n_before: int) -> None:
    sys.exit(3)


def _sleep(job: ToyJob, n_before: int) -> None:
    time.sleep(60)


def _stay(job: ToyJob, n_before: int) -> None:
    """Hears nothing."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)


def _train(job: ToyJob, n_before: int) -> None:
    """As the training loop does it: at the first wish to stop, save."""
    from litotes.training.trainer import Interruption  # imports torch, which other jobs do without

    with Interruption() as interruption:
        job.file.with_name("training").touch()  # from here on a wish to stop is heard
        while not interruption.wanted:
            time.sleep(0.02)
        job.file.with_name("saved").touch()
        time.sleep(0.2)
        raise Stopped("Stopped after step 7.")


def _describe(job: ToyJob, n_before: int) -> None:
    job.file.with_name("process").write_text(
        f"{os.environ.get('OMP_NUM_THREADS')} {'torch' in sys.modules}"
    )


DOES = {
    "write": _write,
    "fail": _fail,
    "crash": _crash,
    "interrupt": _interrupt,
    "stop": _stop,
    "stop-once": _stop_once,
    "die": _die,
    "die-once": _die_once,
    "die-later": _die_later,
    "leave": _leave,
    "sleep": _sleep,
    "stay": _stay,
    "train": _train,
    "describe": _describe,
}
