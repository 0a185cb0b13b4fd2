"""What a browser must be told before a page of another site may read an answer (CORS; Fetch
standard, section 3.2).

Only pages that `--allow-origin` names get this far.
"""

from __future__ import annotations

from collections.abc import Mapping

from litotes.service.request_context import ASKING_ROUTES

Headers = list[tuple[bytes, bytes]]

_MAX_AGE_SECONDS = b"600"


def cors_headers(origin: bytes) -> Headers:
    """For every answer to a page of this origin."""
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", b"X-Request-Id, Retry-After"),
        (b"vary", b"Origin"),
    ]


def is_preflight(method: str, headers: Mapping[bytes, bytes]) -> bool:
    """Whether the browser asks, before the request itself, if the page may send it.

    It carries no token yet.
    """
    is_asking = b"origin" in headers and b"access-control-request-method" in headers
    return method == "OPTIONS" and is_asking


def preflight_headers(path: str, headers: Mapping[bytes, bytes]) -> Headers:
    methods = b"POST" if path in ASKING_ROUTES else b"GET"
    answer = [
        (b"access-control-allow-methods", methods),
        (b"access-control-allow-headers", b"Authorization, Content-Type"),
        (b"access-control-max-age", _MAX_AGE_SECONDS),
    ]
    if b"access-control-request-private-network" in headers:  # from a public page to this machine
        answer.append((b"access-control-allow-private-network", b"true"))
    return answer
