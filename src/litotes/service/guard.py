"""Stands between the server and the app: who may ask, how much may be sent, what is refused.

    Host, Origin → token → codings, content type, length → room in the queue → the body, within its
    limits → the app → an answer with its headers, or a problem; a line in the log

When the queue is full, a request is refused before its body is read; the server's parser drops the
rest of it.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import time
from collections.abc import Callable, MutableMapping, Sequence
from concurrent.futures import Future
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Network, ip_address
from typing import Any, TypeVar

from starlette.types import ASGIApp, Message, Receive, Send

from litotes.service.problems import INFERENCE_PATH, Headers, ProblemError, QueueFull
from litotes.service.settings import ServiceSettings
from litotes.service.state import Service

Result = TypeVar("Result")

SECURITY_HEADERS: Headers = [
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
_CLIENT_DISCONNECTED = 499
"""The status logged for a client that did not wait for its answer; it is never sent."""

_MAX_BYTES_AT_ONCE = 2048
"""Of a body that takes hardly longer to read than to hand to a thread and back."""

_BYTES_PER_PIECE, _USUAL_BYTES = 5, 200
"""Of a body, roughly: its pieces are counted when it has been read. The length is not known where
it comes in chunks.
"""

_POSTED = ("/v1/predict", "/v1/explain", INFERENCE_PATH)
_ROUTES = frozenset(("/", "/live", "/ready", "/metrics", "/openapi.json", "/v1/models", *_POSTED))
_SINGLE_HEADERS = frozenset(
    (
        b"host",
        b"origin",
        b"authorization",
        b"content-type",
        b"content-length",
        b"content-encoding",
        b"transfer-encoding",
    )
)
"""The headers that are read here.

