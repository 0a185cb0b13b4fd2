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
from litotes.service.problems import QueueFull
from litotes.service.queues import Batcher, Explainer, start_thread
from litotes.service.settings import ServiceSettings
from litotes.service.telemetry import Metrics
from litotes.service.waiting import SHORT, Job, WaitingJobs


@pytest.fixture
def model() -> Any:
    return FakePredictor()


def batcher_with(**settings: Any) -> Batcher:
    """Computes one batch at a time, however many cores there are."""
    batcher = Batcher(ServiceSettings(**settings), Metrics())
    batcher.n_at_once = 1
    return batcher


def submit(
    batcher: Batcher,
    model: Any,
    texts: list[str],
    *,
    client: str = "one",
    deadline: float | None = None,
) -> Job:
    return batcher.submit(client, model, model.tokenize(texts), deadline or soon())


def soon() -> float:
    return time.monotonic() + 20


def labels(job: Any) -> list[Any]:
    return [prediction.answers["size"].label for prediction in job.future.result(20)]


def hold_batch(batcher: Batcher, model: FakePredictor) -> Any:
    """A job that is being computed and does not end until the gate is opened: everything after it
    waits.
    """
    model.gate.clear()
    job = submit(batcher, model, ["first"])
    assert model.began.wait(20)
    return job


def test_answers_come_back_in_order(model: Any) -> None:
    batcher = batcher_with(batch_texts=4)
    first = hold_batch(batcher, model)
    jobs = [submit(batcher, model, ["x" * (10 * n + k) for k in range(1, n + 2)]) for n in range(6)]
    model.gate.set()
    assert labels(first) == [5.0]
    for n, job in enumerate(jobs):
        assert labels(job) == [float(10 * n + k) for k in range(1, n + 2)]
    assert max(map(len, model.batches)) == 4
    assert batcher.n_waiting == 0


def test_what_comes_while_a_batch_is_computed_is_computed_together(model: Any) -> None:
    batcher = batcher_with()
    hold_batch(batcher, model)
    jobs = [submit(batcher, model, [f"text {n}"]) for n in range(5)]
    model.gate.set()
    for job in jobs:
        job.future.result(20)
    assert [len(batch) for batch in model.batches] == [1, 5]


def test_many_texts_do_not_hold_up_the_next_request_nor_are_held_up(model: Any) -> None:
    batcher = batcher_with(batch_texts=4)
    hold_batch(batcher, model)
    many = submit(batcher, model, [f"many {n}" for n in range(6)])
    few = [submit(batcher, model, [f"few {n}"]) for n in range(4)]
    model.gate.set()
    for job in (many, *few):
        job.future.result(20)
    assert model.batches[1] == ["many 0", "few 0", "few 1", "few 2"]
    assert model.batches[2] == ["few 3", "many 1", "many 2", "many 3"]
    assert model.batches[3] == ["many 4", "many 5"]


def test_one_budget_for_single_texts_and_for_many(model: Any) -> None:
    batcher = batcher_with(queue_texts=10, queue_seconds=1000.0)
    first = hold_batch(batcher, model)
    jobs = [
        submit(batcher, model, ["one"] * 7),
        *(submit(batcher, model, ["one"]) for _ in range(2)),
    ]
    with pytest.raises(QueueFull):
        submit(batcher, model, ["one"] * 2)
    jobs.append(submit(batcher, model, ["one"]))
    with pytest.raises(QueueFull) as raised:
        submit(batcher, model, ["one"])
    assert int(raised.value.headers["retry-after"]) >= 1
    model.gate.set()
    for job in (first, *jobs):
        job.future.result(20)
    batcher.check_room("one", 1)


def test_the_queue_is_bounded_in_time_at_the_speed_measured(model: Any) -> None:
    batcher = batcher_with(queue_seconds=0.5)
    hold_batch(batcher, model)
    batcher.speed = 20.0
    jobs = [submit(batcher, model, ["one"]) for _ in range(11)]
    with pytest.raises(QueueFull):
        batcher.check_room("one", 1)
    model.gate.set()
    jobs[-1].future.result(20)


