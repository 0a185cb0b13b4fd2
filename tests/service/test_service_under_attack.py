"""What clients send before it is known who they are, over a real socket: each costs little, and
others are answered meanwhile.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hostile_requests import HOST, JSON, chunked, get, post
from running_service import Running, parse_answer, read_answer, receive_all, start

pytestmark = pytest.mark.slow

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def running(trained_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    service = start(trained_folder, tmp_path_factory.mktemp("attack"))
    yield service
    service.stop()


def memory(service: Running) -> int:
    """Resident bytes of the process."""
    pages = Path(f"/proc/{service.process.pid}/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


def cpu_seconds(service: Running) -> float:
    """Processor time of the process."""
    fields = Path(f"/proc/{service.process.pid}/stat").read_text().rpartition(")")[2]
    user, system = fields.split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def send_all(connection: socket.socket, content: bytes) -> None:
    """As much as is taken, within five seconds: a refusal comes before the end."""
    connection.settimeout(5)
    with suppress(OSError):
        connection.sendall(content)


LARGE = {
    "numbers": (b'{"texts": [' + b", ".join([b"1"] * 330_000) + b"]}", 413),
    "digits": (b'{"texts": [' + b"1" * 900_000 + b"]}", 400),
    "decimals": (b'{"texts": [0.' + b"1" * 900_000 + b"]}", 200),
    "texts": (b'{"texts": [' + b",".join([b'"a"'] * 240_000) + b"]}", 413),
    "lists": (b'{"texts": [' + b",".join([b"[]"] * 330_000) + b"]}", 413),
    "depth": (b'{"text": ' + b"[" * 900_000, 422),
    "keys": (b"{" + b",".join(b'"k%d": "v"' % n for n in range(60_000)) + b"}", 422),
    "methods": (b'{"text": "a", "methods": [' + b",".join([b'"a"'] * 240_000) + b"]}", 422),
    "escapes": (b'{"texts": ["' + b"\\u0041" * 150_000 + b'"]}', 200),
    "blanks": (b" " * 900_000 + b'{"text": "a"}', 200),
}


@pytest.mark.parametrize("kind", LARGE)
@pytest.mark.timed
def test_a_large_body_is_read_no_further_than_it_makes_sense(running: Running, kind: str) -> None:
    (body, status), n_bytes, seconds = LARGE[kind], memory(running), cpu_seconds(running)
    assert parse_answer(running.ask(post(body)))[0] == status
    assert cpu_seconds(running) - seconds < 0.5
    assert memory(running) - n_bytes < 30 * MEGABYTE


@pytest.mark.parametrize("path", [b"/v1/predict", b"/live"])
def test_trailers_are_limited(running: Running, path: bytes) -> None:
    head = b"POST " + path + b" HTTP/1.1\r\n" + HOST + JSON + b"Transfer-Encoding: chunked\r\n\r\n"
    before = memory(running)
    with running.connect() as hostile:
        send_all(hostile, head + b"2\r\n{}\r\n0\r\nX-Trailer: " + b"x" * 40 * MEGABYTE)
        received = receive_all(hostile)
    assert memory(running) - before < 20 * MEGABYTE
    assert parse_answer(received)[0] in (400, 405, 422)
    assert parse_answer(running.ask(get(b"/live")))[0] == 200


def test_a_body_that_nobody_reads_is_limited(running: Running) -> None:
    before = memory(running)
    endless = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    with running.connect() as hostile:
        head = get(b"/v1/models", b"Transfer-Encoding: chunked\r\n")
        send_all(hostile, head + endless * 600)
        assert parse_answer(receive_all(hostile))[0] == 200
    with running.connect() as hostile:  # behind a request that is being answered
        send_all(hostile, post(b'{"text": "ok"}') + chunked()[:-5] + endless * 600)
        received = receive_all(hostile)
    assert memory(running) - before < 20 * MEGABYTE
    assert received.startswith(b"HTTP/1.1 200") or received == b""


@pytest.mark.timed
def test_requests_that_do_not_wait_for_answers_are_counted(running: Running) -> None:
    before = memory(running)
    connections = [running.connect() for _ in range(30)]
    for connection in connections:
        connection.setblocking(False)
        with suppress(BlockingIOError):
            connection.send(get(b"/v1/models") * 20_000)
    began = time.monotonic()
    assert parse_answer(running.ask(get(b"/live")))[0] == 200
    assert time.monotonic() - began < 2
    n_answers = []
    for connection in connections:
        connection.settimeout(5)
        n_answers.append(receive_all(connection).count(b"HTTP/1.1 200"))
        connection.close()
    assert max(n_answers) <= 4
    assert memory(running) - before < 30 * MEGABYTE


def test_a_hangup_drains_as_the_other_signals_do(trained_folder: Path, tmp_path: Path) -> None:
    service = start(trained_folder, tmp_path)
    with service.connect() as slow:
        slow.sendall(post(b"", length=b"14"))
        os.kill(service.process.pid, signal.SIGHUP)
        time.sleep(0.3)
        slow.sendall(b'{"text": "ok"}')
        assert parse_answer(read_answer(slow))[0] == 200
    assert service.end()[1].count('"event": "stopped"') == 1
    assert service.process.exitcode == 0
