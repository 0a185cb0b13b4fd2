"""HTTP on one connection: uvicorn's protocol over httptools, with the limits it lacks.

- A head (request line and headers) may have MAX_HEAD_BYTES bytes and MAX_HEADERS headers; so may
  everything else around a body: chunk lines and trailers. httptools itself has no limit.
- Connections, requests and bytes that are held have a budget, and clients take turns (`budget.py`).
- A request must arrive within some seconds; uvicorn waits for ever. `reading_since` says when it
  began.
- A client must read its answer within some seconds; uvicorn waits for ever. `responding_since` says
  when the answer could first have been sent.
- A client may close its side when it has sent its requests, and is still answered.
- A connection that is closed while its client still sends is read on for a while. If it were closed
  at once, the kernel would reply to those bytes with a reset, and the client would lose the answer
  it has not read yet.
- A client that offers another protocol is answered in this one.
- What is not HTTP is answered with a problem, like every other failure.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from litotes.service.budget import MAX_UNANSWERED, RequestTurns, ServerBudget
from litotes.service.guard import SECURITY_HEADERS, client_of
from litotes.service.problems import ProblemError, overloaded

MAX_HEAD_BYTES, MAX_HEADERS = 32_768, 128
_MAX_FRAMING = 8
"""Bytes around each byte of a body that comes in chunks; chunks of one byte have five."""
_SLICE_BYTES = 16_384
"""That are parsed before the budgets are looked at again."""
_LINGER_SECONDS, _LINGER_BYTES = 2.0, 8_000_000
_LINGER_BYTES_OF_REFUSED = 262_144
"""Of what is no proper request; hardly a client of good will sends on."""
_PROBE_PATHS, _PROBE_SECONDS = (b"/live", b"/ready"), 2.0
_CONTINUE, _CONTINUE_SECONDS = b"HTTP/1.1 100 Continue\r\n\r\n", 0.2

_UPGRADE = re.compile(rb"(?i)(?<=\r\n)upgrade(?=[ \t]*(?::|\Z))")
"""Also at the end of what has come: the colon may be on its way."""
_IGNORED = b"ignored"  # as long as the name that it replaces
_N_BEFORE = 10
"""Bytes in which the end of a head, or the name of the header, may have begun."""


def ignore_upgrade(before: bytes, data: bytes) -> bytes:
    """The data with the header `Upgrade` of the head they begin in, or go on with, under a name
    that means nothing; what stands behind the head stays as it is (RFC 9110, section 7.8).

    Java's client offers HTTP/2 with every request. httptools takes what stands behind such a head
    for the first bytes of the other protocol, and the request's body would be lost. before: the
    last bytes of this head that came before.
    """
    head, end, rest = (before + data).partition(b"\r\n\r\n")
    return (_UPGRADE.sub(_IGNORED, head) + end + rest)[len(before) :]


class LingeringTransport:
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


class GuardedProtocol(HttpToolsProtocol):
    """One connection. All times are on the clock of the event loop.

    idle_since: when the last answer was complete, or the connection was made.
    is_request_complete: all bytes of the request have arrived, or none.
    n_held_bytes: of requests that have not been answered.
    """

    def __init__(self, *args: Any, budget: ServerBudget, turns: RequestTurns, **more: Any) -> None:
        super().__init__(*args, **more)
        self._budget, self._turns = budget, turns
        self.n_held_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._n_framing_bytes = self._n_body_bytes = 0
        self._n_lingering_bytes_left = _LINGER_BYTES
        self._active_cycle: RequestResponseCycle | None = None
        self._is_in_head = self._is_lingering = self._ignores_input = False
        self._is_taking_next = False
        self._head_so_far = b""  # its last bytes
        self._problem = ProblemError("bad-http", "Send a request as RFC 9112 describes it.")
        self.is_request_complete = True
        self.idle_since = self._request_complete_at = self.loop.time()
        self.reading_since: float | None = self.idle_since
        super().connection_made(LingeringTransport(transport, self))  # type: ignore[arg-type]
        self._is_for_probes = not self._budget.let_in(self)
        if self._is_for_probes:
            self.loop.call_later(_PROBE_SECONDS, self.abort)

    @property
    def is_idle(self) -> bool:
        """True if no request is being received or answered."""
        return self.is_request_complete and not self.pipeline and not self._is_responding

    @property
    def _is_responding(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def responding_since(self) -> float | None:
        """The time the request, or the answer before it, was complete; None if no answer is due."""
        if not self._is_responding:
            return None
        return max(self._request_complete_at, self.idle_since)

    # What ends it

    @property
    def may_be_ended(self) -> bool:
        """True if it has a request that has not arrived as a whole, or waits behind another."""
        has_unfinished = not self.is_request_complete or bool(self.pipeline)
        return has_unfinished and not self._ignores_input and not self._is_lingering

    def end_overloaded(self) -> None:
        """Ends it with the answer that too much is going on."""
        self._release()
        self._problem = overloaded()
        if not self.pipeline:
            self.send_400_response("")
            return
        self._drop_pipeline()
        self._ignores_input, self.reading_since = True, None
        if self._active_cycle is not None:
            self.cycle = self._active_cycle
            self.cycle.keep_alive = False

    def abort(self) -> None:
        """Ends the connection now, whatever is still to be read or sent."""
        self._signal_disconnect()  # before the transport wakes a task that waits to send on it
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._signal_disconnect()
        self._release()
        self._budget.leave(self)
        super().connection_lost(exc)

    def linger(self) -> None:
        """Discards what still arrives, until the client closes the connection or time is up."""
        self._is_lingering = True
        self.flow.resume_reading()
        self.loop.call_later(_LINGER_SECONDS, self.transport.abort)

    def _release(self) -> None:
        self._budget.hold(self, -self.n_held_bytes)

    def _drop_pipeline(self) -> None:
        self._budget.add_pipelined(-len(self.pipeline))
        self.pipeline.clear()

    def _signal_disconnect(self) -> None:
        """Lets the app know that the client has gone, also while it answers an earlier request."""
        self._drop_pipeline()
        if self._active_cycle is not None and not self._active_cycle.response_complete:
            _disconnect(self._active_cycle)

    # What arrives

    def data_received(self, data: bytes) -> None:
        if self._is_lingering:
            self._n_lingering_bytes_left -= len(data)
            if self._n_lingering_bytes_left < 0:
                self.transport.abort()
            return
        for start in range(0, len(data), _SLICE_BYTES):
            if self._ignores_input or self.transport.is_closing():
                return
            self._parse(data[start : start + _SLICE_BYTES])

    def _parse(self, data: bytes) -> None:
        if self.is_request_complete or self._is_in_head:
            before = self._head_so_far if self._is_in_head else b""
            self._head_so_far = (before + data)[-_N_BEFORE:]
            data = ignore_upgrade(before, data)
        n_body_bytes = self._n_body_bytes
        super().data_received(data)
        if self._ignores_input or self.parser is None:
            return
        if self.is_request_complete:
            self._n_framing_bytes = 0
        else:
            self._n_framing_bytes += len(data) - max(self._n_body_bytes - n_body_bytes, 0)
            # httptools does not pass on a header or a trailer before its end
            if self._n_framing_bytes > MAX_HEAD_BYTES + _MAX_FRAMING * self._n_body_bytes:
                sentence = "There is too much around the body's chunks."
                self._reject(None if self._is_in_head else ProblemError("bad-http", sentence))
                self.send_400_response("")
                return
        if self._is_in_head or self._is_responding:
            self._budget.hold(self, len(data))

    def eof_received(self) -> bool:  # type: ignore[override]
        """The client sends no more. Whether it is still to be answered."""
        if not self._is_responding or not self.is_request_complete:
            return False
        self.cycle.keep_alive = False
        self._ignores_input = True
        self._check_client_reads()
        return True

    def _check_client_reads(self) -> None:
        """A client that has gone altogether replies to these lines with a reset, and then its texts
        are not computed; one that waits for its answer skips them.
        """
        if self.transport.is_closing() or self._active_cycle is None:
            return
        if not self._active_cycle.response_started and self.scope["http_version"] == "1.1":
            self.transport.write(_CONTINUE)
            self.loop.call_later(_CONTINUE_SECONDS, self._check_client_reads)

    def on_message_begin(self) -> None:
        self._is_in_head, self.is_request_complete = True, False
        self._n_framing_bytes = self._n_body_bytes = 0
        if self._ignores_input:
            raise ValueError("behind a request that has been refused")
        if len(self.pipeline) + self._is_responding >= MAX_UNANSWERED:
            raise self._reject(overloaded())
        self.reading_since = self.loop.time()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > MAX_HEADERS:
            raise self._reject()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        n_header_bytes = sum(len(name) + len(value) for name, value in self.headers)
        if len(self.url) + n_header_bytes > MAX_HEAD_BYTES:
            raise self._reject()
        is_for_others = self._is_for_probes and self.url.partition(b"?")[0] not in _PROBE_PATHS
        if is_for_others or (self._is_responding and not self._budget.add_pipelined(1)):
            raise self._reject(overloaded())
        super().on_headers_complete()
        if self._is_for_probes:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._n_body_bytes += len(body)
        super().on_body(body)
        # the reader of the body counts as well; this is for bodies that are not read, or not yet
        if len(self.cycle.body) > self._budget.max_body_bytes:
            self.end_overloaded()
        elif self.cycle.response_complete and self._n_body_bytes > self._budget.max_body_bytes:
            self._ignores_input = True
            self.transport.close()

    def on_message_complete(self) -> None:
        self.is_request_complete, self.reading_since = True, None
        if not self.pipeline:  # otherwise earlier requests are answered first
            self._request_complete_at = self.loop.time()
        super().on_message_complete()

    # What is answered

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        # `self.cycle` is the newest request; earlier ones may be answered before it
        self._active_cycle = cycle

        def begin() -> None:
            if not cycle.disconnected:
                super(GuardedProtocol, self)._start_asgi_task(cycle, app)

        if self._is_taking_next:
            self._turns.add_pipelined(begin)
        elif cycle.scope["raw_path"] in _PROBE_PATHS:
            begin()
        else:
            self._turns.add(client_of(self.client[0] if self.client else ""), begin)

    def on_response_complete(self) -> None:
        self.idle_since = self.loop.time()
        n_pipelined, self._is_taking_next = len(self.pipeline), True
        super().on_response_complete()
        self._is_taking_next = False
        self._budget.add_pipelined(len(self.pipeline) - n_pipelined)
        if not self._is_responding:
            self._release()

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn for what it cannot parse; also by us for what is too large."""
        if self._ignores_input:
            return
        self._ignores_input, self._n_lingering_bytes_left = True, _LINGER_BYTES_OF_REFUSED
        if self._is_responding:
            is_in_body = not self.is_request_complete and not self._is_in_head
            if not is_in_body or self.pipeline or self.cycle.response_started:
                # the client would take a problem sent now for the answer to an earlier request
                self.cycle.keep_alive = False
                return
            _disconnect(self.cycle)  # the app waits for the rest of this body
        self.is_request_complete = False  # unknown: the client may still be sending
        headers, body = self._problem.answer()
        headers += [*SECURITY_HEADERS, *self.server_state.default_headers]
        headers.append((b"connection", b"close"))
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        self.transport.write(STATUS_LINE[self._problem.kind.status] + lines + b"\r\n" + body)
        self.transport.close()

    def _reject(self, problem: ProblemError | None = None) -> Exception:
        """The error that makes httptools stop, and uvicorn call `send_400_response`. Without a
        problem the head is too large.
        """
        sentence = f"A request may have {MAX_HEADERS} headers and {MAX_HEAD_BYTES:,} bytes before"
        self._problem = problem or ProblemError("huge-headers", f"{sentence} its body.")
        self.reading_since = None
        return ValueError(self._problem.name)


def _disconnect(cycle: RequestResponseCycle) -> None:
    cycle.disconnected = True
    cycle.message_event.set()
