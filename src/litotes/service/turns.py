"""The order in which requests are begun: the clients take turns.

A client that sends a hundred requests at once has them begun one by one between those of others.
What asks whether the service is alive is begun at once. Requests that were sent behind others on
the same connection, which no usual client does, are begun at a pace that leaves time for everything
else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

_MAX_AT_ONCE = 4
"""Requests that are begun before the event loop looks for new ones."""
_PIPELINED_SECONDS = 0.005
"""Between two that were sent behind others."""


class RequestTurns:
    """Requests that have arrived and have not been begun, by client."""

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
            self._wait_for_next()

    def _wait_for_next(self) -> None:
        asyncio.get_running_loop().call_later(_PIPELINED_SECONDS, self._begin_pipelined)

    def _begin_pipelined(self) -> None:
        self._pipelined[0]()
        self._pipelined.popleft()
        if self._pipelined:
            self._wait_for_next()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._begin_some)

    def _begin_some(self) -> None:
        self._is_scheduled = False
        for _ in range(_MAX_AT_ONCE):
            if not self._waiting:
                return
            client = next(iter(self._waiting))
            waiting = self._waiting.pop(client)
            begin = waiting.popleft()
            if waiting:
                self._waiting[client] = waiting  # behind all others
            begin()
        if self._waiting:
            self._schedule()
