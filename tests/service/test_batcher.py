"""The queue: one budget, answers in order, fair shares, abandoned jobs not computed, no job failed
by another.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
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


def soon() -> float:
    return time.monotonic() + 20


class Queue:
    """A batcher that computes one batch at a time, however many cores there are."""

    def __init__(self, **settings: Any) -> None:
        self.model: Any = FakePredictor()
        self.batcher = Batcher(ServiceSettings(**settings), Metrics())
        self.batcher.n_at_once = 1

    def submit(self, *texts: str, client: str = "one", model: Any = None, **more: float) -> Job:
        model = model or self.model
        deadline = more.get("deadline", soon())
        return self.batcher.submit(client, model, model.tokenize(texts), deadline)

    def hold(self) -> Job:
        """A job that is being computed and does not end until the gate is opened: everything after
        it waits.
        """
        self.model.gate.clear()
        job = self.submit("first")
        assert self.model.began.wait(20)
        return job

    def finish(self, *jobs: Job) -> list[list[str]]:
        """The batches that were computed after what was held."""
        self.model.gate.set()
        for job in jobs:
            job.future.result(20)
        return self.model.batches[1:]


@pytest.fixture
def held() -> Callable[..., Queue]:
    def make(**settings: Any) -> Queue:
        queue = Queue(**settings)
        queue.hold()
        return queue

    return make


def labels(job: Job) -> list[Any]:
    return [prediction.answers["size"].label for prediction in job.future.result(20)]


def test_answers_come_back_in_order_and_what_waits_is_computed_together(held: Any) -> None:
    queue = held(batch_texts=4)
    texts = [["x" * (10 * n + k) for k in range(1, n + 2)] for n in range(6)]
    jobs = [queue.submit(*own) for own in texts]
    assert queue.batcher.n_waiting == 21
    batches = queue.finish(*jobs)
    for own, job in zip(texts, jobs, strict=True):
        assert labels(job) == [float(len(text)) for text in own]
    assert list(map(len, batches)) == [4, 4, 4, 4, 4, 1]
    assert queue.batcher.n_waiting == 0


def test_many_texts_do_not_hold_up_the_next_request_nor_are_held_up(held: Any) -> None:
    queue = held(batch_texts=4)
    many = queue.submit(*(f"many {n}" for n in range(6)))
    few = [queue.submit(f"few {n}") for n in range(4)]
    assert queue.finish(many, *few) == [
        ["many 0", "few 0", "few 1", "few 2"],
        ["few 3", "many 1", "many 2", "many 3"],
        ["many 4", "many 5"],
    ]


def test_one_budget_for_single_texts_and_for_many(held: Any) -> None:
    queue = held(queue_texts=10, queue_seconds=1000.0)
    jobs = [queue.submit(*["one"] * 7), queue.submit("one"), queue.submit("one")]
    with pytest.raises(QueueFull):
        queue.submit("one", "one")
    jobs.append(queue.submit("one"))
    with pytest.raises(QueueFull) as raised:
        queue.submit("one")
    assert int(raised.value.headers["retry-after"]) >= 1
    queue.finish(*jobs)
    queue.batcher.check_room("one", 1)


def test_the_queue_is_bounded_in_characters(held: Any) -> None:
    queue = held(queue_characters=1000, queue_seconds=1000.0)
    jobs = [queue.submit("x" * 999), queue.submit("y")]
    with pytest.raises(QueueFull):
        queue.submit("z")
    queue.finish(*jobs)


def test_the_queue_is_bounded_in_time_at_the_speed_measured(held: Any) -> None:
    queue = held(queue_seconds=0.5)
    queue.batcher.speed = 20.0
    jobs = [queue.submit("one") for _ in range(11)]
    with pytest.raises(QueueFull) as raised:
        queue.batcher.check_room("one", 1)
    assert raised.value.headers["retry-after"] == "1"
    queue.batcher.speed = 2.0
    with pytest.raises(QueueFull) as raised:
        queue.batcher.check_room("one", 1)
    assert raised.value.headers["retry-after"] == "6"  # 11 pieces, 2 a second
    queue.finish(*jobs)


@pytest.mark.parametrize(
    ("speed", "n_texts", "sizes"), [(8000.0, 10, [4, 4, 2]), (40.0, 4, [2, 2])]
)
def test_batches_are_cut_by_pieces_and_by_time(
    held: Any, monkeypatch: pytest.MonkeyPatch, speed: float, n_texts: int, sizes: list[int]
) -> None:
    """A twentieth of a second: 400 pieces; a slow model still gets 256 at once, and some more."""
    queue = held(queue_seconds=1000.0)
    monkeypatch.setattr(queue.batcher, "_measure", lambda batch, seconds: None)
    queue.batcher.speed = speed
    job = queue.submit(*["word " * 100] * n_texts)
    assert list(map(len, queue.finish(job))) == sizes


def test_one_greedy_client_does_not_fill_the_queue_for_others(held: Any) -> None:
    """Its next request is refused, another client's is let in and has its turn at once."""
    queue = held()
    queue.batcher.speed = 3000.0
    greedy = queue.submit(*["word " * 100] * 64, client="greedy")
    for client in ("greedy", "as greedy"):
        with pytest.raises(QueueFull):
            queue.submit(*["word " * 100] * 64, client=client)
    polite = queue.submit("please", client="polite")
    own = queue.submit("also short", client="greedy")
    assert {"please", "also short"} < set(queue.finish(greedy, polite, own)[0])


