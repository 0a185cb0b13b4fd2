"""`litotes serve` in a process of its own, watched by an audit hook, and the plainest way to talk
to it: bytes over a socket.

The process is a fork of one that has imported torch: it is ready in a fifth of the time, and
otherwise behaves as one started from a shell.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from io import TextIOWrapper
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

import litotes
from litotes.cli.main import main

_FORKS = multiprocessing.get_context("forkserver")
"""conftest.py says what they have imported."""
_WATCHED = ("open", "socket.connect", "socket.bind", "subprocess.Popen", "os.system", "os.exec")
_WATCHED += ("os.remove", "os.rename")


@dataclass
class Served:
    """A service that is asked over a socket."""

    port: int

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def ask(self, *parts: bytes | float) -> bytes:
        """Sends bytes, waits where a number stands, and gives back all that comes until the other
        side closes or the answer is whole.
        """
        with self.connect() as connection:
            try:
                for part in parts:
                    if isinstance(part, bytes):
                        connection.sendall(part)
                    else:
                        time.sleep(part)
            except OSError:  # refused in the middle: the answer is there all the same
                pass
            return read_answer(connection)


@dataclass
class Running(Served):
    """events_file: what the process opened, written when it ends."""

    process: ForkServerProcess
    stderr: TextIOWrapper
    events_file: Path
    ready_at: float

    def kill(self, number: int) -> None:
        os.kill(self.process.pid or 0, number)

    def wait(self, seconds: float = 30) -> int:
        """The exit code."""
        self.process.join(seconds)
        if self.process.exitcode is None:
            raise TimeoutExpired("litotes serve", seconds)
        return self.process.exitcode

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Exit code and everything on stderr after it was ready."""
        self.kill(number)
        return self.end()

    def end(self) -> tuple[int, str]:
        with self.stderr:
            written = self.stderr.read()
        return self.wait(), written

    def events_between(self, until: float) -> list[tuple[str, str]]:
        """What was opened while requests were answered; modules, which are read when first used or
        first asked about, aside.
        """
        events = json.loads(self.events_file.read_text())
        seen = [(event, what) for when, event, what in events if self.ready_at < when < until]
        return [one for one in seen if not _is_module(*one)]


def _is_module(event: str, what: str) -> bool:
    own = Path(os.__file__).parent, Path(litotes.__file__).parent / "service"
    libraries = (*map(str, own), *(path for path in sys.path if path.endswith("-packages")))
    is_source = what.endswith((".py', 'r')", ".pyc', 'r')", ".py', 'rb')"))
    return (
        event == "open" and is_source and what.startswith(tuple(f"('{one}/" for one in libraries))
    )


def start(folder: Path, out: Path, *options: str, n_files: int | None = None) -> Running:
    """n_files: the most that the process may have open."""
    pipe, events_file = out / "stderr", out / "events.json"
    os.mkfifo(pipe)
    arguments = ["serve", "--model", f"tiny={folder}", "--device", "cpu", "--port", "0", *options]
    process = _FORKS.Process(target=_serve, args=(pipe, events_file, arguments, n_files))
    process.start()
    stderr, written = pipe.open(), ""
    for line in stderr:
        written += line
        if line.startswith("Ready: "):
            port = int(line.rsplit(":", 1)[1])
            return Running(port, process, stderr, events_file, time.time() + 0.05)
    raise AssertionError(written)


def _serve(pipe: Path, events_file: Path, arguments: list[str], n_files: int | None) -> None:
    events: list[tuple[float, str, str]] = []

    def watch(event: str, values: Any) -> None:
        if event in _WATCHED:
            events.append((time.time(), event, repr(values[:2])))

    if n_files is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (n_files, n_files))
    # what it is forked from ignores hangups where the tests were started by `nohup`
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with pipe.open("wb") as stream:
        os.dup2(stream.fileno(), 2)
    sys.addaudithook(watch)
    code = main(arguments)
    seen = list(events)
    events_file.write_text(json.dumps(seen))
    sys.exit(code)


def read_answer(connection: socket.socket) -> bytes:
    """One answer, or what there is of it when the connection ends."""
    received = b""
    try:
        while b"\r\n\r\n" not in received or len(received) < _whole(received):
            chunk = connection.recv(65536)
            if not chunk:
                break
            received += chunk
    except ConnectionError:
        return received
    return received


def _whole(received: bytes) -> int:
    head, _, rest = received.partition(b"\r\n\r\n")
    if head.startswith(b"HTTP/1.1 100"):  # go on; the answer comes behind it
        return len(head) + 4 + (_whole(rest) if b"\r\n\r\n" in rest else len(rest) + 1)
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(head) + 4 + int(line.split(b":")[1])
    return len(received) + 1


def parse_answer(answer: bytes) -> tuple[int, dict[str, str], Any]:
    """Status, headers, and the body, read if it is JSON."""
    while answer.startswith(b"HTTP/1.1 100"):
        answer = answer.partition(b"\r\n\r\n")[2]
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    parts = [line.partition(":") for line in lines]
    headers = {name.lower(): value.strip() for name, _, value in parts}
    is_json = "json" in headers.get("content-type", "")
    return int(first.split()[1]), headers, json.loads(body) if is_json else body


def receive_all(connection: socket.socket) -> bytes:
    received = b""
    with suppress(OSError):
        while chunk := connection.recv(65536):
            received += chunk
    return received
