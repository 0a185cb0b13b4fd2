"""Reads request bodies: no more bytes than allowed, and no longer than a client may take."""

from __future__ import annotations

import asyncio

from starlette.types import Receive

from litotes.service.problems import ProblemError
from litotes.service.request_context import ClientDisconnected
from litotes.service.settings import ServiceSettings


class BodyReader:
    """Reads bodies within the limits of the settings.

    The server's budget bounds what all of them take together.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self._max_bytes, self._seconds = settings.max_body_bytes, settings.body_seconds

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
                    if len(body) > self._max_bytes:
                        raise self._too_large()
                return bytes(body)
        except TimeoutError as error:
            sentence = f"The body did not arrive within {self._seconds:g} seconds. Send it at once."
            raise ProblemError("slow-body", sentence, {"Connection": "close"}) from error

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
