"""The thin layer around the app: who may ask, how much may be sent, and what is refused before it
costs anything.

    Host, Origin → token → content type, length → room in the queue → the body, within its limits →
    the app

When the queue is full, a request is refused before its body is read: the server's parser drops what
still comes.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from litotes.service.problems import ProblemError, bug_error
from litotes.service.request_body import BodyReader, replay_body
from litotes.service.request_context import ClientDisconnected, RequestContext
from litotes.service.state import Service

Headers = Mapping[bytes, bytes]

_ONCE = frozenset((b"host", b"origin", b"authorization", b"content-type", b"content-length"))
"""Headers that mean something here.

Whoever sends one twice may mean another one than we would read.
"""


_HOST = re.compile(rb"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::[0-9]{0,5})?")


class GuardMiddleware:
    """ASGI around ASGI.

    It also turns every exception into an answer and writes every request down.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service, self._settings = app, service, service.settings
        self._body_reader = BodyReader(service.settings)
        # most requests ask for the same one
        self._allows = lru_cache(maxsize=256)(self._allows_host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        context = RequestContext(self._service, scope, receive, send)
        try:
            await self._answer(scope, receive, context)
        except ClientDisconnected:
            pass
        except ProblemError as refusal:
            await context.refuse(refusal)
        except Exception as error:
            self._service.log.trace("bug", error, id=context.id, route=context.route)
            if context.status:  # half an answer is out: the server closes the connection
                raise
            await context.refuse(bug_error(context.id))
        finally:
            context.end()

    async def _answer(self, scope: Scope, receive: Receive, context: RequestContext) -> None:
        headers = _headers(scope)
        self._check_host(headers)
        self._check_token(scope["path"], headers)
        if scope["method"] == "POST" and context.route in ("/v1/predict", "/v1/explain"):
            _check_content_type(headers)
            self._body_reader.check_length(headers.get(b"content-length"))
            self._check_room(context.route, headers)
            receive = replay_body(await self._body_reader.read(receive), receive)
        scope.setdefault("state", {})["context"] = context
        await self._app(scope, receive, context.send)

    def _check_host(self, headers: Headers) -> None:
        """Against DNS rebinding, and against pages of other sites that ask with their visitor's
        rights.
        """
        host = headers.get(b"host", b"")
        if not self._allows(host):
            raise ProblemError(
                "host-not-allowed",
                "Ask under a name of this service; `litotes serve --allow-host NAME` adds one.",
            )
        origin = headers.get(b"origin")
        if origin is not None and not self._is_own(
            origin.decode("latin-1"), host.decode("latin-1")
        ):
            raise ProblemError(
                "origin-not-allowed",
                "Open this service's own page; `litotes serve --allow-origin ORIGIN` lets others"
                " ask.",
            )

    def _allows_host(self, host: bytes) -> bool:
        return self._settings.allows_host(_hostname(host))

    def _is_own(self, origin: str, host: str) -> bool:
        """Of this very host, whatever the scheme (a proxy may speak TLS for us), or named at the
        start.
        """
        scheme, _, place = origin.partition("://")
        return origin in self._settings.allowed_origins or (
            scheme in ("http", "https") and place.lower() == host.lower()
        )

    def _check_token(self, path: str, headers: Headers) -> None:
        token = self._settings.token
        if token is None or not (path.startswith("/v1/") or path == "/metrics"):
            return
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(given.strip(), token.encode()):
            sentence = (
                "Send the header `Authorization: Bearer TOKEN`, with the token this service was"
                " started with."
            )
            raise ProblemError("wrong-token", sentence, {"WWW-Authenticate": "Bearer"})

    def _check_room(self, route: str, headers: Headers) -> None:
        self._service.check_loaded()
        queue = self._service.batcher if route == "/v1/predict" else self._service.explainer
        if queue.is_full:
            raise queue_full_error(queue.retry_after, closes=b"content-length" not in headers)


def queue_full_error(seconds: int, *, closes: bool = False) -> ProblemError:
    """closes: the connection, where it is not known how much would still come on it."""
    sentence = f"Ask again in {seconds} second{'' if seconds == 1 else 's'}."
    return ProblemError(
        "busy",
        sentence,
        {"Retry-After": str(seconds)} | ({"Connection": "close"} if closes else {}),
    )


def _headers(scope: Mapping[str, Any]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in found and name in _ONCE:
            raise ProblemError(
                "bad-http",
                f"The header {name.decode()} was sent twice. Send it once.",
                {"Connection": "close"},
            )
        found[name] = value
    return found


def _hostname(host: bytes) -> str:
    """Without its port; of [::1]:8000 ::1. Whatever is no host has no name."""
    found = _HOST.fullmatch(host)
    return (found[1] or found[2].rstrip(b".")).decode().lower() if found else ""


def _check_content_type(headers: Headers) -> None:
    kind, _, _ = headers.get(b"content-type", b"").partition(b";")
    if kind.strip().lower() != b"application/json":
        raise ProblemError(
            "wrong-content-type", "Send JSON with the header `Content-Type: application/json`."
        )
