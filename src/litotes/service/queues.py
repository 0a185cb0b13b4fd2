"""Computes the texts of many requests together: while batches are computed, the next one gathers.
Explanations are made one at a time, next to them.

A text never waits for a batch to fill up.

    request of n texts → takes its pieces of one budget → batches of one model's texts, a fair share
    of each client's and each request's → answers, back in each request's order

Every core has a thread for short texts and one for long ones. Short texts are computed at once,
also while long ones are under way: those threads have a lower priority, and leave a core free while
short texts come.

A request is refused when others' texts would hold it up for longer than `queue_seconds`, at the
speed of the last batches. So one client, or one request, that asks for much does not fill the queue
for those that ask for little.

All threads that compute have a lower priority than the event loop. When all cores are busy with
texts, an event loop of the same priority would wait for its turn; then even refusals are late, and
requests pile up uncounted in the kernel. Threads that they start, ONNX Runtime's or torch's,
inherit the priority.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from litotes.core.machine import n_cores
from litotes.core.progress import Watch
from litotes.prediction.predictor import TokenizedText
from litotes.service.problems import QueueFull
from litotes.service.settings import ServiceSettings
from litotes.service.telemetry import Metrics
from litotes.service.waiting import LANES, LONG, SHORT, Answering, Batch, Job, WaitingJobs, Wanted

NICENESS = 2
"""What is added to the nice value: where cores are scarce, a worker gets two thirds of the share of
the event loop. With much less, refusing a flood of requests would starve those that were accepted.
"""
LONG_NICENESS = NICENESS + 6
"""Of what takes long: a quarter of the share of what is short, where both want the same core."""

_INITIAL_SPEED = 3000.0
"""Pieces a second, until a batch has been measured."""
_SPEED_WINDOW = 2048
"""Pieces over which the speed is averaged: enough to even out, few enough to follow a change within
a second or two.
"""
_SHORT_SECONDS = 1.0
"""For so long after a short text the next one is expected."""
_BATCH_SECONDS, _MIN_BATCH_PIECES = 0.05, 256
"""Batches are short, so that the next request does not wait long for the end of one; but even a
slow model gets enough at once to use a core well.
"""
_PIECES_A_REQUEST, _MAX_BATCH_PIECES = 16, 768
"""Where many requests wait, each waits for others in any case: then batches grow, up to what torch
gains by.
"""
_EXPLANATION_SECONDS = 2
"""What an explanation takes, roughly: for `Retry-After`."""


def lower_priority(niceness: int = NICENESS) -> None:
    """Lowers the calling thread's priority, on Linux alone: elsewhere it is the whole process's."""
    if sys.platform == "linux":
        priority = os.getpriority(os.PRIO_PROCESS, 0) + niceness
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), priority)


def start_thread(work: Callable[[], None], name: str, niceness: int = NICENESS) -> threading.Thread:
    """Runs `work` in a thread of lower priority that ends with the process."""

    def run() -> None:
        lower_priority(niceness)
        work()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


class Batcher:
    """Threads that compute the texts submitted from any thread; they start with the first text.

    n_at_once: batches of a lane that are computed at the same time, at most one a core. speed:
    pieces a second of all threads together.
    """

    def __init__(self, settings: ServiceSettings, metrics: Metrics) -> None:
        self._settings, self._metrics = settings, metrics
        self._lock = threading.RLock()
        self._changed = [threading.Condition(self._lock) for _ in LANES]
        self._waiting = WaitingJobs()
        self._n_under_way = [0 for _ in LANES]
        self._is_running = self._is_closed = False
        self._short_until = 0.0
        self._n_cores = self.n_at_once = n_cores()
        self.speed = _INITIAL_SPEED

    @property
    def n_waiting(self) -> int:
        return self._waiting.n_texts

    def check_room(self, client: str, n_pieces: int, n_texts: int = 0) -> None:
        """May raise `QueueFull`. n_pieces: roughly those of the request; n_texts: its texts, 0 as
        long as they are not known.
        """
        with self._lock:
            seconds = self._waiting.pieces_before(client, n_pieces) / self.speed
            settings, n_waiting = self._settings, self._waiting.n_texts
            is_full = (
                n_waiting >= settings.queue_texts
                or self._waiting.n_characters >= settings.queue_characters
                or seconds > settings.queue_seconds
            )
            if self._is_closed or is_full or n_waiting + n_texts > settings.queue_texts:
                raise QueueFull(max(1, min(60, math.ceil(seconds))))

    def submit(
        self, client: str, predictor: Answering, texts: Sequence[TokenizedText], deadline: float
    ) -> Job:
        """The job whose future will hold a prediction for each text; may raise `QueueFull`."""
        job = Job(client, predictor, texts, deadline)
        with self._lock:
            self.check_room(client, job.n_pieces, len(texts))
            self._waiting.add(job)
            if not self._is_running:
                self._is_running = True
                for lane, niceness in ((SHORT, NICENESS), (LONG, LONG_NICENESS)):
                    for _ in range(self._n_cores):
                        start_thread(partial(self._run, lane), "litotes-batches", niceness)
            for lane in LANES:
                if job.lanes[lane]:
                    self._changed[lane].notify()
        return job

    def fail_all(self, error: Callable[[], Exception]) -> None:
        """Ends every job that still waits with this error."""
        with self._lock:
            for job in self._waiting.jobs:
                job.fail(error())

    def close(self) -> None:
        """Ends the threads after the texts that wait."""
        with self._lock:
            self._is_closed = True
            for changed in self._changed:
                changed.notify_all()

    def _run(self, lane: int) -> None:
        changed = self._changed[lane]
        while True:
            with self._lock:
                while not (batch := self._next_batch(lane)):
                    if self._is_closed:
                        return
                    changed.wait()
                changed.notify()  # there may be another one
            began = time.perf_counter()
            self._compute(batch)
            self._measure(batch, time.perf_counter() - began)
            with self._lock:
                self._n_under_way[lane] -= 1
                self._changed[LONG].notify()  # for which there may be a core now

    def _next_batch(self, lane: int) -> Batch:
        if not self._may_begin(lane):
            return []
        n_in_time = round(self.speed / self.n_at_once * _BATCH_SECONDS)
        n_under_pressure = _MIN_BATCH_PIECES + _PIECES_A_REQUEST * len(self._waiting.jobs)
        batch = self._waiting.take(
            lane,
            max_texts=self._settings.batch_texts,
            max_pieces=max(n_in_time, min(n_under_pressure, _MAX_BATCH_PIECES)),
        )
        if batch:
            self._n_under_way[lane] += 1
            if lane == SHORT:
                self._short_until = time.monotonic() + _SHORT_SECONDS
        return batch

    def _may_begin(self, lane: int) -> bool:
        """Short texts take a core even if all are busy with long ones.

        Of the long ones, one batch is always under way: they are not kept waiting for ever either.
        Where there are more cores, they leave one free as long as short ones come.
        """
        n_own = self._n_under_way[lane]
        if lane == SHORT:
            return n_own < self.n_at_once
        n_free = 1 if time.monotonic() < self._short_until else 0
        return n_own == 0 or sum(self._n_under_way) < self.n_at_once - n_free

    def _compute(self, batch: Batch) -> None:
        predictor = batch[0][0].predictor
        try:
            predictions = predictor.answer([job.texts[place] for job, place in batch])
        except Exception as error:
            # the text that causes it fails its own job and no other
            if len(batch) == 1:
                batch[0][0].fail(error)
                return
            for job, place in batch:
                if not job.is_abandoned:
                    self._compute([(job, place)])
            return
        for (job, place), prediction in zip(batch, predictions, strict=True):
            job.answer(place, prediction)
        self._metrics["texts"].inc(len(batch))
        self._metrics["truncated_texts"].inc(
            sum(prediction.truncated for prediction in predictions)
        )
        self._metrics["unreadable_texts"].inc(
            sum(prediction.unreadable for prediction in predictions)
        )

    def _measure(self, batch: Batch, seconds: float) -> None:
        n_pieces = sum(job.sizes[place] for job, place in batch)
        weight = n_pieces / (n_pieces + _SPEED_WINDOW)
        speed = self.n_at_once * n_pieces / max(seconds, 1e-6)
        self.speed += weight * (speed - self.speed)
        self._metrics["batch_texts"].observe(len(batch))
        self._metrics["batch_pieces"].observe(n_pieces)
        self._metrics["batch_seconds"].observe(seconds)


class _Abandoned(Exception):
    """No client waits any more for what is being computed."""


class Explanation(Wanted[bytes]):
    """An explanation to make by `work`."""

    def __init__(self, client: str, work: Callable[[Watch], bytes], deadline: float) -> None:
        super().__init__(client, deadline)
        self._work = work

    def make(self) -> None:
        try:
            self._check_wanted()
            self.finish(self._work(self._check_wanted))
        except _Abandoned:
            pass  # the client has been answered, or has gone
        except Exception as error:
            self.fail(error)

    def _check_wanted(self, *_: object) -> None:
        """The `Watch` of the computation: ends it once no client waits for it."""
        if self.is_abandoned:
            raise _Abandoned


class Explainer:
    """Makes explanations, one at a time, in a thread of their own: one takes as long as many
    predictions, which must not wait for it.

    At most max_waiting wait, and half as many of one client. One that is cancelled or past its
    deadline is not begun, and one under way ends at its next report of progress.
    """

    def __init__(self, max_waiting: int) -> None:
        self._pool = ThreadPoolExecutor(1, "litotes-explanations", lower_priority)
        self._lock = threading.RLock()
        self._max_waiting, self._is_closed = max_waiting, False
        self._waiting: deque[Explanation] = deque()
        self._current: Explanation | None = None

    @property
    def is_busy(self) -> bool:
        """True if something is being computed, even if no client waits for it any more."""
        return self._current is not None

    @property
    def n_waiting(self) -> int:
        return len(self._clients())

    def _clients(self) -> list[str]:
        return [one.client for one in tuple(self._waiting) if not one.future.done()]

    def check_room(self, client: str) -> None:
        """May raise `QueueFull`."""
        clients = self._clients()
        has_share = clients.count(client) < max(self._max_waiting // 2, 1)
        if self._is_closed or len(clients) >= self._max_waiting or not has_share:
            raise QueueFull(_EXPLANATION_SECONDS * max(len(clients), 1))

    def submit(self, client: str, work: Callable[[Watch], bytes], deadline: float) -> Future[bytes]:
        """The explanation to come; may raise `QueueFull`."""
        explanation = Explanation(client, work, deadline)
        with self._lock:
            self.check_room(client)
            self._waiting.append(explanation)
            self._pool.submit(self._make_next)
        return explanation.future

    def fail_all(self, error: Callable[[], Exception]) -> None:
        """Ends the one under way and all that wait with this error."""
        for explanation in (self._current, *self._waiting):
            if explanation is not None:
                explanation.fail(error())

    def close(self) -> None:
        self._is_closed = True
        self._pool.shutdown(wait=False)

    def _make_next(self) -> None:
        self._current = self._waiting.popleft()
        self._current.make()
        self._current = None
