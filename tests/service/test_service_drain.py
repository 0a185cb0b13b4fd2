"""SIGTERM under load: every accepted request is answered, and the process ends well and soon."""

from __future__ import annotations

import json
import random
import signal
import socket
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from hostile_requests import get, post
from running_service import Running, parse_answer, read_answer, start

pytestmark = pytest.mark.slow


def send_until_stopped(service: Running, seen: Counter[str], chance: random.Random) -> None:
    """One request after the other, on kept connections and on new ones, until the service has
    stopped listening.
    """
    connection: socket.socket | None = None
    while True:
        try:
            if connection is None:
                connection = service.connect()
        except OSError:  # not let in: nothing was promised
            return
        try:
            connection.sendall(post(json.dumps({"text": f"tea {chance.random()}"}).encode()))
            answer = read_answer(connection)
        except OSError:
            answer = b""
        if not answer:
            seen["lost"] += 1
            connection = None
            continue
        status, headers, _ = parse_answer(answer)
        seen[str(status)] += 1
        if headers.get("connection") == "close" or chance.random() < 0.1:
            connection.close()
            connection = None
        time.sleep(chance.choice((0.0, 0.01, 0.05)))


@pytest.mark.parametrize("seed", range(2))
def test_nothing_that_was_accepted_is_lost(trained_folder: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    service = start(trained_folder, tmp_path)
    counters = [Counter[str]() for _ in range(8)]
    clients = [
        threading.Thread(target=send_until_stopped, args=(service, seen, random.Random(n)))
        for n, seen in enumerate(counters)
    ]
    for client in clients:
        client.start()
    time.sleep(chance.uniform(0.1, 0.6))
    before = time.monotonic()
    code, written = service.stop()
    seconds = time.monotonic() - before
    for client in clients:
        client.join(20)
    seen = sum(counters, Counter())
    assert code == 0
    assert seconds < 10
    assert set(seen) == {"200"}
    assert seen["200"] > 10
    last = json.loads(written.splitlines()[-1])
    assert (last["event"], last["n_cut"]) == ("stopped", 0)


@pytest.mark.timed
def test_an_idle_client_does_not_delay_the_end(trained_folder: Path, tmp_path: Path) -> None:
    service = start(trained_folder, tmp_path, "--drain-seconds", "3")
    with service.connect(), service.connect() as half:
        half.sendall(post(b"", length=b"100"))  # and never a body
        began = time.monotonic()
        code, _ = service.stop()
        assert code == 0
        assert time.monotonic() - began < 3.5


def test_a_log_that_is_not_read_does_not_delay_the_end(
    trained_folder: Path, tmp_path: Path
) -> None:
    service = start(trained_folder, tmp_path)
    with service.connect() as connection:
        for _ in range(900):  # more lines than a pipe takes
            connection.sendall(get(b"/live"))
            assert parse_answer(read_answer(connection))[0] == 200
    time.sleep(0.3)
    service.kill(signal.SIGTERM)
    assert service.wait(10) == 0
    service.end()


def test_a_second_signal_ends_it_at_once(trained_folder: Path, tmp_path: Path) -> None:
    service = start(trained_folder, tmp_path)
    service.kill(signal.SIGINT)
    time.sleep(0.3)
    service.kill(signal.SIGINT)
    assert service.wait(1) == 130
    service.end()
