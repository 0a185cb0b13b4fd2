"""The texts that wait to be computed: every client has an equal share, and so has every request of
a client (fair queueing; Parekh and Gallager 1993).

Work is counted in pieces, which is what computing a text takes. Virtual time is the work that each
of those that wait has received so far, as if all were served at once, a little each:

    one that begins to wait stands at the present virtual time;
    the next turn is that of the one that stands furthest back;
    a turn of w units of work moves it on by w, and virtual time by w / number of those waiting.

Long texts have a lane of their own: a short one never waits for the end of a long one.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from operator import attrgetter
from typing import Generic, Protocol, TypeVar

from litotes.core.values import Prediction
from litotes.prediction.predictor import TokenizedText

Result = TypeVar("Result")

SHORT, LONG = LANES = 0, 1
_MAX_SHORT_PIECES = 128


class Answering(Protocol):
    """Anything that computes texts: a predictor, or what gives its raw scores."""

    def answer(self, texts: Sequence[TokenizedText], /) -> list[Prediction]: ...


class Wanted(Generic[Result]):
    """Work for a client. deadline: on the clock of `time.monotonic()`. Work whose future is
    cancelled is not done.
    """

    def __init__(self, client: str, deadline: float) -> None:
        self.client, self.deadline = client, deadline
        self.future: Future[Result] = Future()

    @property
    def is_abandoned(self) -> bool:
        """True if no client waits for it any more."""
        return self.future.done() or time.monotonic() > self.deadline

    def finish(self, result: Result) -> None:
        with suppress(InvalidStateError):  # cancelled at this very moment, or failed before
            self.future.set_result(result)

    def fail(self, error: Exception) -> None:
        with suppress(InvalidStateError):
            self.future.set_exception(error)


class Share:
    """The virtual time at which one stands, and that of those that share what it is given."""

    def __init__(self) -> None:
        self.stands_at = self.now = 0.0
        self.n_waiting = 0

    def add(self, share: Share) -> None:
        """Begins to wait: what it did not use before is not made up for."""
        share.stands_at = max(share.stands_at, self.now)
        self.n_waiting += 1

    def charge(self, share: Share, work: int) -> None:
        share.stands_at += work
        self.now += work / self.n_waiting


class Job(Wanted[list[Prediction]]):
    """The texts of one request."""

    def __init__(
        self, client: str, predictor: Answering, texts: Sequence[TokenizedText], deadline: float
    ) -> None:
        super().__init__(client, deadline)
        self.predictor, self.texts = predictor, texts
        self.share, self.client_share = Share(), Share()
        self.sizes = [text.n_pieces for text in texts]
        self.lanes: tuple[deque[int], ...] = tuple(deque() for _ in LANES)
        """The places of the texts that wait, by lane."""
        for place, n_pieces in enumerate(self.sizes):
            self.lanes[LONG if n_pieces > _MAX_SHORT_PIECES else SHORT].append(place)
        self.n_pieces = sum(self.sizes)
        """Of the texts that wait."""
        self._answers: dict[int, Prediction] = {}

    def answer(self, place: int, prediction: Prediction) -> None:
        self._answers[place] = prediction
        if len(self._answers) == len(self.texts):
            self.finish([self._answers[place] for place in range(len(self.texts))])


Batch = list[tuple[Job, int]]
"""Texts by their job and their place in it."""

_turn = attrgetter("client_share.stands_at", "share.stands_at")


class WaitingJobs:
    """All jobs that have texts to compute. Not safe for several threads: the batcher locks it."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self._all = Share()
        self.n_texts = self.n_characters = 0

    def add(self, job: Job) -> None:
        own = [other.client_share for other in self.jobs if other.client == job.client]
        if own:
            job.client_share = own[0]
        else:
            self._all.add(job.client_share)
        job.client_share.add(job.share)
        self.jobs.append(job)
        self._count(job, range(len(job.texts)), 1)

    def pieces_before(self, client: str, n_pieces: int) -> int:
        """Counts the pieces of others that would be computed before a job of n pieces.

        While its client's share is spent on the job and on its other jobs, each of those gets as
        much as the job itself; and each other client gets as much as its client.
        """
        n_own, n_others = 0, Counter[str]()
        for job in self.jobs:
            if job.client == client:
                n_own += min(job.n_pieces, n_pieces)
            else:
                n_others[job.client] += job.n_pieces
        return n_own + sum(min(n, n_own + n_pieces) for n in n_others.values())

    def take(self, lane: int, *, max_texts: int, max_pieces: int) -> Batch:
        """Takes texts of one lane and one model, as many as fit but at least one if any waits."""
        for job in self.jobs:
            if job.is_abandoned:
                for places in job.lanes:
                    self._count(job, places, -1)
                    places.clear()
        self._drop_empty()
        waiting = [job for job in self.jobs if job.lanes[lane]]
        batch: Batch = []
        while waiting and len(batch) < max_texts:
            job = min(waiting, key=_turn)
            if not batch:
                waiting = [other for other in waiting if other.predictor is job.predictor]
            n_pieces = job.sizes[job.lanes[lane][0]]
            if batch and n_pieces > max_pieces:
                break
            max_pieces -= n_pieces
            place = job.lanes[lane].popleft()
            self._count(job, [place], -1)
            self._all.charge(job.client_share, n_pieces)
            job.client_share.charge(job.share, n_pieces)
            batch.append((job, place))
            if not job.lanes[lane]:
                waiting.remove(job)
        self._drop_empty()
        return batch

    def _count(self, job: Job, places: Sequence[int], sign: int) -> None:
        """Counts texts that wait from now on, or (sign -1) no longer do."""
        self.n_texts += sign * len(places)
        self.n_characters += sign * sum(len(job.texts[place].text) for place in places)
        if sign < 0:
            job.n_pieces -= sum(job.sizes[place] for place in places)

    def _drop_empty(self) -> None:
        for job in self.jobs:
            if not any(job.lanes):
                job.client_share.n_waiting -= 1
                self._all.n_waiting -= job.client_share.n_waiting == 0
        self.jobs = [job for job in self.jobs if any(job.lanes)]
