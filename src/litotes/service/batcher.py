"""Computes the texts of many requests together: while batches are computed, the next one gathers.

A text never waits for a batch to fill up.

    request of n texts → takes its pieces of one budget → batches of one model's texts, a fair share
    of each client's and each request's → answers, back in each request's order

Every core has a thread for short texts and one for long ones. Short texts are computed at once,
also while long ones are under way: those threads have a lower priority, and leave a core free while
short texts come.

A request is refused when others' texts would hold it up for longer than `queue_seconds`, at the
speed of the last batches. So one client, or one request, that asks for much does not fill the queue
for those that ask for little.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from litotes.core.machine import n_cores
from litotes.prediction.predictor import TokenizedText
from litotes.service.metrics import Metrics
from litotes.service.settings import ServiceSettings
from litotes.service.waiting_jobs import LANES, LONG, SHORT, Answering, Batch, Job, WaitingJobs
from litotes.service.worker import LONG_NICENESS, NICENESS, Worker

_NICENESS = {SHORT: NICENESS, LONG: LONG_NICENESS}
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


class QueueFull(Exception):
    """The queue has no room for these texts now. seconds: until it may have."""

    def __init__(self, seconds: int) -> None:
        super().__init__()
        self.seconds = seconds


class Batcher(Worker[Batch]):
    """Threads that compute the texts submitted from any thread.

    n_at_once: batches of a lane that are computed at the same time, at most one a core.
    """

    def __init__(self, settings: ServiceSettings, metrics: Metrics) -> None:
        self.n_at_once = n_cores()
        threads = [(lane, _NICENESS[lane]) for lane in LANES for _ in range(self.n_at_once)]
        super().__init__("litotes-batches", tuple(threads))
        self._settings, self._metrics = settings, metrics
        self._waiting = WaitingJobs()
        self._n_under_way = {SHORT: 0, LONG: 0}
        self._short_until = 0.0
        self.speed = _INITIAL_SPEED
        """Pieces a second of all threads together."""

    @property
    def n_waiting(self) -> int:
        return self._waiting.n_texts

    def seconds_before(self, client: str, n_pieces: int) -> float:
        """How long others' texts would hold up a request of this client."""
        with self._lock:
            return self._waiting.pieces_before(client, n_pieces) / self.speed

    def check_room(self, client: str, n_pieces: int) -> None:
        """May raise `QueueFull`; n_pieces: roughly those of the request."""
        seconds = self.seconds_before(client, n_pieces)
        waiting, settings = self._waiting, self._settings
        has_room = (
            waiting.n_texts < settings.queue_texts
            and waiting.n_characters < settings.queue_characters
        )
        if self._is_closed or not has_room or seconds > settings.queue_seconds:
            raise QueueFull(max(1, min(60, math.ceil(seconds))))

    def submit(
        self, client: str, predictor: Answering, texts: Sequence[TokenizedText], deadline: float
    ) -> Job:
        """The job whose future will hold a prediction for each text; may raise `QueueFull`."""
        job = Job(client, predictor, texts, deadline)
        with self._lock:
            self.check_room(client, job.n_pieces)
            if self.n_waiting + len(texts) > self._settings.queue_texts:
                raise QueueFull(1)
            self._waiting.add(job)
            for lane in LANES:
                if job.lanes[lane]:
                    self._wake(lane)
        return job

    def fail_all(self, error: Callable[[], Exception]) -> None:
        """Ends every job that still waits with this error."""
        with self._lock:
            for job in self._waiting:
                job.fail(error())

    def _next_task(self, lane: int) -> Batch | None:
        if not self._may_begin(lane):
            return None
        batch = self._waiting.take(
            lane, max_texts=self._settings.batch_texts, max_pieces=self._max_batch_pieces
        )
        if not batch:
            return None
        self._n_under_way[lane] += 1
        if lane == SHORT:
            self._short_until = time.monotonic() + _SHORT_SECONDS
        return batch

    @property
    def _max_batch_pieces(self) -> int:
        n_in_time = round(self.speed / self.n_at_once * _BATCH_SECONDS)
        n_under_pressure = _MIN_BATCH_PIECES + _PIECES_A_REQUEST * self._waiting.n_jobs
        return max(n_in_time, min(n_under_pressure, _MAX_BATCH_PIECES))

    def _may_begin(self, lane: int) -> bool:
        """Short texts take a core even if all are busy with long ones.

        Of the long ones, one batch is always under way: they are not kept waiting for ever either.
        Where there are more cores, they leave one free as long as short ones come.
        """
        n_own = self._n_under_way[lane]
        if lane == SHORT:
            return n_own < self.n_at_once
        n_free = 1 if time.monotonic() < self._short_until else 0
        return n_own == 0 or sum(self._n_under_way.values()) < self.n_at_once - n_free

    def _run_task(self, batch: Batch) -> None:
        began = time.perf_counter()
        self._compute(batch)
        self._measure(batch, time.perf_counter() - began)
        job, place = batch[0]
        with self._lock:
            self._n_under_way[job.lane_of(place)] -= 1
            self._wake(LONG)  # for which there may be a core now

    def _compute(self, batch: Batch) -> None:
        predictor = batch[0][0].predictor
        texts = [job.texts[place] for job, place in batch]
        try:
            predictions = predictor.answer(texts)
        except Exception as error:
            self._compute_one_by_one(batch, error)
            return
        for (job, place), prediction in zip(batch, predictions, strict=True):
            job.answer(place, prediction)
        self._metrics.texts.inc(len(batch))
        self._metrics.truncated.inc(sum(prediction.truncated for prediction in predictions))
        self._metrics.unreadable.inc(sum(prediction.unreadable for prediction in predictions))

    def _compute_one_by_one(self, batch: Batch, error: Exception) -> None:
        """After an error: the text that causes it fails its own job and no other."""
        if len(batch) == 1:
            batch[0][0].fail(error)
            return
        for job, place in batch:
            if not job.is_abandoned:
                self._compute([(job, place)])

    def _measure(self, batch: Batch, seconds: float) -> None:
        n_pieces = sum(job.texts[place].n_pieces for job, place in batch)
        weight = n_pieces / (n_pieces + _SPEED_WINDOW)
        speed = self.n_at_once * n_pieces / max(seconds, 1e-6)
        self.speed += weight * (speed - self.speed)
        self._metrics.batch_texts.observe(len(batch))
        self._metrics.batch_pieces.observe(n_pieces)
        self._metrics.batch_seconds.observe(seconds)
