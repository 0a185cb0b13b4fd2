"""Every failure is one JSON object (RFC 9457) with a sentence that says what to do.

It never repeats what was sent.

{"type": "urn:litotes:problem:NAME", "title": …, "status": N, "detail": …}
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from litotes.core.json_text import to_json

MEDIA_TYPE = "application/problem+json"
INFERENCE_PATH = "/predict"
"""The route for clients of text-embeddings-inference, which expect errors of another shape."""

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class ProblemKind:
    """One way a request can fail. error_type: its name in text-embeddings-inference."""

    status: int
    title: str
    error_type: str = "Validation"


def read_facts(name: str) -> dict[str, dict[str, Any]]:
    """A table of this package, a row under each name."""
    return tomllib.loads((files("litotes.service") / name).read_text("utf-8"))


PROBLEM_KINDS = {name: ProblemKind(**own) for name, own in read_facts("problems.toml").items()}


class ProblemError(Exception):
    """Raised to answer a request with a problem. headers: those of the answer."""

    def __init__(self, name: str, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.name, self.detail, self.kind = name, detail, PROBLEM_KINDS[name]
        self.headers = {key.replace("_", "-").lower(): value for key, value in headers.items()}

    def as_json(self) -> dict[str, str | int]:
        return {
            "type": f"urn:litotes:problem:{self.name}",
            "title": self.kind.title,
            "status": self.kind.status,
            "detail": self.detail,
        }

    def answer(self, route: str = "") -> tuple[Headers, bytes]:
        """The headers and the body to answer with, in the shape that clients of the route know."""
        content: Mapping[str, object] = self.as_json()
        media_type = MEDIA_TYPE
        if route == INFERENCE_PATH:
            media_type = "application/json"
            content = {
                "error": f"{self.kind.title}. {self.detail}",
                "error_type": self.kind.error_type,
            }
        body = to_json(content).encode()
        headers = {**self.headers, "content-type": media_type, "content-length": str(len(body))}
        return [(name.encode(), value.encode()) for name, value in headers.items()], body


class QueueFull(ProblemError):
    """There is no room for a request now. seconds: until there may be."""

    def __init__(self, seconds: int = 1, detail: str = "", **headers: str) -> None:
        plural = "" if seconds == 1 else "s"
        sentence = f"{detail}Ask again in {seconds} second{plural}."
        super().__init__("busy", sentence, Retry_After=str(seconds), **headers)


def overloaded() -> QueueFull:
    """Answers what is sent when all connections together hold too much."""
    return QueueFull(detail="Server overloaded. ")


def wrong_shape(*faults: str) -> ProblemError:
    """faults: sentences; the first three are told."""
    sentences = list(faults[:3])
    if len(faults) > len(sentences):
        sentences.append(f"And {len(faults) - len(sentences)} more.")
    sentences.append("GET /openapi.json describes what is asked for.")
    return ProblemError("wrong-shape", " ".join(sentences))
