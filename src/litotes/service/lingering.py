"""A connection that is closed while its client still sends is read on for a while.

If it were closed at once, the kernel would reply to those bytes with a reset, and the client would
lose the answer it has not read yet.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol


class Lingering(Protocol):
    """A connection that can linger."""

    is_request_complete: bool

    def linger(self) -> None:
        """Discards what still arrives, for a while."""


class LingeringTransport:
    """A transport that, when closed, waits for a client that is still sending."""

    def __init__(self, transport: asyncio.Transport, protocol: Lingering) -> None:
        self._transport, self._protocol, self._is_closing = transport, protocol, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._is_closing or self._transport.is_closing()

    def close(self) -> None:
        if self.is_closing():
            return
        self._is_closing = True
        if self._protocol.is_request_complete or not self._transport.can_write_eof():
            self._transport.close()
        else:
            self._transport.write_eof()
            self._protocol.linger()