def test_clients_have_equal_shares_however_many_requests_they_send(held: Any) -> None:
    queue = held(batch_texts=4, queue_seconds=1000.0)
    jobs = [queue.submit(f"a {n}", client="a") for n in range(12)]
    jobs += [queue.submit(f"b {n}", client="b") for n in range(4)]
    for batch in queue.finish(*jobs)[:2]:
        assert sum(text.startswith("b") for text in batch) == 2


def test_a_request_of_many_texts_is_not_kept_waiting_by_new_ones_of_few() -> None:
    model: Any = FakePredictor()
    waiting = WaitingJobs()
    many = Job("one", model, model.tokenize(["many words"] * 4), soon())
    waiting.add(many)
    n_turns = 0
    while any(many.lanes):
        waiting.add(Job("one", model, model.tokenize(["few words"]), soon()))
        waiting.take(SHORT, max_texts=1, max_pieces=100)
        n_turns += 1
        assert n_turns < 40
    # what waits before a job of 4 pieces: of its own client's others, and of each other client
    waiting.add(Job("two", model, model.tokenize(["a b c"] * 5), soon()))
    n_own = sum(min(job.n_pieces, 4) for job in waiting.jobs if job.client == "one")
    assert waiting.pieces_before("one", 4) == n_own + min(15, n_own + 4)
    assert waiting.pieces_before("three", 4) == min(15, 4) + min(n_own, 4)


def test_long_texts_have_a_core_and_short_ones_do_not_wait_for_them() -> None:
    queue = Queue()
    queue.model.gate.clear()
    long = [queue.submit("word " * 200)]
    assert queue.model.began.wait(20)
    queue.model.began.clear()
    short = queue.submit("short")
    assert queue.model.began.wait(20)
    long.append(queue.submit("word " * 129))
    time.sleep(0.05)
    assert list(map(len, queue.model.batches)) == [1, 1]  # the other long one waits
    queue.finish(short, *long)


@pytest.mark.timed
def test_abandoned_jobs_are_not_computed(held: Any) -> None:
    queue = held()
    gone = queue.submit(*["gone"] * 3)
    late = queue.submit("late", deadline=time.monotonic() + 0.02)
    here = queue.submit("here")
    gone.future.cancel()
    time.sleep(0.05)
    assert queue.finish(here) == [["here"]]
    assert not late.future.done()
    assert queue.batcher.n_waiting == 0


def test_a_text_that_cannot_be_computed_fails_its_own_request_alone(held: Any) -> None:
    queue = held()
    texts = ["fine"], ["ok", "guilty"], ["wrong"], ["also fine"]
    fine, guilty, wrong, after = (queue.submit(*own) for own in texts)
    queue.model.gate.set()
    assert [labels(fine), labels(after)] == [[4.0], [9.0]]
    with pytest.raises(ValueError, match="cannot read"):
        guilty.future.result(20)
    with pytest.raises(UserError):
        wrong.future.result(20)
    assert labels(queue.submit("and on it goes")) == [14.0]


def test_models_are_not_mixed(held: Any) -> None:
    queue, other = held(), FakePredictor()
    models = [queue.model, other, queue.model, other]
    jobs = [queue.submit(f"text {n}", model=one) for n, one in enumerate(models)]
    assert queue.finish(*jobs) == [["text 0", "text 2"]]
    assert other.batches == [["text 1", "text 3"]]


def test_speed_follows_what_is_measured() -> None:
    queue = Queue()
    for _ in range(20):
        queue.submit(*["x"] * 32).future.result(20)
    assert queue.batcher.speed > 10_000
    # an average over 2,048 pieces: half of the way for as many
    queue.batcher.speed, job = 1000.0, queue.submit(*["x " * 64] * 32)
    job.future.result(20)
    before = queue.batcher.speed
    queue.batcher._measure([(job, place) for place in range(32)], seconds=2048 / 3000)
    assert queue.batcher.speed == pytest.approx((before + 3000) / 2)


def test_waiting_jobs_can_be_failed_at_the_end(held: Any) -> None:
    queue = held()
    job = queue.submit("one")
    queue.batcher.fail_all(lambda: UserError("over"))
    with pytest.raises(UserError, match="over"):
        job.future.result(20)
    queue.model.gate.set()


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_workers_run_at_a_lower_priority_than_other_threads() -> None:
    seen: list[int] = []

    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    start_thread(lambda: seen.append(priority()), "test").join(20)
    assert seen == [min(priority() + 2, 19)]


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
    with pytest.raises(QueueFull) as raised:
        explainer.submit("c", slow, soon())
    assert raised.value.headers["retry-after"] == "4"
    assert late.cancel()
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
    explainer, began = Explainer(2), threading.Event()

    def endless(watch: Watch) -> bytes:
        while True:
            watch("explaining", 0, 1, "")
            began.set()

    for deadline, is_cancelled in ((soon(), True), (time.monotonic() + 0.2, False)):
        began.clear()
        future = explainer.submit("a", endless, deadline)
        assert began.wait(20)
        assert future.cancel() or not is_cancelled
        assert explainer.submit("a", lambda _: b"next", soon()).result(20) == b"next"
