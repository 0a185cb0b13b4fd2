"""The texts that wait to be computed: every client has an equal share, and so has every request of
a client.

Work is counted in pieces, which is what computing a text takes. Long texts have a lane of their
own: a short one never waits for the end of a long one.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Protocol

from litotes.core.values import Prediction
from litotes.prediction.predictor import TokenizedText
from litotes.service.fair_shares import Account, FairShares

SHORT, LONG = LANES = 0, 1
_MAX_SHORT_PIECES = 128


class Answering(Protocol):
    """What computes texts: a predictor, or what gives its raw scores."""

    def answer(self, texts: Sequence[TokenizedText], /) -> list[Prediction]: ...


class Job(Account):
    """The texts of one request.

    client: whose request it is. deadline: on the clock of `time.monotonic()`. A job whose future is
    cancelled is not computed.
    """

    def __init__(
        self, client: str, predictor: Answering, texts: Sequence[TokenizedText], deadline: float
    ) -> None:
        self.client, self.predictor, self.texts, self.deadline = client, predictor, texts, deadline
        self.future: Future[list[Prediction]] = Future()
        self.lanes: tuple[deque[int], ...] = tuple(deque() for _ in LANES)
        """The places of the texts that wait, by lane."""
        for place in range(len(texts)):
            self.lanes[self.lane_of(place)].append(place)
        self.n_pieces = sum(text.n_pieces for text in texts)
        """Of the texts that wait."""
        self._answers: dict[int, Prediction] = {}

    def lane_of(self, place: int) -> int:
        return LONG if self.texts[place].n_pieces > _MAX_SHORT_PIECES else SHORT

    @property
    def is_waiting(self) -> bool:
        return any(self.lanes)

    @property
    def is_abandoned(self) -> bool:
        """Whether no client waits for it any more."""
        return self.future.done() or time.monotonic() > self.deadline

    def answer(self, place: int, prediction: Prediction) -> None:
        self._answers[place] = prediction
        if len(self._answers) == len(self.texts):
            with suppress(InvalidStateError):  # cancelled at this very moment
                in_order = [self._answers[place] for place in range(len(self.texts))]
                self.future.set_result(in_order)

    def fail(self, error: Exception) -> None:
        with suppress(InvalidStateError):
            self.future.set_exception(error)


Batch = list[tuple[Job, int]]
"""Texts by their job and their place in it."""


class _Client(Account):
    """The jobs of one client, the oldest first."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.shares = FairShares()

    @property
    def n_pieces(self) -> int:
        return sum(job.n_pieces for job in self.jobs)


class WaitingJobs:
    """All jobs that have texts to compute. Not safe for several threads: the batcher locks it."""

    def __init__(self) -> None:
        self._clients: dict[str, _Client] = {}
        self._shares = FairShares()
        self.n_texts = self.n_characters = 0

    def __iter__(self) -> Iterator[Job]:
        for client in self._clients.values():
            yield from client.jobs

    @property
    def n_jobs(self) -> int:
        return sum(len(client.jobs) for client in self._clients.values())

    def add(self, job: Job) -> None:
        if job.client not in self._clients:
            self._clients[job.client] = _Client()
            self._shares.join(self._clients[job.client])
        client = self._clients[job.client]
        client.shares.join(job)
        client.jobs.append(job)
        self.n_texts += len(job.texts)
        self.n_characters += sum(len(text.text) for text in job.texts)

    def pieces_before(self, client: str, n_pieces: int) -> int:
        """How many pieces of others would be computed before a job of n pieces is.

        While its client's share is spent on the job and on its other jobs, each of those gets as
        much as the job itself; and each other client gets as much as its client.
        """
        own = self._clients.get(client)
        n_own = sum(min(job.n_pieces, n_pieces) for job in own.jobs) if own is not None else 0
        n_others = 0
        for other in self._clients.values():
            if other is not own:
                n_others += min(other.n_pieces, n_own + n_pieces)
        return n_own + n_others

    def take(self, lane: int, *, max_texts: int, max_pieces: int) -> Batch:
        """Texts of one lane and one model, as many as fit but at least one if any waits."""
        self._drop_abandoned()
        waiting = self._waiting_in(lane)
        batch: Batch = []
        n_left = max_pieces
        while waiting and len(batch) < max_texts:
            client = self._shares.whose_turn(waiting)
            job = client.shares.whose_turn(waiting[client])
            if not batch:
                waiting = _with_model(waiting, job.predictor)
            n_pieces = job.texts[job.lanes[lane][0]].n_pieces
            if batch and n_pieces > n_left:
                break
            n_left -= n_pieces
            batch.append((job, self._take_next(client, job, lane)))
            if not job.lanes[lane]:
                waiting[client].remove(job)
                if not waiting[client]:
                    del waiting[client]
        self._drop_empty()
        return batch

    def _waiting_in(self, lane: int) -> dict[_Client, list[Job]]:
        waiting = {}
        for client in self._clients.values():
            jobs = [job for job in client.jobs if job.lanes[lane]]
            if jobs:
                waiting[client] = jobs
        return waiting

    def _take_next(self, client: _Client, job: Job, lane: int) -> int:
        place = job.lanes[lane].popleft()
        text = job.texts[place]
        self._shares.charge(client, text.n_pieces, len(self._clients))
        client.shares.charge(job, text.n_pieces, len(client.jobs))
        job.n_pieces -= text.n_pieces
        self.n_texts -= 1
        self.n_characters -= len(text.text)
        return place

    def _drop_abandoned(self) -> None:
        for job in self:
            if job.is_abandoned:
                for places in job.lanes:
                    self.n_texts -= len(places)
                    self.n_characters -= sum(len(job.texts[place].text) for place in places)
                    places.clear()
        self._drop_empty()

    def _drop_empty(self) -> None:
        for name, client in list(self._clients.items()):
            client.jobs = [job for job in client.jobs if job.is_waiting]
            if not client.jobs:
                del self._clients[name]


def _with_model(
    waiting: dict[_Client, list[Job]], predictor: Answering
) -> dict[_Client, list[Job]]:
    """Those of them that ask the same model."""
    found = {}
    for client, jobs in waiting.items():
        same = [job for job in jobs if job.predictor is predictor]
        if same:
            found[client] = same
    return found