If one comes twice, a proxy in front may have acted on the other one.
"""

_HOST = re.compile(rb"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::[0-9]{0,5})?")


class ClientDisconnected(Exception):
    """The client closed the connection before it was answered."""


def _is_private(path: str) -> bool:
    """Tells whether the answer must not be stored."""
    return path.startswith("/v1/") or path == INFERENCE_PATH


def needs_token(path: str) -> bool:
    return _is_private(path) or path == "/metrics"


@lru_cache(maxsize=4096)
def client_of(address: str) -> str:
    """Names who asks, for fair shares: an address; of IPv6 its network, of which one machine may
    have all addresses.
    """
    try:
        parsed = ip_address(address)
    except ValueError:  # a socket without an address
        return address
    if isinstance(parsed, IPv4Address):
        return address
    return str(parsed.ipv4_mapped or IPv6Network((int(parsed), 64), strict=False))


@lru_cache(maxsize=256)  # most requests name the same host
def _is_own_host(settings: ServiceSettings, host: bytes) -> bool:
    """The name without its port must be one of the service; [::1]:8000 is named ::1."""
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    address, name = match.groups()
    return settings.allows_host((address or name.rstrip(b".")).decode().lower())


class GuardedRequest:
    """A request from its first line to the last byte of its answer: its id, its deadline, what is
    counted and logged about it.
    """

    def __init__(
        self, service: Service, scope: MutableMapping[str, Any], receive: Receive, send: Send
    ) -> None:
        self.service, self.settings = service, service.settings
        self._scope, self._receive, self._send = scope, receive, send
        self.path: str = scope["path"]
        # a path as it was sent is never logged
        named = "/page/{name}" if self.path.startswith("/page/") else "unknown"
        self.route = self.path if self.path in _ROUTES else named
        self.client = client_of((scope.get("client") or ("",))[0])
        self.id, self._began = service.new_request_id(), time.monotonic()
        self.deadline = self._began + self.settings.seconds
        self.headers: dict[bytes, bytes] = {}
        self.body, self._extra_headers = b"", [(b"x-request-id", self.id.encode())]
        self._status = self._n_texts = self._n_characters = 0
        self._disconnect: asyncio.Task[Message] | None = None

    async def answer(self, app: ASGIApp) -> None:
        """Turns every exception into an answer."""
        self.service.metrics["requests_in_flight"].inc()
        try:
            self._read_headers()
            self._check_sender()
            if self._is_preflight():
                await self._send_all(204, self._preflight_headers(), b"")
                return
            self._check_token()
            self._check_body_headers()
            if self._scope["method"] == "POST" and self.route in _POSTED:
                self._check_queue()
                self.body = await self._read_body()
            self._scope.setdefault("state", {})["guarded"] = self
            await app(self._scope, self._receive, self._send_message)
        except ClientDisconnected:
            pass
        except ProblemError as problem:
            await self._send_problem(problem)
        except Exception as error:
            self.service.log.write_error("bug", error, id=self.id, route=self.route)
            if self._status:  # half an answer has been sent: the server closes the connection
                raise
            sentence = "This is our mistake, not yours. Please report it with the request id"
            await self._send_problem(ProblemError("bug", f"{sentence} {self.id}."))
        finally:
            self._finish()

    # Who asks

    def _read_headers(self) -> None:
        for name, value in self._scope["headers"]:
            if name in self.headers and name in _SINGLE_HEADERS:
                sentence = f"The header {name.decode()} was sent twice. Send it once."
                raise ProblemError("bad-http", sentence, Connection="close")
            self.headers[name] = value

    def _check_sender(self) -> None:
        """Guards against DNS rebinding, a name of another site that now points at this machine; and
        against pages of other sites that send requests with their visitor's rights.
        """
        host = self.headers.get(b"host", b"")
        if not _is_own_host(self.settings, host):
            raise ProblemError(
                "host-not-allowed",
                "Ask under a name of this service; `litotes serve --allow-host NAME` adds one.",
            )
        origin = self.headers.get(b"origin")
        if origin is None:
            return
        if origin.decode("latin-1") in self.settings.allowed_origins:
            # the browser lets the page read the answer (CORS; Fetch standard, section 3.2)
            self._extra_headers += [
                (b"access-control-allow-origin", origin),
                (b"access-control-expose-headers", b"X-Request-Id, Retry-After"),
                (b"vary", b"Origin"),
            ]
            return
        # the scheme may differ from ours: a proxy may speak TLS for us
        scheme, _, authority = origin.partition(b"://")
        if scheme not in (b"http", b"https") or authority.lower() != host.lower():
            raise ProblemError(
                "origin-not-allowed",
                "Open this service's own page; `litotes serve --allow-origin ORIGIN` lets others"
                " ask.",
            )

    def _is_preflight(self) -> bool:
        """Tells whether a browser asks, before the request itself, if the page may send it.

        It carries no token yet.
        """
        asked = self.headers.keys() >= {b"origin", b"access-control-request-method"}
        return asked and self._scope["method"] == "OPTIONS"

    def _preflight_headers(self) -> Headers:
        answer = [
            (b"access-control-allow-methods", b"POST" if self.path in _POSTED else b"GET"),
            (b"access-control-allow-headers", b"Authorization, Content-Type"),
            (b"access-control-max-age", b"600"),
        ]
        if b"access-control-request-private-network" in self.headers:  # from a public page
            answer.append((b"access-control-allow-private-network", b"true"))
        return answer

    def _check_token(self) -> None:
        token = self.settings.token
        if token is None or not needs_token(self.path):
            return
        scheme, _, given = self.headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(given.strip(), token.encode()):
            sentence = (
                "Send the header `Authorization: Bearer TOKEN`, with the token this service was"
                " started with."
            )
            raise ProblemError("wrong-token", sentence, WWW_Authenticate="Bearer")

    # How much is sent

    def _check_body_headers(self) -> None:
        """A body that is packed would be taken for what is in it, and a small one may hold a
        large. A Content-Length that is small proves nothing.
        """
        if self._header(b"transfer-encoding", b"chunked") != b"chunked":
            sentence = "The only transfer coding known here is `chunked`. Send the body as it is."
            raise ProblemError("unknown-coding", sentence, Connection="close")
        if self._header(b"content-encoding", b"identity") != b"identity":
            sentence = "Send the body as it is, without `Content-Encoding`."
            raise ProblemError("wrong-content-type", sentence)
        self._check_length(int(self.headers.get(b"content-length", b"0")))

    def _header(self, name: bytes, usual: bytes) -> bytes:
        return self.headers.get(name, usual).strip().lower()

    def _check_length(self, n_bytes: int) -> None:
        most = self.settings.max_body_bytes
        if n_bytes > most:
            sentence = f"A body may have {most:,} bytes. Send fewer texts at a time."
            raise ProblemError("too-large", sentence, Connection="close")

    def _check_queue(self) -> None:
        kind, _, _ = self._header(b"content-type", b"").partition(b";")
        if kind.strip() != b"application/json":
            raise ProblemError(
                "wrong-content-type", "Send JSON with the header `Content-Type: application/json`."
            )
        self.service.check_loaded()
        length = self.headers.get(b"content-length")
        try:
            if self.route == "/v1/explain":
                self.service.explainer.check_room(self.client)
            else:
                n_bytes = _USUAL_BYTES if length is None else int(length)
                self.service.batcher.check_room(self.client, n_bytes // _BYTES_PER_PIECE + 1)
        except QueueFull as full:
            if length is None:  # it would have to be read to its end to find the next request
                full.headers["connection"] = "close"
            raise

    async def _read_body(self) -> bytes:
        """The server's budget bounds what all bodies take together."""
        body, has_more, seconds = bytearray(), True, self.settings.body_seconds
        try:
            async with asyncio.timeout(seconds):
                while has_more:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnected
                    body += message.get("body", b"")
                    has_more = message.get("more_body", False)
                    self._check_length(len(body))
        except TimeoutError as error:
            sentence = f"The body did not arrive within {seconds:g} seconds. Send it at once."
            raise ProblemError("slow-body", sentence, Connection="close") from error
        return bytes(body)

    # What the routes ask for

    def count_texts(self, items: Sequence[object]) -> None:
        """Counts texts and characters for the log; a pair counts as one text."""
        self._n_texts = len(items)
        for item in items:
            sides = item if isinstance(item, list) else [item]
            self._n_characters += sum(len(side) for side in sides if isinstance(side, str))

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
        raise ProblemError(
            "too-late",
            f"It took longer than {self.settings.seconds:g} seconds. Send less at a time, or ask"
            " again when less is going on.",
        )

    async def _wait_for_disconnect(self) -> Message:
        while (message := await self._receive())["type"] != "http.disconnect":
            pass
        return message

    # The answer

    async def _send_message(self, message: Message) -> None:
        """ASGI's `send`, which adds the headers that every answer has."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = [*message.get("headers", ()), *SECURITY_HEADERS, *self._extra_headers]
            if _is_private(self.path):
                headers.append((b"cache-control", b"no-store"))
            if self.service.is_draining:
                headers.append((b"connection", b"close"))
            message["headers"] = headers
        await self._send(message)

    async def _send_all(self, status: int, headers: Headers, body: bytes) -> None:
        start = {"type": "http.response.start", "status": status, "headers": headers}
        await self._send_message(start)
        await self._send_message({"type": "http.response.body", "body": body})

    async def _send_problem(self, problem: ProblemError) -> None:
        self.service.metrics.count_problem(problem.name)
        await self._send_all(problem.kind.status, *problem.answer(self.route))

    def _finish(self) -> None:
        """Counts and logs the request."""
        if self._disconnect is not None:
            self._disconnect.cancel()
        seconds, status = time.monotonic() - self._began, self._status or _CLIENT_DISCONNECTED
        self.service.metrics["requests_in_flight"].dec()
        self.service.metrics.count_request(self.route, status, seconds)
        self.service.log.write(
            "request",
            id=self.id,
            route=self.route,
            status=status,
            n_texts=self._n_texts,
            n_characters=self._n_characters,
            milliseconds=round(1000 * seconds, 1),
        )
