"""The queue: one budget, answers in order, abandoned jobs not computed, no job failed by
another.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

import pytest
from fake_models import FakePredictor

from litotes.core.errors import UserError
from litotes.core.progress import Watch
from litotes.service.batcher import Batcher, QueueFull
from litotes.service.explainer import Explainer
from litotes.service.metrics import Metrics
from litotes.service.settings import ServiceSettings
from litotes.service.worker import start_worker_thread


@pytest.fixture
def model() -> Any:
    return FakePredictor()


def batcher_with(**settings: Any) -> Batcher:
    return Batcher(ServiceSettings(**settings), Metrics())


def soon() -> float:
    return time.monotonic() + 20


def labels(job: Any) -> list[Any]:
    return [prediction.answers["size"].label for prediction in job.future.result(20)]


def hold_batch(batcher: Batcher, model: FakePredictor) -> Any:
    """A job that is being computed and does not end until the gate is opened: everything after it
    waits.
    """
    model.gate.clear()
    job = batcher.submit(model, ["first"], soon())  # type: ignore[arg-type]
    assert model.began.wait(20)
    return job


def test_answers_come_back_in_order(model: Any) -> None:
    batcher = batcher_with(batch_texts=4)
    first = hold_batch(batcher, model)
    jobs = [
        batcher.submit(model, ["x" * (10 * n + k) for k in range(1, n + 2)], soon())
        for n in range(6)
    ]
    model.gate.set()
    assert labels(first) == [5.0]
    for n, job in enumerate(jobs):
        assert labels(job) == [float(10 * n + k) for k in range(1, n + 2)]
    assert max(map(len, model.batches)) == 4
    assert batcher.n_waiting == 0


def test_what_comes_while_a_batch_is_computed_is_computed_together(model: Any) -> None:
    batcher = batcher_with()
    hold_batch(batcher, model)
    jobs = [batcher.submit(model, [f"text {n}"], soon()) for n in range(5)]
    model.gate.set()
    for job in jobs:
        job.future.result(20)
    assert [len(batch) for batch in model.batches] == [1, 5]


def test_many_texts_do_not_hold_up_the_next_request_nor_are_held_up(model: Any) -> None:
    batcher = batcher_with(batch_texts=4)
    hold_batch(batcher, model)
    many = batcher.submit(model, [f"many {n}" for n in range(6)], soon())
    few = [batcher.submit(model, [f"few {n}"], soon()) for n in range(4)]
    model.gate.set()
    for job in (many, *few):
        job.future.result(20)
    assert model.batches[1] == ["many 0", "many 1", "few 0", "few 1"]
    assert model.batches[2] == ["many 2", "many 3", "few 2", "few 3"]
    assert model.batches[3] == ["many 4", "many 5"]


def test_one_budget_for_single_texts_and_for_many(model: Any) -> None:
    batcher = batcher_with(queue_texts=10, queue_seconds=1000.0)
    first = hold_batch(batcher, model)
    jobs = [
        batcher.submit(model, ["one"] * 7, soon()),
        *(batcher.submit(model, ["one"], soon()) for _ in range(2)),
    ]
    with pytest.raises(QueueFull):
        batcher.submit(model, ["one"] * 2, soon())
    jobs.append(batcher.submit(model, ["one"], soon()))
    assert batcher.is_full
    with pytest.raises(QueueFull) as raised:
        batcher.submit(model, ["one"], soon())
    assert raised.value.seconds >= 1
    model.gate.set()
    for job in (first, *jobs):
        job.future.result(20)
    assert not batcher.is_full


def test_the_queue_is_bounded_in_time_at_the_speed_measured(model: Any) -> None:
    batcher = batcher_with(queue_seconds=0.5)
    hold_batch(batcher, model)
    batcher.speed = 20.0
    jobs = [batcher.submit(model, ["one"], soon()) for _ in range(10)]
    assert batcher.is_full
    model.gate.set()
    jobs[-1].future.result(20)


def test_a_slow_model_gets_small_batches(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    batcher = batcher_with()
    monkeypatch.setattr(batcher, "_measure", lambda n, seconds: None)
    batcher.speed = 40.0
    hold_batch(batcher, model)
    job = batcher.submit(model, ["one"] * 20, soon())
    model.gate.set()
    job.future.result(20)
    assert len(model.batches[1]) == 8  # a fifth of a second


def test_the_queue_is_bounded_in_characters(model: Any) -> None:
    batcher = batcher_with(queue_characters=1000, queue_seconds=1000.0)
    hold_batch(batcher, model)
    job = batcher.submit(model, ["x" * 999], soon())
    assert not batcher.is_full
    other = batcher.submit(model, ["y" * 5], soon())
    assert batcher.is_full
    model.gate.set()
    job.future.result(20)
    other.future.result(20)


def test_abandoned_jobs_are_not_computed(model: Any) -> None:
    batcher = batcher_with()
    hold_batch(batcher, model)
    gone = batcher.submit(model, ["gone"] * 3, soon())
    late = batcher.submit(model, ["late"], time.monotonic() + 0.05)
    here = batcher.submit(model, ["here"], soon())
    gone.future.cancel()
    time.sleep(0.1)
    model.gate.set()
    assert labels(here) == [4.0]
    assert model.batches[1:] == [["here"]]
    assert not late.future.done()
    assert batcher.n_waiting == 0


def test_a_text_that_cannot_be_computed_fails_its_own_request_alone(model: Any) -> None:
    batcher = batcher_with()
    hold_batch(batcher, model)
    fine, guilty, wrong, after = (
        batcher.submit(model, texts, soon())
        for texts in (["fine"], ["ok", "guilty"], ["wrong"], ["also fine"])
    )
    model.gate.set()
    assert labels(fine) == [4.0]
    assert labels(after) == [9.0]
    with pytest.raises(ValueError, match="cannot read"):
        guilty.future.result(20)
    with pytest.raises(UserError):
        wrong.future.result(20)
    assert labels(batcher.submit(model, ["and on it goes"], soon())) == [14.0]


def test_models_are_not_mixed(model: Any) -> None:
    other: Any = FakePredictor()
    batcher = batcher_with()
    hold_batch(batcher, model)
    jobs = [
        batcher.submit(one, [f"text {n}"], soon())
        for n, one in enumerate([model, other, model, other])
    ]
    model.gate.set()
    for job in jobs:
        job.future.result(20)
    assert model.batches[1:] == [["text 0", "text 2"]]
    assert other.batches == [["text 1", "text 3"]]


def test_speed_follows_what_is_measured(model: Any) -> None:
    batcher = batcher_with()
    for _ in range(20):
        batcher.submit(model, ["x"] * 32, soon()).future.result(20)
    assert batcher.speed > 1000


def test_waiting_jobs_can_be_failed_at_the_end(model: Any) -> None:
    batcher = batcher_with()
    hold_batch(batcher, model)
    job = batcher.submit(model, ["one"], soon())
    batcher.fail_all(lambda: UserError("over"))
    with pytest.raises(UserError, match="over"):
        job.future.result(20)
    model.gate.set()


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_workers_run_at_a_lower_priority_than_other_threads() -> None:
    seen: list[int] = []
    start_worker_thread(
        lambda: seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id())), "test"
    ).join(20)
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    assert seen == [min(own + 2, 19)]


def test_explanations_one_by_one_with_few_waiting() -> None:
    explainer, gate, began = Explainer(2), threading.Event(), threading.Event()

    def slow(_: Watch) -> bytes:
        began.set()
        assert gate.wait(20)
        return b"done"

    first = explainer.submit(slow, soon())
    assert began.wait(20)
    late = explainer.submit(slow, time.monotonic() - 1)
    failing = explainer.submit(lambda _: bytes(1 // 0), soon())
    assert explainer.is_full
    with pytest.raises(QueueFull):
        explainer.submit(slow, soon())
    failing_is_cancelled = late.cancel()
    assert failing_is_cancelled
    assert not explainer.is_full
    gate.set()
    assert first.result(20) == b"done"
    with pytest.raises(ZeroDivisionError):
        failing.result(20)
    assert explainer.submit(slow, soon()).result(20) == b"done"


def test_an_abandoned_explanation_is_ended() -> None:
    explainer, began, n_steps = Explainer(2), threading.Event(), [0]

    def endless(watch: Watch) -> bytes:
        while True:
            watch("explaining", 0, 1, "")
            n_steps[0] += 1
            began.set()

    for deadline, is_cancelled in ((soon(), True), (time.monotonic() + 0.2, False)):
        began.clear()
        future = explainer.submit(endless, deadline)
        assert began.wait(20)
        assert future.cancel() or not is_cancelled
        assert explainer.submit(lambda _: b"next", soon()).result(20) == b"next"
    assert n_steps[0] > 1
