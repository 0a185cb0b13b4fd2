"""`litotes serve` in a fork of a process that has imported torch: it is ready in a fifth of the
time, and otherwise behaves as one started from a shell.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import time
from io import TextIOWrapper
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from subprocess import TimeoutExpired

from running_service import Running, wait_until_ready

from litotes.cli.main import main

_FORKS = multiprocessing.get_context("forkserver")
"""conftest.py says what they have imported."""


class Fork:
    """As much of `subprocess.Popen` as the tests use."""

    def __init__(self, process: ForkServerProcess, stderr: TextIOWrapper) -> None:
        self.process, self.stderr = process, stderr

    @property
    def returncode(self) -> int | None:
        return self.process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.process.pid or 0, number)

    def wait(self, timeout: float) -> int:
        self.process.join(timeout)
        if self.process.exitcode is None:
            raise TimeoutExpired("litotes serve", timeout)
        return self.process.exitcode

    def communicate(self, timeout: float = 30) -> tuple[str, str]:
        with self.stderr:
            written = self.stderr.read()
        self.wait(timeout)
        return "", written


def start(folder: Path, out: Path, *options: str, n_files: int | None = None) -> Running:
    """n_files: the most that the process may have open."""
    pipe = out / "stderr"
    os.mkfifo(pipe)
    arguments = ["serve", "--model", f"tiny={folder}", "--device", "cpu", "--port", "0", *options]
    process = _FORKS.Process(target=_serve, args=(pipe, arguments, n_files))
    process.start()
    fork = Fork(process, pipe.open())
    return Running(fork, wait_until_ready(fork.stderr), out / "events.json", time.time())


def _serve(pipe: Path, arguments: list[str], n_files: int | None) -> None:
    if n_files is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (n_files, n_files))
    # what it is forked from ignores hangups where the tests were started by `nohup`
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with pipe.open("wb") as stream:
        os.dup2(stream.fileno(), 2)
    sys.exit(main(arguments))
