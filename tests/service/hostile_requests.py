"""Hostile requests, each with the statuses that are a proper answer to it: the short ones from
hostile.toml, what is long or slow from here.
"""

from __future__ import annotations

import json
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
    return (
        b"POST "
        + path
        + b" HTTP/1.1\r\n"
        + HOST
        + headers
        + b"Content-Length: "
        + length
        + b"\r\n\r\n"
        + body
    )


def chunked(*chunks: bytes, headers: bytes = JSON) -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))
    return (
        b"POST /v1/predict HTTP/1.1\r\n"
        + HOST
        + headers
        + b"Transfer-Encoding: chunked\r\n\r\n"
        + body
    )


def get(
    path: bytes,
    headers: bytes = b"",
    *,
    host: bytes = HOST,
    method: bytes = b"GET",
    version: bytes = b"HTTP/1.1",
) -> bytes:
    return method + b" " + path + b" " + version + b"\r\n" + host + headers + b"\r\n"


def _text(text: str, **more: object) -> bytes:
    return json.dumps({"text": text, **more}).encode()


_LARGE: list[tuple[str, bytes, tuple[int, ...]]] = [
    ("a huge integer", b'{"text": ' + b"9" * 100_000 + b"}", (400, 422)),
    ("a hundred thousand lists", b"[" * 100_000 + b"]" * 100_000, (400, 422)),
    ("fifty thousand objects", b'{"text":' * 50_000 + b"1" + b"}" * 50_000, (400, 422)),
    ("many keys", json.dumps({f"k{n}": n for n in range(20_000)}).encode(), (422,)),
    ("isolates without end", _text("\u2066" * 500 + "tea"), (200,)),
    ("nothing but joiners", _text("\u200d" * 50), (200,)),
    ("combining marks", _text("e" + "\u0301" * 5000), (200,)),
    ("the longest word allowed", _text("a" * 10_000), (200,)),
    ("a word of a megabyte", _text("a" * 999_000), (413,)),
    ("more than a megabyte", _text("a" * 1_100_000), (413,)),
    ("65 texts", json.dumps({"texts": ["a"] * 65}).encode(), (413,)),
    ("a hundred thousand texts", json.dumps({"texts": ["a"] * 100_000}).encode(), (413,)),
    ("a model with a very long name", _text("ok", model="a" * 500_000), (404,)),
    ("pairs without end", b'{"texts": [' + b'["a","b"],' * 50_000 + b'["a","b"]]}', (413,)),
]
_LARGE_TO_EXPLAIN: list[tuple[str, bytes, tuple[int, ...]]] = [
    ("ten thousand methods", _text("ok", methods=["random"] * 10_000), (200, 422)),
    ("a long text to explain", _text("a " * 1001), (413,)),
]
_LARGE_INPUTS: list[tuple[str, bytes, tuple[int, ...]]] = [
    ("an endless list of lists", b'{"inputs": ' + b"[" * 100_000, (400, 413, 422)),
    ("empty lists without end", b'{"inputs": [' + b"[]," * 100_000 + b"[]]}", (413, 422)),
    ("lists of one without end", b'{"inputs": [' + b'["a"],' * 100_000 + b'["a"]]}', (413,)),
    ("more inputs than allowed", json.dumps({"inputs": ["a"] * 65}).encode(), (413,)),
    ("a long input", json.dumps({"inputs": "a " * 5000}).encode(), (413,)),
]

_OK = b'{"text": "ok"}'
_PLAIN = b"POST /v1/predict HTTP/1.1\r\n" + HOST
_CHUNKED = _PLAIN + JSON + b"Transfer-Encoding: chunked\r\n\r\n"
_MANY_HEADERS = b"".join(b"X-%d: 1\r\n" % n for n in range(10_000))
_DRIPS = tuple(part for byte in _OK[:12] for part in (bytes([byte]), 0.25))
_SLOW_OR_LONG: list[tuple[str, tuple[bytes | float, ...], tuple[int, ...]]] = [
    ("a long path", (get(b"/" + b"a" * 40_000),), (431,)),
    (
        "chunks without end",
        (_CHUNKED, *([b"ffff\r\n" + b"x" * 65_535 + b"\r\n"] * 40)),
        (413,),
    ),
    (
        "a chunk with a long extension",
        (_CHUNKED + b"5;" + b"x" * 200_000 + b"\r\n",),
        (400, 408, 413),
    ),
    ("a body that is late", (post(b"", length=b"14"), _OK[:3], 3.0), (408,)),
    ("a body that drips", (post(b"", length=b"14"), *_DRIPS), (408,)),
    ("ten thousand headers", (get(b"/live", _MANY_HEADERS),), (431,)),
    ("a header of a megabyte", (get(b"/live", b"X-Test: " + b"a" * 1_000_000 + b"\r\n"),), (431,)),
    ("a header that does not end", (get(b"/live")[:-2] + b"X-Test: " + b"a" * 60_000,), (431,)),
    (
        "cookies by the kilobyte",
        (get(b"/live", b"Cookie: " + b"a=b; " * 5000 + b"\r\n"),),
        (200, 431),
    ),
    (
        "a thousand ranges",
        (get(b"/page/index.html", b"Range: bytes=" + b"0-0," * 1000 + b"1-1\r\n"),),
        (200,),
    ),
    (
        "continue first",
        (post(b"", headers=JSON + b"Expect: 100-continue\r\n", length=b"14"), 0.2, _OK),
        (200,),
    ),
    ("nothing but noise", (bytes(range(256)) * 20,), (400,)),
]


def _small() -> Iterator[Hostile]:
    table = tomllib.loads(Path(__file__).with_name("hostile.toml").read_text("utf-8"))
    stand_for = {b"<post>": _PLAIN + JSON, b"<plain>": _PLAIN, b"<live>": get(b"/live")[:-2]}
    for kind, requests in table.items():
        for name, (written, *statuses) in requests.items():
            sent = written.encode("latin-1")  # one character is one byte
            if kind.startswith("POST"):
                sent = post(sent, path=kind.removeprefix("POST ").encode())
            elif kind == "GET":
                sent = get(sent)
            elif kind == "headers":
                sent = get(b"/live", sent)
            for short, whole in stand_for.items():
                sent = sent.replace(short, whole)
            yield Hostile(name, (sent,), tuple(statuses))


HOSTILE = [
    *_small(),
    *(Hostile(name, parts, statuses) for name, parts, statuses in _SLOW_OR_LONG),
    *(Hostile(name, (post(body),), statuses) for name, body, statuses in _LARGE),
    *(
        Hostile(name, (post(body, path=path),), statuses)
        for path, table in ((b"/v1/explain", _LARGE_TO_EXPLAIN), (b"/predict", _LARGE_INPUTS))
        for name, body, statuses in table
    ),
]
