"""BodyReader of requests, read no further than they are allowed to be long and no longer than a client
may take.
"""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive

from litotes.service.problems import ProblemError
from litotes.service.request_context import ClientDisconnected
from litotes.service.settings import ServiceSettings

_MAX_BODIES_AT_ONCE = 64
"""Of the largest size allowed: what clients have begun to send and we have to keep."""


class BodyReader:
    """Reads them; all together may not take more memory than some of the largest would."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._most, self._seconds = settings.max_body_bytes, settings.body_seconds
        self._n_bytes = 0

    def check_length(self, declared: bytes | None) -> None:
        """What Content-Length says is believed only where it says too much."""
        if declared is not None and int(declared) > self._most:
            raise self._too_large()

    async def read(self, receive: Receive) -> bytes:
        chunks: list[bytes] = []
        n_bytes = 0
        try:
            async with asyncio.timeout(self._seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnected
                    chunk = message.get("body", b"")
                    chunks.append(chunk)
                    n_bytes += len(chunk)
                    self._n_bytes += len(chunk)
                    if n_bytes > self._most:
                        raise self._too_large()
                    if self._n_bytes > _MAX_BODIES_AT_ONCE * self._most:
                        raise ProblemError(
                            "busy",
                            "Ask again in a second.",
                            {"Retry-After": "1", "Connection": "close"},
                        )
                    if not message.get("more_body", False):
                        return b"".join(chunks)
        except TimeoutError as error:
            sentence = f"The body did not arrive within {self._seconds:g} seconds. Send it at once."
            raise ProblemError("slow-body", sentence, {"Connection": "close"}) from error
        finally:
            self._n_bytes -= n_bytes

    def _too_large(self) -> ProblemError:
        return ProblemError(
            "too-large",
            f"A body may have {self._most:,} bytes. Send fewer texts at a time.",
            {"Connection": "close"},
        )


def replay_body(body: bytes, receive: Receive) -> Receive:
    """A receive that gives the body, which has been read, and then whatever else comes."""
    first = True

    async def receive_again() -> Message:
        nonlocal first
        if first:
            first = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return receive_again
