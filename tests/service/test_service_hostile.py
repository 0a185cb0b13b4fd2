"""Hostile requests, over a real socket to a real process: each is answered properly or
refused with a sentence.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_requests import HOSTILE, Hostile, get, post
from running_service import Running, parse_answer, start

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def running(trained_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    service = start(trained_folder, tmp_path_factory.mktemp("hostile"), "--seconds", "2")
    yield service
    if service.process.is_alive():
        service.stop()


assert len({one.name for one in HOSTILE}) == len(HOSTILE) >= 120


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda one: one.name)
def test_each_is_answered_or_refused_with_a_sentence(running: Running, hostile: Hostile) -> None:
    status, headers, content = parse_answer(running.ask(*hostile.parts))
    assert status in hostile.statuses
    assert headers["x-content-type-options"] == "nosniff"
    if status >= 400 and hostile.parts[0].startswith(b"POST /predict "):
        assert headers["content-type"] == "application/json"
        assert content["error"].endswith((".", '"truncate": true.'))
        assert content.keys() == {"error", "error_type"}
    elif status >= 400:
        assert headers["content-type"] == "application/problem+json"
        assert content["status"] == status
        assert content["detail"].endswith(".")
    assert "root:" not in str(content)


def test_five_hundred_idle_connections_do_not_block_a_request(running: Running) -> None:
    connections = [running.connect() for _ in range(500)]
    status, _, _ = parse_answer(running.ask(post(b'{"text": "one more"}')))
    assert status == 200
    for connection in connections:
        connection.close()


def test_what_is_sent_behind_a_refused_body_is_no_request(running: Running) -> None:
    """A body that is refused unread must not be read as the next request."""
    smuggled = get(b"/v1/models")
    with running.connect() as connection:
        connection.sendall(post(smuggled, headers=b"Content-Type: text/plain\r\n") + get(b"/live"))
        received = b""
        while received.count(b"HTTP/1.1 ") < 2 or not received.endswith(b"}"):
            received += connection.recv(65536)
    assert b"HTTP/1.1 415" in received
    assert b'"status": "live"' in received
    assert b'"models"' not in received


def test_at_the_end_it_still_answers_and_has_opened_nothing(running: Running) -> None:
    """No file, no socket and no process since it was ready; and no 5xx and no word of a text in its
    log.
    """
    status, _, _ = parse_answer(running.ask(post(b'{"text": "still here"}')))
    assert status == 200
    until = time.time()
    code, written = running.stop()
    assert code == 0
    assert '"status": 5' not in written
    assert '"event": "bug"' not in written
    assert running.events_between(until) == []
    assert "still here" not in written
    assert "passwd" not in written
