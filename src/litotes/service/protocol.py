"""HTTP on one connection: uvicorn's protocol over httptools, with the limits it lacks.

- A head (request line and headers) may have MAX_HEAD_BYTES bytes and MAX_HEADERS headers; httptools
  itself has no limit.
- A request must arrive within some seconds; uvicorn waits for ever. `reading_since` says when it
  began.
- A client must read its answer within some seconds; uvicorn waits for ever. `responding_since` says
  when the answer could first have been sent.
- A connection that is closed while its client still sends lingers. If it were closed at once, the
  kernel would reply to those bytes with a reset, and the client would lose the answer it has not
  read yet.
- At most MAX_CONNECTIONS are open at once: each costs memory and a file descriptor before it has
  brought a request.
- What is not HTTP is answered with a problem, like every other failure.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from litotes.service.problems import MEDIA_TYPE, ProblemError
from litotes.service.request_context import SECURITY_HEADERS

MAX_HEAD_BYTES, MAX_HEADERS, MAX_CONNECTIONS = 32_768, 128, 4096
_LINGER_SECONDS, _LINGER_BYTES = 2.0, 8_000_000


class GuardedProtocol(HttpToolsProtocol):
    """One connection. All times are on the clock of the event loop.

    idle_since: when the last answer was complete, or the connection was made.
    is_request_complete: all bytes of the request have arrived, or none.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._n_head_bytes = self._n_lingering_bytes = 0
        self._active_cycle: RequestResponseCycle | None = None
        self._is_in_head = self._is_lingering = self._ignores_input = False
        self._problem = ProblemError("bad-http", "Send a request as RFC 9112 describes it.")
        self.is_request_complete = True
        self.idle_since = self._request_complete_at = self.loop.time()
        self.reading_since: float | None = self.idle_since
        super().connection_made(_LingeringTransport(transport, self))  # type: ignore[arg-type]
        if len(self.connections) > MAX_CONNECTIONS:
            self._problem = ProblemError(
                "busy",
                "Too many connections are open. Ask again in a second.",
                {"Retry-After": "1"},
            )
            self.send_400_response("")

    @property
    def is_idle(self) -> bool:
        """Whether no request is being received or answered."""
        return self.is_request_complete and not self.pipeline and not self._is_responding

    @property
    def _is_responding(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def responding_since(self) -> float | None:
        """When the request, or the answer before it, was complete; None if no answer is due."""
        if not self._is_responding:
            return None
        return max(self._request_complete_at, self.idle_since)

    def abort(self) -> None:
        """Ends the connection now, whatever is still to be read or sent."""
        self._signal_disconnect()  # before the transport wakes a task that waits to send on it
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._signal_disconnect()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        # `self.cycle` is the newest request; earlier ones may be answered before it
        self._active_cycle = cycle
        super()._start_asgi_task(cycle, app)

    def _signal_disconnect(self) -> None:
        """Lets the app know that the client has gone, also while it answers an earlier request."""
        self.pipeline.clear()
        if self._active_cycle is not None and not self._active_cycle.response_complete:
            self._active_cycle.disconnected = True
            self._active_cycle.message_event.set()

    def data_received(self, data: bytes) -> None:
        if self._is_lingering:
            self._n_lingering_bytes += len(data)
            if self._n_lingering_bytes > _LINGER_BYTES:
                self.transport.abort()
            return
        if self._ignores_input:
            return
        super().data_received(data)
        if self._is_in_head:  # httptools does not pass on a header before its end
            self._n_head_bytes += len(data)
            if self._n_head_bytes > MAX_HEAD_BYTES and not self._ignores_input:
                self._reject_head()
                self.send_400_response("")

    def on_message_begin(self) -> None:
        self._is_in_head, self._n_head_bytes, self.is_request_complete = True, 0, False
        self.reading_since = self.loop.time()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > MAX_HEADERS:
            raise self._reject_head()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        n_header_bytes = sum(len(name) + len(value) for name, value in self.headers)
        if len(self.url) + n_header_bytes > MAX_HEAD_BYTES:
            raise self._reject_head()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self.is_request_complete, self.reading_since = True, None
        if not self.pipeline:  # otherwise earlier requests are answered first
            self._request_complete_at = self.loop.time()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self.idle_since = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn for what it cannot parse; also by us for a head that is too large."""
        self._ignores_input = True
        if self._is_responding:
            is_in_body = not self.is_request_complete and not self._is_in_head
            if not is_in_body or self.pipeline or self.cycle.response_started:
                # the client would take a problem sent now for the answer to an earlier request
                self.cycle.keep_alive = False
                return
            self.cycle.disconnected = True  # the app waits for the rest of this body
            self.cycle.message_event.set()
        self.is_request_complete = False  # unknown: the client may still be sending
        self.transport.write(self._problem_response())
        self.transport.close()

    def _problem_response(self) -> bytes:
        body = self._problem.body()
        headers = [
            *self.server_state.default_headers,
            *SECURITY_HEADERS,
            (b"content-type", MEDIA_TYPE.encode()),
            *self._problem.raw_headers,
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        return STATUS_LINE[self._problem.status] + lines + b"\r\n" + body

    def linger(self) -> None:
        """Discards what still arrives, until the client closes the connection or time is up."""
        self._is_lingering = True
        self.flow.resume_reading()
        self.loop.call_later(_LINGER_SECONDS, self.transport.abort)

    def _reject_head(self) -> Exception:
        """The error that makes httptools stop, and uvicorn call `send_400_response`."""
        sentence = f"A request may have {MAX_HEADERS} headers and {MAX_HEAD_BYTES:,} bytes"
        self._problem = ProblemError("huge-headers", f"{sentence} before its body.")
        return ValueError("huge headers")


class _LingeringTransport:
    """A transport that, when closed, waits for a client that is still sending."""

    def __init__(self, transport: asyncio.Transport, protocol: GuardedProtocol) -> None:
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
