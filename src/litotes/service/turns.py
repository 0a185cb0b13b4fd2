"""The order in which requests are begun: the clients take turns.

A client that sends a hundred requests at once has them begun one by one between those of others.
What asks whether the service is alive is begun at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

_MAX_AT_ONCE = 8
"""Requests that are begun before the event loop looks for new ones."""


class RequestTurns:
    """Requests that have arrived and have not been begun, by client."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Callable[[], None]]] = {}
        self._is_scheduled = False

    def add(self, client: str, begin: Callable[[], None]) -> None:
        self._waiting.setdefault(client, deque()).append(begin)
        self._schedule()

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
