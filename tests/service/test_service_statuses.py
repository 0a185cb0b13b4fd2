"""Every status there is, each with a sentence that says what to do and nothing of what was sent."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from app_client import ask_app_async, run_in_thread
from fake_models import FakePredictor
from fastapi import FastAPI

from litotes.core.errors import UserError
from litotes.prediction.predictor import Predictor
from litotes.service import ServiceSettings, create_app
from litotes.service.models import ServedModels, load_models
from litotes.service.problems import PROBLEM_KINDS, QueueFull


def assert_problem(answer: httpx.Response, status: int, name: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    content = answer.json()
    assert content.keys() == {"type", "title", "status", "detail"}
    assert content["type"] == f"urn:litotes:problem:{name}"
    assert content["status"] == status == PROBLEM_KINDS[name].status
    assert content["detail"].endswith(".")
    return content


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(
        ServedModels,
        "_describe",
        lambda self, name, predictor: {"name": name, "runtime": "torch", "tasks": {}},
    )
    return FakePredictor()


def fake_app(fake: Any, **settings: Any) -> FastAPI:
    return create_app({"fake": fake}, settings=ServiceSettings(**settings))


SECRET = "zebra crossing"
WRONG: list[tuple[str, bytes | dict[str, Any] | list[Any], int, str]] = [
    ("/v1/predict", b'{"text": "zebra crossing"', 400, "bad-json"),
    ("/v1/predict", b"\xff\xfe\xfd zebra crossing", 400, "bad-json"),
    ("/v1/predict", b"[" * 100_000, 400, "bad-json"),
    ("/v1/predict", b"", 422, "wrong-shape"),
    ("/v1/predict", {}, 422, "wrong-shape"),
    ("/v1/predict", [SECRET], 422, "wrong-shape"),
    ("/v1/predict", {"text": [SECRET]}, 422, "wrong-shape"),
    ("/v1/predict", {"text": SECRET, "texts": [SECRET]}, 422, "wrong-shape"),
    ("/v1/predict", {"text": SECRET, SECRET: 1}, 422, "wrong-shape"),
    ("/v1/predict", {"texts": []}, 422, "wrong-shape"),
    ("/v1/predict", {"texts": [SECRET, [SECRET]]}, 422, "wrong-shape"),
    ("/v1/predict", b'{"text": "zebra crossing \\ud800"}', 422, "wrong-shape"),
    ("/v1/predict", {"text": SECRET, "model": SECRET}, 404, "unknown-model"),
    ("/v1/predict", {"text": SECRET * 1000}, 413, "too-large"),
    ("/v1/predict", {"texts": [SECRET] * 65}, 413, "too-large"),
    ("/v1/predict", b'{"text": "' + SECRET.encode() * 100_000 + b'"}', 413, "too-large"),
    ("/v1/explain", {"text": SECRET, "task": SECRET}, 404, "unknown-task"),
    ("/v1/explain", {"text": SECRET, "method": SECRET}, 422, "wrong-shape"),
    ("/v1/explain", {"text": SECRET, "faithfulness": "yes"}, 422, "wrong-shape"),
    ("/v1/explain", {"text": SECRET * 200}, 413, "too-large"),
    ("/v1/explain", {"text": "\x01\x02"}, 422, "unreadable-text"),
    ("/v1/explain", {"text": "\u200b"}, 422, "unreadable-text"),
    ("/v1/explain", {"text": "😀 😀"}, 422, "unreadable-text"),
    (f"/v1/{SECRET}", {"text": SECRET}, 404, "unknown-path"),
    ("/v1/models", {"text": SECRET}, 405, "wrong-method"),
]


@pytest.mark.parametrize(
    ("path", "body", "status", "name"),
    WRONG,
    ids=[f"{n}-{case[3]}" for n, case in enumerate(WRONG)],
)
def test_a_problem_does_not_repeat_what_was_sent(
    app: FastAPI, ask: Any, path: str, body: Any, status: int, name: str
) -> None:
    answer = ask(app, path, body)
    assert_problem(answer, status, name)
    assert "zebra" not in answer.text
    assert "zebra" not in str(answer.headers)


def test_methods_and_content_types(app: FastAPI, ask: Any) -> None:
    answer = ask(app, "/v1/predict", method="DELETE")
    assert answer.headers["allow"] == "POST"
    assert "POST" in assert_problem(answer, 405, "wrong-method")["detail"]
    body, kinds = {"text": "ok"}, ("text/plain", "application/x-www-form-urlencoded", "")
    for kind in (*kinds, "application/jsonx"):
        answer = ask(app, "/v1/predict", body, headers={"content-type": kind})
        assert_problem(answer, 415, "wrong-content-type")
    headers = {"content-type": "Application/JSON; charset=utf-8"}
    assert ask(app, "/v1/predict", body, headers=headers).status_code == 200


async def post_parts(app: FastAPI, parts: Any, **headers: str) -> httpx.Response:
    """A body that comes in parts."""
    transport = httpx.ASGITransport(app)
    headers = {"content-type": "application/json"} | headers
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return await client.post("/v1/predict", content=parts, headers=headers)


@pytest.mark.timed
def test_bodies_without_end_or_too_slow_and_answers_too_late(
    app: FastAPI, predictor: Predictor, fake: Any, ask: Any
) -> None:
    n_sent = 0

    async def endless() -> Any:
        nonlocal n_sent
        while True:
            n_sent += 1
            yield b"x" * 100_000

    async def slow() -> Any:
        yield b'{"text": '
        await asyncio.sleep(30)

    assert_problem(run_in_thread(post_parts(app, endless())), 413, "too-large")
    assert n_sent < 15
    hasty = create_app({"tiny": predictor}, settings=ServiceSettings(body_seconds=0.1))
    assert_problem(run_in_thread(post_parts(hasty, slow())), 408, "slow-body")
    late = fake_app(fake, seconds=0.2, body_seconds=0.1)
    fake.gate.clear()
    began = time.monotonic()
    assert_problem(ask(late, "/v1/predict", {"text": "slow"}), 504, "too-late")
    assert time.monotonic() - began < 5
    fake.gate.set()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def test_a_full_queue_refuses_before_the_body_is_read_and_the_drain_ends_what_waits(
    fake: Any, ask: Any
) -> None:
    app = fake_app(fake, queue_texts=3, queue_seconds=1000.0)
    batcher = app.state.service.batcher
    answer = ask(app, "/v1/predict", {"texts": ["ok"] * 4})  # more than the queue holds
    assert "3 texts" in assert_problem(answer, 413, "too-large")["detail"]
    fake.gate.clear()
    fake.began.clear()

    async def unread() -> Any:
        raise AssertionError("the body was read")
        yield b""

    def ask_later(*texts: str) -> asyncio.Future[httpx.Response]:
        return asyncio.ensure_future(ask_app_async(app, "/v1/predict", {"texts": list(texts)}))

    async def go() -> None:
        first = ask_later("first")
        await until(fake.began.is_set)
        waiting = [ask_later("b", "c")]
        await until(lambda: batcher.n_waiting == 2)
        # seen when it is known how many there are
        assert_problem(await ask_later("d", "e"), 429, "busy")
        waiting.append(ask_later("d"))
        await until(lambda: batcher.n_waiting == 3)
        refused = await post_parts(app, unread(), **{"content-length": "20"})
        assert_problem(refused, 429, "busy")
        assert int(refused.headers["retry-after"]) >= 1
        app.state.service.fail_waiting()
        for answer in await asyncio.gather(*waiting):
            assert_problem(answer, 503, "draining")
        fake.gate.set()
        assert (await first).status_code == 200

    run_in_thread(go())


def test_a_bug_is_answered_with_the_request_id(
    fake: Any, ask: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    app = fake_app(fake)
    answer = ask(app, "/v1/predict", {"text": "guilty zebra"})
    content = assert_problem(answer, 500, "bug")
    assert answer.headers["x-request-id"] in content["detail"]
    app.state.service.log.flush()
    written = capsys.readouterr().err
    assert '"event": "bug"' in written
    assert "fake_models.py" in written
    assert "zebra" not in written + answer.text
    assert ask(app, "/v1/predict", {"text": "fine"}).status_code == 200


def test_loading_and_draining(predictor: Predictor, ask: Any) -> None:
    gate = threading.Event()

    def load() -> dict[str, Predictor]:
        assert gate.wait(20)
        return {"tiny": predictor}

    app = create_app(load, settings=ServiceSettings())
    service = app.state.service
    service.start()
    assert ask(app, "/live").status_code == 200
    for path, body in (("/ready", None), ("/v1/predict", {"text": "ok"}), ("/v1/models", None)):
        answer = ask(app, path, body)
        assert_problem(answer, 503, "loading")
        assert answer.headers["retry-after"] == "1"
    gate.set()
    while not service.is_ready:
        time.sleep(0.01)
    assert ask(app, "/ready").status_code == 200
    service.is_draining = True
    assert_problem(ask(app, "/ready"), 503, "draining")
    assert ask(app, "/live").status_code == 200
    # a request that still arrives is answered, and its connection closed
    answer = ask(app, "/v1/predict", {"text": "ok"})
    assert answer.status_code == 200
    assert answer.headers["connection"] == "close"


def test_models_that_cannot_be_served(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a model folder"):
        load_models({"none": tmp_path}, device=None, runtime=None)
    for models, says in (({}, "no model to serve"), ({"../etc": FakePredictor()}, "is not a name")):
        with pytest.raises(UserError, match=says):
            create_app(models)  # type: ignore[arg-type]


def test_a_service_that_breaks_off_closes_its_queues(app: FastAPI) -> None:
    async def break_off() -> None:
        async with app.router.lifespan_context(app):
            raise ConnectionError

    with pytest.raises(ConnectionError):
        run_in_thread(break_off())
    service = app.state.service
    with pytest.raises(QueueFull):
        service.batcher.check_room("somebody", 1)
    with pytest.raises(QueueFull):
        service.explainer.check_room("somebody")
