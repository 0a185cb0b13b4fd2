"""What clients may make the service hold before it knows who they are: connections, requests,
bytes.

Each connection has a budget, and all of them together have one. When the common one is spent, the
connection that holds most of it ends, not the one that came last: a small request is let in however
many large ones are on their way.

When there are as many connections as there may be, some more are let in that may only ask whether
the service is alive: otherwise whoever watches over it would take it for dead.
"""

from __future__ import annotations

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


class Holder(Protocol):
    """A connection, as the budget sees it."""

    n_held_bytes: int

    @property
    def may_be_ended(self) -> bool:
        """Whether it has a request that has not arrived as a whole, or waits behind another."""

    def end_busy(self) -> None:
        """Ends it with the answer that too much is going on."""

    def abort(self) -> None:
        """Ends it without an answer."""


class ServerBudget:
    """What all connections hold together."""

    def __init__(
        self, settings: ServiceSettings, *, max_connections: int = MAX_CONNECTIONS
    ) -> None:
        self.max_body_bytes, self.max_connections = settings.max_body_bytes, max_connections
        self._max_bytes = _MAX_BODIES * settings.max_body_bytes
        self._n_bytes = self._n_pipelined = 0
        self._connections: dict[Holder, None] = {}
        self._probes: dict[Holder, None] = {}

    def let_in(self, connection: Holder) -> bool:
        """Whether the connection may ask for everything; otherwise it may only probe.

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
        if n_bytes > 0 and self._n_bytes > self._max_bytes:
            candidates = [one for one in self._connections if one.may_be_ended]
            heaviest = max(candidates, key=lambda one: one.n_held_bytes, default=connection)
            heaviest.end_busy()

    def add_pipelined(self, n: int) -> bool:
        """Whether n more requests may wait behind others; below 0: that are gone."""
        if n > 0 and self._n_pipelined + n > _MAX_PIPELINED:
            return False
        self._n_pipelined += n
        return True
