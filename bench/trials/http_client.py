"""A light HTTP client for measuring: one request at a time on a connection, its answer's status and
whether the server closes after it.
"""

from __future__ import annotations

import asyncio
import json


class Lost(Exception):
    """The connection ended before the answer was whole."""


class Connection(asyncio.Protocol):
    """Kept alive until the server closes it."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.is_open = False
        self.n_answered = 0
        self._buffer = b""
        self._answer: asyncio.Future[int] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport, self.is_open = transport, True

    def ask(self, request: bytes) -> asyncio.Future[int]:
        assert self.transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        if self.is_open:
            self.transport.write(request)
        else:
            self._answer.set_exception(Lost())
        return self._answer

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head_end = self._buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = self._buffer[:head_end].lower()
        length = int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        if len(self._buffer) < head_end + 4 + length:
            return
        status = int(head[9:12])
        if b"connection: close" in head:
            self.is_open = False
        self._buffer = b""
        self.n_answered += 1
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(status)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(Lost())

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()


async def connect(host: str, port: int) -> Connection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(Connection, host, port)
    return connection


def post(host: str, port: int, path: str, text: str) -> bytes:
    body = json.dumps({"text": text}).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type:"
        f" application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
