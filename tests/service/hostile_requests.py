"""The hostile requests of hostile.toml, each with the statuses that are a proper answer to it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HOST = b"Host: 127.0.0.1\r\n"
JSON = b"Content-Type: application/json\r\n"


@dataclass(frozen=True)
class Hostile:
    """parts: bytes to send, numbers of seconds to wait. statuses: one of them must come back."""

    name: str
    parts: tuple[bytes | float, ...]
    statuses: tuple[int, ...]


def post(
    body: bytes, *, path: bytes = b"/v1/predict", headers: bytes = JSON, length: bytes | None = None
) -> bytes:
    length = str(len(body)).encode() if length is None else length
    head = b"POST " + path + b" HTTP/1.1\r\n" + HOST + headers
    return head + b"Content-Length: " + length + b"\r\n\r\n" + body


def chunked(*chunks: bytes, headers: bytes = JSON) -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))
    head = b"POST /v1/predict HTTP/1.1\r\n" + HOST + headers
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + body


def get(path: bytes, headers: bytes = b"") -> bytes:
    return b"GET " + path + b" HTTP/1.1\r\n" + HOST + headers + b"\r\n"


_PLAIN = b"POST /v1/predict HTTP/1.1\r\n" + HOST
_STAND_FOR = {b"<post>": _PLAIN + JSON, b"<plain>": _PLAIN, b"<live>": get(b"/live")[:-2]}
_STAND_FOR[b"<65535>"] = b"x" * 65_535
_REPEATED = re.compile(rb"<<(.+?)\*([0-9]+)>>", re.DOTALL)
_WAIT = re.compile(rb"<wait ([0-9.]+)>")


def _expanded(written: str) -> bytes:
    sent = written.encode("latin-1")  # one character is one byte
    for short, whole in _STAND_FOR.items():
        sent = sent.replace(short, whole)
    return _REPEATED.sub(lambda found: found[1] * int(found[2]), sent)


def _requests() -> Iterator[Hostile]:
    table = tomllib.loads(Path(__file__).with_name("hostile.toml").read_text("utf-8"))
    for kind, requests in table.items():
        for name, (written, *statuses) in requests.items():
            sent = _expanded(written)
            if kind.startswith("POST"):
                sent = post(sent, path=kind.removeprefix("POST ").encode())
            elif kind == "GET":
                sent = get(sent)
            elif kind == "headers":
                sent = get(b"/live", sent)
            parts: list[bytes | float] = []
            for place, part in enumerate(_WAIT.split(sent)):
                parts.append(float(part) if place % 2 else part)
            yield Hostile(name, tuple(parts), tuple(statuses))


HOSTILE = list(_requests())
