"""Every failure is one JSON object (RFC 9457) with a sentence that says what to do.

It never repeats what was sent.

{"type": "urn:litotes:problem:NAME", "title": …, "status": N, "detail": …}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

from starlette.exceptions import HTTPException
from starlette.requests import Request

from litotes.core.json_text import to_json

MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True)
class ProblemKind:
    """One way a request can fail."""

    status: int
    title: str


PROBLEM_KINDS: dict[str, ProblemKind] = {
    "bad-http": ProblemKind(400, "Not a proper HTTP request"),
    "bad-json": ProblemKind(400, "Not a JSON object"),
    "wrong-token": ProblemKind(401, "The token is missing or wrong"),
    "host-not-allowed": ProblemKind(403, "Not asked under a name of this service"),
    "origin-not-allowed": ProblemKind(403, "Asked by a page from elsewhere"),
    "unknown-path": ProblemKind(404, "There is nothing here"),
    "unknown-model": ProblemKind(404, "There is no such model"),
    "unknown-variety": ProblemKind(404, "The model was not calibrated for this variety"),
    "unknown-task": ProblemKind(404, "The model does not answer this task"),
    "wrong-method": ProblemKind(405, "Another method is needed"),
    "slow-body": ProblemKind(408, "The request came too slowly"),
    "too-large": ProblemKind(413, "Larger than this service takes"),
    "wrong-content-type": ProblemKind(415, "Not sent as JSON"),
    "wrong-shape": ProblemKind(422, "JSON of another shape"),
    "unreadable-text": ProblemKind(422, "A text that cannot be read"),
    "busy": ProblemKind(429, "Too much is waiting"),
    "huge-headers": ProblemKind(431, "The headers are too large"),
    "bug": ProblemKind(500, "A bug in the service"),
    "unknown-coding": ProblemKind(501, "A transfer coding that is not known here"),
    "loading": ProblemKind(503, "The models are being loaded"),
    "draining": ProblemKind(503, "The service is stopping"),
    "too-late": ProblemKind(504, "Not answered in time"),
}


class ProblemError(Exception):
    """Raised to answer a request with a problem. headers: those of the answer."""

    def __init__(self, name: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.name, self.detail, self.headers = name, detail, headers or {}

    @property
    def status(self) -> int:
        return PROBLEM_KINDS[self.name].status

    @property
    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        """Its headers in the form of ASGI."""
        return [(name.lower().encode(), value.encode()) for name, value in self.headers.items()]

    def as_json(self) -> dict[str, str | int]:
        kind = PROBLEM_KINDS[self.name]
        return {
            "type": f"urn:litotes:problem:{self.name}",
            "title": kind.title,
            "status": kind.status,
            "detail": self.detail,
        }

    def body(self) -> bytes:
        return _problem_body(self.name, self.detail)


@lru_cache(maxsize=64)  # an overloaded service sends the same few over and over
def _problem_body(name: str, detail: str) -> bytes:
    return to_json(ProblemError(name, detail).as_json()).encode()


def bug_error(request_id: str) -> ProblemError:
    return ProblemError(
        "bug", f"This is our mistake, not yours. Please report it with the request id {request_id}."
    )


def queue_full_error(seconds: int, *, close_connection: bool = False) -> ProblemError:
    """seconds: until the client may try again.

    close_connection: for a request whose body is of unknown length and will not be read.
    """
    headers = {"Retry-After": str(seconds)}
    if close_connection:
        headers["Connection"] = "close"
    plural = "" if seconds == 1 else "s"
    return ProblemError("busy", f"Ask again in {seconds} second{plural}.", headers)


async def reraise(request: Request, error: Exception) -> NoReturn:
    """Starlette is not to answer a bug: the middleware around it does."""
    raise error


async def raise_http_problem(request: Request, error: Exception) -> NoReturn:
    """For Starlette's own errors: unknown path, wrong method.

    The middleware answers what is raised here.
    """
    assert isinstance(error, HTTPException)
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    if error.status_code == 404:
        raise ProblemError("unknown-path", "GET /openapi.json lists the paths there are.")
    if error.status_code == 405:
        raise ProblemError(
            "wrong-method", f"This path takes {headers.get('allow', 'another method')}.", headers
        )
    raise error


_MAX_SENTENCES = 3
_KEYS = frozenset(
    (
        "text",
        "texts",
        "pair",
        "model",
        "variety",
        "task",
        "method",
        "methods",
        "faithfulness",
        "inputs",
        "truncate",
        "truncation_direction",
        "raw_scores",
    )
)
"""What a request may have; any other key is not repeated."""
_FAULTS = {
    "missing": "is missing",
    "flat_type": "is a number or an object, which nothing here is",
    "string_type": "must be a string",
    "surrogate": "holds half of a surrogate pair, which is no character",
    "blank": "is blank: there is nothing to read",
    "pair_length": "is a list, and not of two texts",
    "sides_length": "is a list, and not of one text or two",
    "inputs_type": "must be a string or a list",
    "too_short": "is empty",
    "too_long": "has more items than there are to ask for",
    "list_type": "must be a list",
    "bool_type": "must be true or false",
    "unknown_method": "is none of the methods that GET /v1/models lists",
    "unknown_direction": "must be Right: texts are cut at their end",
    "model_attributes_type": "must be a JSON object",
}


def wrong_shape_error(faults: Sequence[tuple[str, Sequence[str | int]]]) -> ProblemError:
    """faults: the kind of each, in the words of pydantic, and its place.

    The messages of pydantic may repeat what was sent; ours are made from these two alone.
    """
    sentences = [_sentence(kind, place) for kind, place in faults[:_MAX_SENTENCES]]
    n_more = len(faults) - _MAX_SENTENCES
    if n_more > 0:
        sentences.append(f"And {n_more} more.")
    sentences.append("GET /openapi.json describes what is asked for.")
    return ProblemError("wrong-shape", " ".join(sentences))


def _sentence(kind: str, place: Sequence[str | int]) -> str:
    if kind == "extra_forbidden" or (place and place[0] not in _KEYS):
        return "There is a key that is not known here, or `text` or `pair` beside `texts`."
    field = f"`{'.'.join(map(str, place))}`" if place else "The body"
    return f"{field} {_FAULTS.get(kind, 'is not of the right form')}."
