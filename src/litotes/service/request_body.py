"""Reads request bodies: no more bytes than allowed, and no longer than a client may take."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive

from litotes.service.problems import ProblemError
from litotes.service.request_context import ClientDisconnected
from litotes.service.settings import ServiceSettings

_MAX_BODIES_AT_ONCE = 64
"""Bodies of the largest size that all requests together may have in memory."""


class BodyReader:
    """Reads the bodies of all requests, and bounds the memory they take together."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._max_bytes, self._seconds = settings.max_body_bytes, settings.body_seconds
        self._n_bytes = 0

    def check_length(self, declared: bytes | None) -> None:
        """Refuses a Content-Length that is too large; a small one proves nothing."""
        if declared is not None and int(declared) > self._max_bytes:
            raise self._too_large()

    async def read(self, receive: Receive) -> bytes:
        body = bytearray()
        try:
            async with asyncio.timeout(self._seconds):
                has_more = True
                while has_more:
                    chunk, has_more = await _receive_chunk(receive)
                    body += chunk
                    self._n_bytes += len(chunk)
                    self._check_size(len(body))
                return bytes(body)
        except TimeoutError as error:
            sentence = f"The body did not arrive within {self._seconds:g} seconds. Send it at once."
            raise ProblemError("slow-body", sentence, {"Connection": "close"}) from error
        finally:
            self._n_bytes -= len(body)

    def _check_size(self, n_bytes: int) -> None:
        if n_bytes > self._max_bytes:
            raise self._too_large()
        if self._n_bytes > _MAX_BODIES_AT_ONCE * self._max_bytes:
            headers = {"Retry-After": "1", "Connection": "close"}
            raise ProblemError("busy", "Ask again in a second.", headers)

    def _too_large(self) -> ProblemError:
        return ProblemError(
            "too-large",
            f"A body may have {self._max_bytes:,} bytes. Send fewer texts at a time.",
            {"Connection": "close"},
        )


async def _receive_chunk(receive: Receive) -> tuple[bytes, bool]:
    """The next part of a body, and whether more follows."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnected
    return message.get("body", b""), message.get("more_body", False)


def replay_body(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body, which has been read, and then whatever else comes."""
    is_first = True

    async def receive_again() -> Message:
        nonlocal is_first
        if is_first:
            is_first = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return receive_again
