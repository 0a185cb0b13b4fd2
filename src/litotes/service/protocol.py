"""HTTP on one connection: uvicorn's protocol over httptools, with the limits it lacks.

- A head (request line and headers) may have MAX_HEAD_BYTES bytes and MAX_HEADERS headers; so may
  everything else around a body: chunk lines and trailers. httptools itself has no limit.
- Connections, requests and bytes that are held have a budget (`budget.py`), and clients take turns
  (`turns.py`).
- A request must arrive within some seconds; uvicorn waits for ever. `reading_since` says when it
  began.
- A client must read its answer within some seconds; uvicorn waits for ever. `responding_since` says
  when the answer could first have been sent.
- A client may close its side when it has sent its requests, and is still answered.
- A connection that is closed while its client still sends lingers (`lingering.py`).
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

from litotes.service.budget import MAX_UNANSWERED, ServerBudget
from litotes.service.lingering import LingeringTransport
from litotes.service.problems import MEDIA_TYPE, ProblemError
from litotes.service.request_context import SECURITY_HEADERS, client_of
from litotes.service.turns import RequestTurns
from litotes.service.upgrades import N_BEFORE, ignore_upgrade

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
        self._n_framing_bytes = self._n_body_bytes = self._n_lingering_bytes = 0
        self._max_lingering_bytes = _LINGER_BYTES
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

    @property
    def may_be_ended(self) -> bool:
        has_unfinished = not self.is_request_complete or bool(self.pipeline)
        return has_unfinished and not self._ignores_input and not self._is_lingering

    def end_busy(self) -> None:
        self._release()
        self._problem = _busy_problem()
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

    def _release(self) -> None:
        self._budget.hold(self, -self.n_held_bytes)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        # `self.cycle` is the newest request; earlier ones may be answered before it
        self._active_cycle = cycle
        if self._is_taking_next:
            self._turns.add_pipelined(lambda: self._begin(cycle, app))
        elif cycle.scope["raw_path"] in _PROBE_PATHS:
            super()._start_asgi_task(cycle, app)
        else:
            client = client_of(self.client[0] if self.client else "")
            self._turns.add(client, lambda: self._begin(cycle, app))

    def _begin(self, cycle: RequestResponseCycle, app: Any) -> None:
        if not cycle.disconnected:
            super()._start_asgi_task(cycle, app)

    def _drop_pipeline(self) -> None:
        self._budget.add_pipelined(-len(self.pipeline))
        self.pipeline.clear()

    def _signal_disconnect(self) -> None:
        """Lets the app know that the client has gone, also while it answers an earlier request."""
        self._drop_pipeline()
        if self._active_cycle is not None and not self._active_cycle.response_complete:
            self._active_cycle.disconnected = True
            self._active_cycle.message_event.set()

    def data_received(self, data: bytes) -> None:
        if self._is_lingering:
            self._n_lingering_bytes += len(data)
            if self._n_lingering_bytes > self._max_lingering_bytes:
                self.transport.abort()
            return
        for start in range(0, len(data), _SLICE_BYTES):
            if self._ignores_input or self.transport.is_closing():
                return
            self._parse(data[start : start + _SLICE_BYTES])

    def _parse(self, data: bytes) -> None:
        if self.is_request_complete or self._is_in_head:
            before = self._head_so_far if self._is_in_head else b""
            self._head_so_far = (before + data)[-N_BEFORE:]
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
                self._reject_framing()
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
            raise self._reject(_busy_problem())
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
        if self._is_for_probes and self.url.partition(b"?")[0] not in _PROBE_PATHS:
            raise self._reject(_busy_problem())
        if self._is_responding and not self._budget.add_pipelined(1):
            raise self._reject(_busy_problem())
        super().on_headers_complete()
        if self._is_for_probes:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._n_body_bytes += len(body)
        super().on_body(body)
        # whoever reads the body counts as well; this is for bodies that are not read, or not yet
        if len(self.cycle.body) > self._budget.max_body_bytes:
            self.end_busy()
        elif self.cycle.response_complete and self._n_body_bytes > self._budget.max_body_bytes:
            self._ignores_input = True
            self.transport.close()

    def on_message_complete(self) -> None:
        self.is_request_complete, self.reading_since = True, None
        if not self.pipeline:  # otherwise earlier requests are answered first
            self._request_complete_at = self.loop.time()
        super().on_message_complete()

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
        self._ignores_input, self._max_lingering_bytes = True, _LINGER_BYTES_OF_REFUSED
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
        sentence = f"A request may have {MAX_HEADERS} headers and {MAX_HEAD_BYTES:,} bytes"
        return self._reject(ProblemError("huge-headers", f"{sentence} before its body."))

    def _reject_framing(self) -> Exception:
        if self._is_in_head:
            return self._reject_head()
        return self._reject(ProblemError("bad-http", "There is too much around the body's chunks."))

    def _reject(self, problem: ProblemError) -> Exception:
        """The error that makes httptools stop, and uvicorn call `send_400_response`."""
        self._problem, self.reading_since = problem, None
        return ValueError(problem.name)


def _busy_problem() -> ProblemError:
    return ProblemError(
        "busy",
        "Too much is open or on its way. Ask again in a second.",
        {"Retry-After": "1"},
    )
