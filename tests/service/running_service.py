"""`litotes serve` in a process of its own, watched by an audit hook, and the plainest way to talk
to it: bytes over a socket.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import litotes

_PROGRAM = """
import json, sys, time
events = []
WATCHED = {
    "open", "socket.connect", "socket.bind", "subprocess.Popen", "os.system", "os.exec",
    "os.remove", "os.rename",
}
def hook(event, arguments):
    if event in WATCHED:
        events.append((time.time(), event, repr(arguments[:2])))
sys.addaudithook(hook)
from litotes.cli.main import main
code = main(sys.argv[2:])
seen = list(events)
with open(sys.argv[1], "w") as file:
    json.dump(seen, file)
sys.exit(code)
"""


@dataclass
class Running:
    """events_file: what the process opened, written when it ends."""

    process: Any  # subprocess.Popen, or a Fork
    port: int
    events_file: Path
    ready_at: float

    def stop(self) -> tuple[int, str]:
        """Exit code and everything on stderr after it was ready."""
        self.process.send_signal(signal.SIGTERM)
        _, written = self.process.communicate(timeout=30)
        return self.process.returncode, written

    def events_between(self, until: float) -> list[tuple[str, str]]:
        """What was opened while requests were answered; modules, which are read when first used or
        first asked about, aside.
        """
        events = json.loads(self.events_file.read_text())
        return [
            (event, what)
            for when, event, what in events
            if self.ready_at < when < until and not _is_module(event, what)
        ]

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


def _is_module(event: str, what: str) -> bool:
    libraries = {
        str(Path(os.__file__).parent),
        str(Path(litotes.__file__).parent / "service"),
        *(path for path in sys.path if path.endswith("-packages")),
    }
    return (
        event == "open"
        and what.endswith((".py', 'r')", ".pyc', 'r')", ".py', 'rb')"))
        and what.startswith(tuple(f"('{folder}/" for folder in libraries))
    )


def start(folder: Path, out: Path, *options: str) -> Running:
    events_file = out / "events.json"
    command = [
        sys.executable,
        "-c",
        _PROGRAM,
        str(events_file),
        "serve",
        "--model",
        f"tiny={folder}",
        "--device",
        "cpu",
        "--port",
        "0",
    ]
    process = subprocess.Popen(
        [*command, *options],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert process.stderr is not None
    return Running(process, wait_until_ready(process.stderr), events_file, time.time() + 0.05)


def wait_until_ready(stderr: Iterable[str]) -> int:
    """The port it listens on, once it does."""
    written = ""
    for line in stderr:
        written += line
        if line.startswith("Ready: "):
            return int(line.rsplit(":", 1)[1])
    raise AssertionError(written)


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
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    is_json = "json" in headers.get("content-type", "")
    return int(first.split()[1]), headers, json.loads(body) if is_json else body
