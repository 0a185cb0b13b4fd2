"""Connections of a server in this process: heads, bodies and pipelines within their limits, shares
of what all hold together, and a drain that loses nothing.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from app_client import run_in_thread
from fake_models import FakePredictor
from hostile_requests import JSON, chunked, get, post
from running_service import Served, parse_answer, read_answer, receive_all

from litotes.core.errors import UserError
from litotes.service import ServiceSettings, budget, create_app, server
from litotes.service.budget import RequestTurns, ServerBudget
from litotes.service.connection import MAX_HEAD_BYTES, MAX_HEADERS, ignore_upgrade
from litotes.service.models import ServedModels

OK = b'{"text": "ok"}'


class Local(Served):
    """model: waits for its gate. stop: begins the drain, whose end `thread` waits for."""

    def __init__(self, listener: socket.socket, app: Any, model: FakePredictor) -> None:
        super().__init__(listener.getsockname()[1])
        self.service, self.model = app.state.service, model
        made: list[server.DrainingServer] = []

        class Kept(server.DrainingServer):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                made.append(self)

        ready, own = threading.Event(), server.DrainingServer
        server.DrainingServer = Kept  # type: ignore[misc]
        work = server.run_server
        self.thread = threading.Thread(
            target=lambda: work(app, listener, when_ready=ready.set), daemon=True
        )
        self.thread.start()
        assert ready.wait(20)
        server.DrainingServer = own  # type: ignore[misc]
        self.server = made[0]

    def stop(self) -> None:
        self.server.should_exit = self.service.is_draining = True


@contextmanager
def serving(**settings: Any) -> Iterator[Local]:
    before = sys.getswitchinterval()
    with pytest.MonkeyPatch.context() as patch:
        described = {"name": "fake", "runtime": "torch", "tasks": {}}
        patch.setattr(ServedModels, "_describe", lambda *_: described)
        patch.setattr(server, "_LAME_DUCK_SECONDS", 0.1)
        patch.setattr(server, "_IDLE_SECONDS", 0.1)
        patch.setattr(server, "_ACCEPT_SECONDS", 0.05)
        model: Any = FakePredictor()
        app = create_app({"fake": model}, settings=ServiceSettings(drain_seconds=3, **settings))
        local = Local(server.bind_socket("127.0.0.1", 0), app, model)
        yield local
        model.gate.set()
        local.stop()
        local.thread.join(20)
    sys.setswitchinterval(before)


@pytest.fixture(scope="module")
def local() -> Iterator[Local]:
    with serving() as running:
        yield running


def status_of(answer: bytes) -> int:
    return parse_answer(answer)[0]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def lines(n: int) -> bytes:
    return b"".join(b"X-%d: 1\r\n" % number for number in range(n))


def head_of(n_bytes: int) -> bytes:
    """A request whose path, names and values have so many bytes."""
    n_others = len(b"/live") + len(b"host") + len(b"127.0.0.1") + len(b"x")
    return get(b"/live", b"X: " + b"a" * (n_bytes - n_others) + b"\r\n")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get(b"/live", lines(MAX_HEADERS - 1)), 200),
        (get(b"/live", lines(MAX_HEADERS)), 431),
        (head_of(MAX_HEAD_BYTES), 200),
        (head_of(MAX_HEAD_BYTES + 1), 431),
        (get(b"/live")[:-2] + b"X: " + b"a" * 60_000, 431),
        (b"noise\r\n\r\n", 400),
        (chunked(b'{"text": ', b'"ok"}'), 200),
        (chunked(*(OK[n : n + 1] for n in range(len(OK)))), 200),
        (chunked(OK)[:-5] + b"5;" + b"x" * 60_000, 400),
        (chunked(OK)[:-5] + b"0\r\nX: " + b"x" * 60_000, 400),
        (chunked(OK).replace(b": chunked", b": gzip, chunked"), 501),
        (chunked(OK).replace(b": chunked", b": Chunked"), 200),
        (post(b"", length=b"1000001"), 413),
        (post(b"", length=b"14", headers=JSON + b"Expect: 100-continue\r\n") + OK, 200),
    ],
    ids=range(14),
)
def test_requests_at_their_limits(local: Local, request_: bytes, status: int) -> None:
    found, headers, _ = parse_answer(local.ask(request_))
    assert found == status
    assert headers["x-content-type-options"] == "nosniff"
    assert (headers.get("connection") == "close") == (status in (400, 413, 431, 501))


UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"


def test_a_client_that_offers_another_protocol_keeps_its_body(local: Local) -> None:
    """As Java's does with every request; its body was taken for the other protocol's. Wherever the
    request is cut on its way.
    """
    request = post(OK, headers=JSON + UPGRADE)
    first = request.index(b"Upgrade: h2c") - 3
    for cut in (0, *range(first, first + 14), len(request) - len(OK)):
        status, _, content = parse_answer(local.ask(request[:cut], 0.005, request[cut:]))
        assert (status, content["predictions"][0]["text"]) == (200, "ok"), cut
    body = b'{"text": "please ', b'upgrade: now"}'  # a text may speak of it
    _, _, content = parse_answer(local.ask(chunked(*body)))
    assert content["predictions"][0]["text"] == "please upgrade: now"
    head = b"Host: a\r\nUpGrade : h2c\r\n\r\nupgrade: x"
    assert ignore_upgrade(b"GET", head) == b"Host: a\r\nignored : h2c\r\n\r\nupgrade: x"


def test_requests_behind_each_other(local: Local) -> None:
    """Four may be unanswered; a client that has said all is answered; noise costs no answer."""
    requests = [post(b'{"text": "%s"}' % text) for text in (b"one", b"two", b"three")]
    with local.connect() as half:
        half.sendall(b"".join(requests) + get(b"/live"))
        half.shutdown(socket.SHUT_WR)
        received = receive_all(half)
    assert received.count(b"HTTP/1.1 200") == 4
    places = [received.find(text) for text in (b'"one"', b'"two"', b'"three"', b'"live"')]
    assert places == sorted(places)
    with local.connect() as hasty:
        hasty.sendall(get(b"/live") * 40)
        assert 1 <= receive_all(hasty).count(b"HTTP/1.1 200") <= 4
    with local.connect() as kept:
        kept.sendall(get(b"/live") * 4)
        received = b""
        while received.count(b'"live"') < 4:
            received += kept.recv(65536)
        assert b"connection: close" not in received
        kept.sendall(get(b"/live"))
        assert status_of(read_answer(kept)) == 200
    status, _, content = parse_answer(local.ask(requests[0] + b"\x00\x01 noise\r\n\r\n"))
    assert (status, content["predictions"][0]["text"]) == (200, "one")


def test_what_a_client_that_has_gone_asked_for_is_not_computed(local: Local) -> None:
    local.model.gate.clear()
    local.model.began.clear()
    with local.connect() as first:
        first.sendall(post(b'{"text": "first"}'))
        assert local.model.began.wait(20)
        with local.connect() as gone:
            gone.sendall(post(b'{"text": "nobody waits"}'))
            until(lambda: local.service.batcher.n_waiting == 1)
        until(lambda: "in_flight 1.0" in local.service.metrics.render().decode())
        local.model.gate.set()
        assert status_of(read_answer(first)) == 200
    assert status_of(local.ask(post(OK))) == 200
    assert ["nobody waits"] not in local.model.batches


def test_whoever_holds_most_makes_room_and_probes_are_answered_when_all_is_taken() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget, "_MAX_BODIES", 2)
        patch.setattr(server, "MAX_CONNECTIONS", 4)
        with serving(max_body_bytes=10_000) as local:
            small, large, third = (local.connect() for _ in range(3))
            small.sendall(post(b"", length=b"9000") + b" " * 2000)
            large.sendall(post(b"", length=b"9900") + b" " * 9800)
            time.sleep(0.05)
            third.sendall(post(b"", length=b"9500") + b" " * 9400)
            status, headers, content = parse_answer(receive_all(large))
            assert (status, content["type"]) == (429, "urn:litotes:problem:busy")
            assert headers["retry-after"] == "1"
            large.close()
            small.sendall(b" " * 6986 + OK)  # was not the one
            assert status_of(read_answer(small)) == 200
            others = [local.connect() for _ in range(2)]
            time.sleep(0.05)
            for path in (b"/live", b"/ready", b"/live?now"):
                status, headers, _ = parse_answer(local.ask(get(path)))
                assert (status, headers["connection"]) == (200, "close")
            assert status_of(local.ask(post(OK))) == 429
            for one in (*others, small, third):
                one.close()
            until(lambda: status_of(local.ask(post(OK))) == 200)


@pytest.mark.slow
@pytest.mark.timed
def test_neither_heads_that_do_not_come_nor_answers_that_are_not_taken_are_waited_for() -> None:
    limits: Any = {"max_characters": 30_000, "max_body_bytes": 3_000_000}
    with serving(seconds=0.4, body_seconds=0.4, **limits) as local, socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        deaf.connect(("127.0.0.1", local.port))
        deaf.settimeout(5)
        with local.connect() as silent, local.connect() as slow:
            slow.sendall(get(b"/live")[:13])
            with suppress(OSError):  # its answers are more than the kernel keeps for it
                deaf.sendall(4 * post(json.dumps({"texts": ["x" * 29_000] * 64}).encode()))
            assert silent.recv(100) == b""
            assert read_answer(slow) == b""
        until(lambda: "in_flight 0.0" in local.service.metrics.render().decode())
        assert status_of(local.ask(post(OK))) == 200


class Holder:
    def __init__(self, *, may_be_ended: bool = True) -> None:
        self.n_held_bytes, self.may_be_ended, self.ended = 0, may_be_ended, ""

    def end_overloaded(self) -> None:
        self.ended = "overloaded"

    def abort(self) -> None:
        self.ended = "aborted"


def test_the_budget_of_a_server() -> None:
    own = ServerBudget(ServiceSettings(max_body_bytes=10), max_connections=3)
    small, large, served = Holder(), Holder(), Holder(may_be_ended=False)
    assert all(own.let_in(one) for one in (small, large, served))
    own.hold(served, 400)
    own.hold(large, 200)
    own.hold(small, 40)  # 64 bodies of 10 bytes
    assert (small.ended, large.ended) == ("", "")
    own.hold(small, 1)
    assert (small.ended, large.ended, served.ended) == ("", "overloaded", "")
    assert small.n_held_bytes == 41
    probes = [Holder() for _ in range(budget.N_PROBE_CONNECTIONS + 1)]
    assert not any(own.let_in(one) for one in probes)
    assert [one.ended for one in probes[:2]] == ["aborted", ""]
    own.leave(small)
    assert own.let_in(Holder())
    assert own.add_pipelined(1024)
    assert not own.add_pipelined(1)
    assert own.add_pipelined(-1)
    assert own.add_pipelined(1)


def test_clients_take_turns() -> None:
    begun: list[str] = []

    async def go() -> None:
        turns = RequestTurns()
        for name in ("a1", "a2", "a3", "b1", "c1", "a4"):
            turns.add(name[0], lambda name=name: begun.append(name))  # type: ignore[misc]
        for name in ("p1", "p2"):
            turns.add_pipelined(lambda name=name: begun.append(name))  # type: ignore[misc]
        assert begun == []
        await asyncio.sleep(0)
        assert begun == ["a1", "b1", "c1", "a2"]  # four before the loop looks for new ones
        await asyncio.sleep(0)
        assert begun[4:] == ["a3", "a4"]
        await asyncio.sleep(0.05)

    run_in_thread(go())
    assert begun[6:] == ["p1", "p2"]


def test_a_drain_answers_what_was_accepted() -> None:
    with serving() as local, local.connect() as kept, local.connect() as slow:
        kept.sendall(get(b"/ready"))
        status, headers, _ = parse_answer(read_answer(kept))
        assert (status, headers.get("connection")) == (200, None)
        slow.sendall(post(b"", length=b"14"))
        idle = local.connect()
        time.sleep(0.05)
        local.stop()
        assert status_of(local.ask(get(b"/ready"))) == 503
        kept.sendall(post(OK))
        status, headers, _ = parse_answer(read_answer(kept))
        assert (status, headers["connection"], kept.recv(10)) == (200, "close", b"")
        assert idle.recv(10) == b""  # closed as it has nothing to ask
        idle.close()
        slow.sendall(OK)
        assert status_of(read_answer(slow)) == 200
        local.thread.join(10)
        with pytest.raises(ConnectionRefusedError):
            local.connect()


def test_what_still_waits_when_the_drain_ends_gets_an_answer() -> None:
    with serving() as local, local.connect() as first, local.connect() as second:
        local.model.gate.clear()
        first.sendall(post(b'{"text": "first"}'))
        assert local.model.began.wait(20)
        second.sendall(post(b'{"text": "second"}'))
        until(lambda: local.service.batcher.n_waiting == 1)
        local.service.settings = ServiceSettings(drain_seconds=1.7)
        local.stop()
        status, _, content = parse_answer(read_answer(second))
        assert (status, content["type"]) == (503, "urn:litotes:problem:draining")


def test_addresses_that_cannot_be_had_are_told() -> None:
    with server.bind_socket("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        assert server.listener_url(taken) == f"http://127.0.0.1:{port}"
        with pytest.raises(UserError, match=f"Port {port} is in use"):
            server.bind_socket("127.0.0.1", port)
    for host, says in (("nowhere.invalid", "no such name"), ("192.0.2.1", "not an address of")):
        with pytest.raises(UserError, match=says):
            server.bind_socket(host, 0)
