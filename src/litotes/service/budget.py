"""What clients may make the service hold before it knows who they are (connections, requests,
bytes), and the order in which their requests are begun.

Each connection has a budget, and all of them together have one. When the common one is spent, the
connection that holds most of it ends, not the one that came last: a small request is let in however
many large ones are on their way.

When there are as many connections as there may be, some more are let in that may only ask whether
the service is alive: otherwise anyone who watches over it would take it for dead.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from litotes.service.settings import ServiceSettings

MAX_CONNECTIONS = 4096
N_PROBE_CONNECTIONS = 64
MAX_UNANSWERED = 4
"""Requests on one connection, sent without waiting for the answers to those before them."""
_MAX_PIPELINED = 1024
"""Of all connections: requests that wait for an answer to another on the same connection."""
_MAX_BODIES = 64
"""Bodies of the largest size that all connections together may hold."""

_MAX_AT_ONCE = 4
"""Requests that are begun before the event loop looks for new ones."""
_PIPELINED_SECONDS = 0.005
"""Between two that were sent behind others."""


class Holder(Protocol):
    """A connection, as the budget sees it."""

    n_held_bytes: int

    @property
    def may_be_ended(self) -> bool: ...
    def end_overloaded(self) -> None: ...
    def abort(self) -> None: ...


class ServerBudget:
    """The budget of all connections together."""

    def __init__(
        self, settings: ServiceSettings, *, max_connections: int = MAX_CONNECTIONS
    ) -> None:
        self.max_body_bytes, self.max_connections = settings.max_body_bytes, max_connections
        self._n_bytes = self._n_pipelined = 0
        self._connections: dict[Holder, None] = {}
        self._probes: dict[Holder, None] = {}

    def let_in(self, connection: Holder) -> bool:
        """Returns True if the connection may ask for everything; otherwise it may only probe.

        The oldest of those that may only probe makes room for the next: a probe is answered before
        so many others have come.
        """
        if len(self._connections) < self.max_connections:
            self._connections[connection] = None
            return True
        self._probes[connection] = None
        if len(self._probes) > N_PROBE_CONNECTIONS:
            next(iter(self._probes)).abort()
        return False

    def leave(self, connection: Holder) -> None:
        self._connections.pop(connection, None)
        self._probes.pop(connection, None)

    def hold(self, connection: Holder, n_bytes: int) -> None:
        """Counts bytes that have arrived; below 0: that are no longer held."""
        connection.n_held_bytes += n_bytes
        self._n_bytes += n_bytes
        if n_bytes > 0 and self._n_bytes > _MAX_BODIES * self.max_body_bytes:
            candidates = [one for one in self._connections if one.may_be_ended]
            heaviest = max(candidates, key=lambda one: one.n_held_bytes, default=connection)
            heaviest.end_overloaded()

    def add_pipelined(self, n: int) -> bool:
        """Counts n more requests that wait behind others, if they may; below 0: that are gone."""
        if n > 0 and self._n_pipelined + n > _MAX_PIPELINED:
            return False
        self._n_pipelined += n
        return True


class RequestTurns:
    """Requests that have arrived and have not been begun: the clients take turns.

    A client that sends a hundred requests at once has them begun one by one between those of
    others. What asks whether the service is alive is begun at once. Requests that were sent behind
    others on the same connection, which no usual client does, are begun at a pace that leaves time
    for everything else.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Callable[[], None]]] = {}
        self._is_scheduled = False
        self._pipelined: deque[Callable[[], None]] = deque()

    def add(self, client: str, begin: Callable[[], None]) -> None:
        self._waiting.setdefault(client, deque()).append(begin)
        self._schedule()

    def add_pipelined(self, begin: Callable[[], None]) -> None:
        self._pipelined.append(begin)
        if len(self._pipelined) == 1:
            self._pause()

    def _pause(self) -> None:
        asyncio.get_running_loop().call_later(_PIPELINED_SECONDS, self._begin_pipelined)

    def _begin_pipelined(self) -> None:
        self._pipelined[0]()
        self._pipelined.popleft()
        if self._pipelined:
            self._pause()

    def _schedule(self) -> None:
        if self._waiting and not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._begin_some)

    def _begin_some(self) -> None:
        self._is_scheduled = False
        for _ in range(_MAX_AT_ONCE):
            if not self._waiting:
                return
            client = next(iter(self._waiting))
            requests = self._waiting.pop(client)
            begin = requests.popleft()
            if requests:
                self._waiting[client] = requests  # behind all others
            begin()
        self._schedule()
