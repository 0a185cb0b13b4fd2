"""The middleware around the app: who may ask, how much may be sent, and what is refused at once.

    Host, Origin → token → codings, content type, length → room in the queue → the body, within its
    limits → the app

When the queue is full, a request is refused before its body is read; the server's parser drops the
rest of it.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from litotes.service.batcher import QueueFull
from litotes.service.cross_origin import cors_headers, is_preflight, preflight_headers
from litotes.service.problems import ProblemError, bug_error, queue_full_error
from litotes.service.request_body import BodyReader
from litotes.service.request_context import (
    ASKING_ROUTES,
    ClientDisconnected,
    RequestContext,
    is_asking_path,
)
from litotes.service.state import Service

Headers = Mapping[bytes, bytes]

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
"""The headers that this service reads.

If one comes twice, a proxy in front may have acted on the other one.
"""

_BYTES_PER_PIECE, _USUAL_BYTES = 5, 200
"""Of a body, roughly: its pieces are counted when it has been read. The length is not known where
it comes in chunks.
"""

_HOST = re.compile(rb"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::[0-9]{0,5})?")


class GuardMiddleware:
    """Checks requests, turns every exception into an answer and logs every request."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service, self._settings = app, service, service.settings
        self._body_reader = BodyReader(service.settings)
        # cached: most requests name the same host
        self._is_allowed_host = lru_cache(maxsize=256)(self._check_hostname)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        context = RequestContext(self._service, scope, receive, send)
        try:
            await self._answer(scope, receive, context)
        except ClientDisconnected:
            pass
        except ProblemError as problem:
            await context.send_problem(problem)
        except Exception as error:
            self._service.log.write_error("bug", error, id=context.id, route=context.route)
            if context.status:  # half an answer has been sent: the server closes the connection
                raise
            await context.send_problem(bug_error(context.id))
        finally:
            context.finish()

    async def _answer(self, scope: Scope, receive: Receive, context: RequestContext) -> None:
        headers = _read_headers(scope)
        self._check_host(headers)
        self._check_origin(headers, context)
        if is_preflight(scope["method"], headers):
            await context.send_empty(preflight_headers(scope["path"], headers))
            return
        self._check_token(scope["path"], headers)
        _check_codings(headers)
        self._body_reader.check_length(headers.get(b"content-length"))
        if scope["method"] == "POST" and context.route in ASKING_ROUTES:
            _check_content_type(headers)
            self._check_queue(context, headers)
            context.body = await self._body_reader.read(receive)
        scope.setdefault("state", {})["context"] = context
        await self._app(scope, receive, context.send)

    def _check_host(self, headers: Headers) -> None:
        """Against DNS rebinding: a name of another site that now points at this machine."""
        if not self._is_allowed_host(headers.get(b"host", b"")):
            raise ProblemError(
                "host-not-allowed",
                "Ask under a name of this service; `litotes serve --allow-host NAME` adds one.",
            )

    def _check_origin(self, headers: Headers, context: RequestContext) -> None:
        """Against pages of other sites that send requests with their visitor's rights."""
        if b"origin" not in headers:
            return
        origin = headers[b"origin"].decode("latin-1")
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._is_allowed_origin(origin, host):
            raise ProblemError(
                "origin-not-allowed",
                "Open this service's own page; `litotes serve --allow-origin ORIGIN` lets others"
                " ask.",
            )
        if origin in self._settings.allowed_origins:
            context.extra_headers += cors_headers(headers[b"origin"])

    def _check_hostname(self, host: bytes) -> bool:
        return self._settings.allows_host(_hostname(host))

    def _is_allowed_origin(self, origin: str, host: str) -> bool:
        """Whether the origin is the requested host itself or one that the settings name.

        The scheme may differ: a proxy may speak TLS for us.
        """
        if origin in self._settings.allowed_origins:
            return True
        scheme, _, authority = origin.partition("://")
        return scheme in ("http", "https") and authority.lower() == host.lower()

    def _check_token(self, path: str, headers: Headers) -> None:
        token = self._settings.token
        if token is None or not (is_asking_path(path) or path == "/metrics"):
            return
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(given.strip(), token.encode()):
            sentence = (
                "Send the header `Authorization: Bearer TOKEN`, with the token this service was"
                " started with."
            )
            raise ProblemError("wrong-token", sentence, {"WWW-Authenticate": "Bearer"})

    def _check_queue(self, context: RequestContext, headers: Headers) -> None:
        self._service.check_loaded()
        length = headers.get(b"content-length")
        try:
            if context.route != "/v1/explain":
                n_bytes = _USUAL_BYTES if length is None else int(length)
                n_pieces = n_bytes // _BYTES_PER_PIECE + 1
                self._service.batcher.check_room(context.client, n_pieces)
            else:
                self._service.explainer.check_room(context.client)
        except QueueFull as full:
            raise queue_full_error(full.seconds, close_connection=length is None) from full


def _read_headers(scope: Mapping[str, Any]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in found and name in _SINGLE_HEADERS:
            raise ProblemError(
                "bad-http",
                f"The header {name.decode()} was sent twice. Send it once.",
                {"Connection": "close"},
            )
        found[name] = value
    return found


def _hostname(host: bytes) -> str:
    """The name without its port, ::1 for [::1]:8000; empty if the header is not a host."""
    match = _HOST.fullmatch(host)
    if match is None:
        return ""
    address, name = match.groups()
    return (address or name.rstrip(b".")).decode().lower()


def _check_codings(headers: Headers) -> None:
    """A body that is packed would be taken for what is in it, and a small one may hold a large."""
    coding = headers.get(b"transfer-encoding", b"chunked").strip().lower()
    if coding != b"chunked":
        sentence = "The only transfer coding known here is `chunked`. Send the body as it is."
        raise ProblemError("unknown-coding", sentence, {"Connection": "close"})
    if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
        sentence = "Send the body as it is, without `Content-Encoding`."
        raise ProblemError("wrong-content-type", sentence)


def _check_content_type(headers: Headers) -> None:
    kind, _, _ = headers.get(b"content-type", b"").partition(b";")
    if kind.strip().lower() != b"application/json":
        raise ProblemError(
            "wrong-content-type", "Send JSON with the header `Content-Type: application/json`."
        )
