"""What belongs to one request: its id, its deadline, what is counted and logged about it.

The headers that every answer has are added here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, MutableMapping, Sequence
from concurrent.futures import Future
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Network, ip_address
from typing import Any, TypeVar

from starlette.types import Message, Receive, Send

from litotes.service.flat_json import Item
from litotes.service.problems import MEDIA_TYPE, ProblemError
from litotes.service.state import Service
from litotes.service.tei_models import PATH, error_body

Result = TypeVar("Result")

SECURITY_HEADERS: list[tuple[bytes, bytes]] = [
    (
        b"content-security-policy",
        (
            b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
            b" connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
CLOSE = (b"connection", b"close")
_NO_STORE = (b"cache-control", b"no-store")
_CLIENT_DISCONNECTED = 499
"""The status logged for a client that did not wait for its answer; it is never sent."""

_MAX_BYTES_AT_ONCE = 2048
"""Of a body that takes hardly longer to read than to hand to a thread and back."""

_ROUTES = frozenset(
    (
        "/",
        "/live",
        "/ready",
        "/metrics",
        "/openapi.json",
        "/v1/predict",
        "/v1/explain",
        "/v1/models",
        PATH,
    )
)
ASKING_ROUTES = ("/v1/predict", "/v1/explain", PATH)
"""Those that are posted to."""


class ClientDisconnected(Exception):
    """The client closed the connection before it was answered."""


def route_template(path: str) -> str:
    """The template of a path; a path as it was sent is never logged."""
    if path in _ROUTES:
        return path
    return "/page/{name}" if path.startswith("/page/") else "unknown"


def is_asking_path(path: str) -> bool:
    """Whether a token is needed, and the answer is not to be stored."""
    return path.startswith("/v1/") or path == PATH


@lru_cache(maxsize=4096)
def client_of(address: str) -> str:
    """Who asks, for fair shares: an address; of IPv6 its network, of which one machine may have all
    addresses.
    """
    try:
        parsed = ip_address(address)
    except ValueError:  # a socket without an address
        return address
    if isinstance(parsed, IPv4Address):
        return address
    return str(parsed.ipv4_mapped or IPv6Network((int(parsed), 64), strict=False))


class RequestContext:
    """From the first line of a request to the last byte of its answer."""

    def __init__(
        self, service: Service, scope: MutableMapping[str, Any], receive: Receive, send: Send
    ) -> None:
        self.service, self.path = service, scope["path"]
        self.route = route_template(self.path)
        self.client = client_of((scope.get("client") or ("",))[0])
        self.body = b""
        self.extra_headers: list[tuple[bytes, bytes]] = []
        self._receive, self._send = receive, send
        self.id = service.new_request_id()
        self._began = time.monotonic()
        self.deadline = self._began + service.settings.seconds
        self.status = 0
        self.n_texts = self.n_characters = 0
        self._disconnect: asyncio.Task[Message] | None = None
        service.metrics.in_flight.inc()

    def count_texts(self, items: Sequence[Item]) -> None:
        """What the log says about the size of the request; a pair counts as one text."""
        self.n_texts, self.n_characters = len(items), 0
        for item in items:
            sides = item if isinstance(item, list) else [item]
            self.n_characters += sum(len(side) for side in sides if isinstance(side, str))

    async def send(self, message: Message) -> None:
        """ASGI's `send`, which adds the headers that every answer has."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [
                *message.get("headers", ()),
                *SECURITY_HEADERS,
                *self.extra_headers,
                (b"x-request-id", self.id.encode()),
            ]
            if is_asking_path(self.path):
                headers.append(_NO_STORE)
            if self.service.is_draining:
                headers.append(CLOSE)
            message["headers"] = headers
        await self._send(message)

    async def send_empty(self, headers: list[tuple[bytes, bytes]]) -> None:
        await self.send({"type": "http.response.start", "status": 204, "headers": headers})
        await self.send({"type": "http.response.body", "body": b""})

    async def send_problem(self, problem: ProblemError) -> None:
        body, media_type = problem.body(), MEDIA_TYPE
        if self.route == PATH:  # its clients expect errors of another shape
            body, media_type = error_body(problem), "application/json"
        headers = [
            *problem.raw_headers,
            (b"content-type", media_type.encode()),
            (b"content-length", str(len(body)).encode()),
        ]
        self.service.metrics.count_problem(problem.name)
        await self.send(
            {"type": "http.response.start", "status": problem.status, "headers": headers}
        )
        await self.send({"type": "http.response.body", "body": body})

    async def read(self, work: Callable[[], Result]) -> Result:
        """The result of work on the body.

        A short one is read at once. To read and tokenize a megabyte takes a tenth of a second and
        more: a thread does it, and others are answered meanwhile.
        """
        if len(self.body) <= _MAX_BYTES_AT_ONCE:
            return work()
        return await self.wait_for(self.service.reading_pool.submit(work))

    async def wait_for(self, future: Future[Result]) -> Result:
        """The result of work in a queue.

        The work is cancelled at the deadline, or when the client disconnects.
        """
        awaited = asyncio.wrap_future(future)
        if self._disconnect is None:
            self._disconnect = asyncio.ensure_future(self._wait_for_disconnect())
        watched: set[asyncio.Future[Any]] = {awaited, self._disconnect}
        await asyncio.wait(
            watched, timeout=self.deadline - time.monotonic(), return_when=asyncio.FIRST_COMPLETED
        )
        if awaited.done():
            return awaited.result()
        awaited.cancel()  # which cancels `future` too: nothing is computed for it
        if self._disconnect.done():
            raise ClientDisconnected
        seconds = self.service.settings.seconds
        raise ProblemError(
            "too-late",
            f"It took longer than {seconds:g} seconds. Send less at a time, or ask again when less"
            " is going on.",
        )

    async def _wait_for_disconnect(self) -> Message:
        while (message := await self._receive())["type"] != "http.disconnect":
            pass
        return message

    def finish(self) -> None:
        """Counts and logs the request."""
        if self._disconnect is not None:
            self._disconnect.cancel()
        seconds = time.monotonic() - self._began
        status = self.status or _CLIENT_DISCONNECTED
        self.service.metrics.in_flight.dec()
        self.service.metrics.count_request(self.route, status, seconds)
        self.service.log.write(
            "request",
            id=self.id,
            route=self.route,
            status=status,
            n_texts=self.n_texts,
            n_characters=self.n_characters,
            milliseconds=round(1000 * seconds, 1),
        )