def test_batches_are_cut_by_pieces_and_by_time(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    batcher = batcher_with()
    monkeypatch.setattr(batcher, "_measure", lambda batch, seconds: None)
    batcher.speed = 8000.0  # a twentieth of a second: 400 pieces
    hold_batch(batcher, model)
    job = submit(batcher, model, ["word " * 100] * 10)
    model.gate.set()
    job.future.result(20)
    assert [len(batch) for batch in model.batches[1:]] == [4, 4, 2]


def test_a_slow_model_still_gets_enough_at_once(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    batcher = batcher_with(queue_seconds=1000.0)
    monkeypatch.setattr(batcher, "_measure", lambda batch, seconds: None)
    batcher.speed = 40.0
    hold_batch(batcher, model)
    job = submit(batcher, model, ["word " * 100] * 4)
    model.gate.set()
    job.future.result(20)
    assert [len(batch) for batch in model.batches[1:]] == [2, 2]


def test_one_greedy_client_does_not_fill_the_queue_for_others(model: Any) -> None:
    """Its next request is refused, another client's is let in and has its turn at once."""
    batcher = batcher_with()
    hold_batch(batcher, model)
    batcher.speed = 3000.0
    greedy = submit(batcher, model, ["word " * 100] * 64, client="greedy")
    with pytest.raises(QueueFull):
        submit(batcher, model, ["word " * 100] * 64, client="greedy")
    with pytest.raises(QueueFull):
        submit(batcher, model, ["word " * 100] * 64, client="as greedy")
    polite = submit(batcher, model, ["please"], client="polite")
    own = submit(batcher, model, ["also short"], client="greedy")
    model.gate.set()
    for job in (greedy, polite, own):
        job.future.result(20)
    assert {"please", "also short"} < set(model.batches[1])


def test_clients_have_equal_shares_however_many_requests_they_send(model: Any) -> None:
    batcher = batcher_with(batch_texts=4, queue_seconds=1000.0)
    hold_batch(batcher, model)
    jobs = [submit(batcher, model, [f"a {n}"], client="a") for n in range(12)]
    jobs += [submit(batcher, model, [f"b {n}"], client="b") for n in range(4)]
    model.gate.set()
    for job in jobs:
        job.future.result(20)
    for batch in model.batches[1:3]:
        assert sum(text.startswith("b") for text in batch) == 2


def test_a_request_of_many_texts_is_not_kept_waiting_by_new_ones_of_few(model: Any) -> None:
    waiting = WaitingJobs()
    many = Job("one", model, model.tokenize(["many words"] * 4), soon())
    waiting.add(many)
    n_turns = 0
    while any(many.lanes):
        waiting.add(Job("one", model, model.tokenize(["few words"]), soon()))
        waiting.take(SHORT, max_texts=1, max_pieces=100)
        n_turns += 1
        assert n_turns < 40


def test_short_texts_do_not_wait_for_long_ones_under_way(model: Any) -> None:
    batcher = batcher_with()
    model.gate.clear()
    long = submit(batcher, model, ["word " * 200])
    assert model.began.wait(20)
    model.began.clear()
    short = submit(batcher, model, ["short"])
    assert model.began.wait(20)
    assert [len(batch) for batch in model.batches] == [1, 1]
    model.gate.set()
    for job in (long, short):
        job.future.result(20)


def test_long_texts_have_a_core_however_many_short_ones_there_are(model: Any) -> None:
    batcher = batcher_with()
    hold_batch(batcher, model)
    model.began.clear()
    long = [submit(batcher, model, ["word " * 200]) for _ in range(2)]
    assert model.began.wait(20)
    time.sleep(0.1)
    assert len(model.batches) == 2  # the other long one waits
    model.gate.set()
    for job in long:
        job.future.result(20)


def test_the_queue_is_bounded_in_characters(model: Any) -> None:
    batcher = batcher_with(queue_characters=1000, queue_seconds=1000.0)
    hold_batch(batcher, model)
    job = submit(batcher, model, ["x" * 999])
    other = submit(batcher, model, ["y" * 5])
    with pytest.raises(QueueFull):
        submit(batcher, model, ["z"])
    model.gate.set()
    job.future.result(20)
    other.future.result(20)


@pytest.mark.timed
def test_abandoned_jobs_are_not_computed(model: Any) -> None:
    batcher = batcher_with()
    hold_batch(batcher, model)
    gone = submit(batcher, model, ["gone"] * 3)
    late = submit(batcher, model, ["late"], deadline=time.monotonic() + 0.05)
    here = submit(batcher, model, ["here"])
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
        submit(batcher, model, texts)
        for texts in (["fine"], ["ok", "guilty"], ["wrong"], ["also fine"])
    )
    model.gate.set()
    assert labels(fine) == [4.0]
    assert labels(after) == [9.0]
    with pytest.raises(ValueError, match="cannot read"):
        guilty.future.result(20)
    with pytest.raises(UserError):
        wrong.future.result(20)
    assert labels(submit(batcher, model, ["and on it goes"])) == [14.0]


def test_models_are_not_mixed(model: Any) -> None:
    other: Any = FakePredictor()
    batcher = batcher_with()
    hold_batch(batcher, model)
    jobs = [
        submit(batcher, one, [f"text {n}"]) for n, one in enumerate([model, other, model, other])
    ]
    model.gate.set()
    for job in jobs:
        job.future.result(20)
    assert model.batches[1:] == [["text 0", "text 2"]]
    assert other.batches == [["text 1", "text 3"]]


def test_speed_follows_what_is_measured(model: Any) -> None:
    batcher = batcher_with()
    for _ in range(20):
        submit(batcher, model, ["x"] * 32).future.result(20)
    assert batcher.speed > 10_000


def test_waiting_jobs_can_be_failed_at_the_end(model: Any) -> None:
    batcher = batcher_with()
    hold_batch(batcher, model)
    job = submit(batcher, model, ["one"])
    batcher.fail_all(lambda: UserError("over"))
    with pytest.raises(UserError, match="over"):
        job.future.result(20)
    model.gate.set()


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_workers_run_at_a_lower_priority_than_other_threads() -> None:
    seen: list[int] = []
    start_thread(
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

    first = explainer.submit("a", slow, soon())
    assert began.wait(20)
    late = explainer.submit("a", slow, time.monotonic() - 1)
    failing = explainer.submit("b", lambda _: bytes(1 // 0), soon())
    with pytest.raises(QueueFull):
        explainer.submit("c", slow, soon())
    failing_is_cancelled = late.cancel()
    assert failing_is_cancelled
    explainer.check_room("a")
    with pytest.raises(QueueFull):  # half of what may wait is the most for one client
        explainer.check_room("b")
    gate.set()
    assert first.result(20) == b"done"
    with pytest.raises(ZeroDivisionError):
        failing.result(20)
    assert explainer.submit("a", slow, soon()).result(20) == b"done"


@pytest.mark.timed
def test_an_abandoned_explanation_is_ended() -> None:
    explainer, began, n_steps = Explainer(2), threading.Event(), [0]

    def endless(watch: Watch) -> bytes:
        while True:
            watch("explaining", 0, 1, "")
            n_steps[0] += 1
            began.set()

    for deadline, is_cancelled in ((soon(), True), (time.monotonic() + 0.2, False)):
        began.clear()
        future = explainer.submit("a", endless, deadline)
        assert began.wait(20)
        assert future.cancel() or not is_cancelled
        assert explainer.submit("a", lambda _: b"next", soon()).result(20) == b"next"
    assert n_steps[0] > 1
