"""Hostile requests, each with the statuses that are a proper answer to it."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass

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


_OK = b'{"text": "ok"}'
_JSON_BODIES: list[tuple[str, bytes, tuple[int, ...]]] = [
    ("empty body", b"", (422,)),
    ("half an object", b'{"text": "a"', (400,)),
    ("half a string", b'{"text": "a', (400,)),
    ("two documents", _OK + _OK, (400,)),
    ("null", b"null", (422,)),
    ("a number", b"5", (422,)),
    ("a string", b'"text"', (422,)),
    ("an empty list", b"[]", (422,)),
    ("an empty object", b"{}", (422,)),
    ("NaN", b'{"text": NaN}', (400, 422)),
    ("infinity", b'{"text": -Infinity}', (400, 422)),
    ("a huge exponent", b'{"text": 1e999999}', (400, 422)),
    ("a huge integer", b'{"text": ' + b"9" * 100_000 + b"}", (400, 422)),
    ("a hundred thousand lists", b"[" * 100_000 + b"]" * 100_000, (400, 422)),
    ("fifty thousand objects", b'{"text":' * 50_000 + b"1" + b"}" * 50_000, (400, 422)),
    ("the same key twice", b'{"text": "a", "text": "b"}', (200,)),
    ("many keys", json.dumps({f"k{n}": n for n in range(20_000)}).encode(), (422,)),
    ("prototype", b'{"__proto__": {"x": 1}, "text": "ok"}', (422,)),
    ("class", b'{"text": "ok", "__class__": "os.system"}', (422,)),
    ("half a surrogate pair", b'{"text": "\\ud83d"}', (422,)),
    ("surrogates the wrong way round", b'{"text": "a \\udc00\\ud800"}', (422,)),
    ("surrogates in a model name", b'{"text": "ok", "model": "\\ud800"}', (404, 422)),
    ("not UTF-8", b'{"text": "\xff\xfe\xc0\xaf"}', (400,)),
    ("overlong UTF-8", b'{"text": "\xc0\xae\xc0\xae/"}', (400,)),
    ("UTF-16", '{"text": "ok"}'.encode("utf-16"), (200, 400)),
    ("a byte order mark", b"\xef\xbb\xbf" + _OK, (200, 400)),
    ("a raw control character", b'{"text": "a\x00b"}', (400,)),
    ("gzip without a header for it", gzip.compress(_OK), (400,)),
    ("right to left override", _text("\u202e great \u202c"), (200,)),
    ("isolates without end", _text("\u2066" * 500 + "tea"), (200,)),
    ("control characters", _text("\x00\x01\x1b[31m tea \x7f\x9b"), (200,)),
    ("invisible characters", _text("\u200b\u200d\ufeff tea"), (200,)),
    ("nothing but joiners", _text("\u200d" * 50), (200,)),
    ("combining marks", _text("e" + "\u0301" * 5000), (200,)),
    ("markup", _text("<script>alert(1)</script> ${7*7} {{7*7}} %s %n '; DROP TABLE x; --"), (200,)),
    ("the longest word allowed", _text("a" * 10_000), (200,)),
    ("a word of a megabyte", _text("a" * 999_000), (413,)),
    ("more than a megabyte", _text("a" * 1_100_000), (413,)),
    ("65 texts", json.dumps({"texts": ["a"] * 65}).encode(), (413,)),
    ("a hundred thousand texts", json.dumps({"texts": ["a"] * 100_000}).encode(), (413,)),
    ("no texts", b'{"texts": []}', (422,)),
    ("blank text", _text(" \t\u2003\n"), (422,)),
    ("texts in texts", b'{"texts": [["a"]]}', (422,)),
    ("texts that are none", b'{"texts": [null, true, 1e999, -0, "", "\\ud83d"]}', (200,)),
    ("both", b'{"text": "a", "texts": ["b"]}', (422,)),
    ("a text that is true", b'{"text": true}', (422,)),
    ("a model by its path", _text("ok", model="../../../../etc/passwd"), (404,)),
    ("a model by a whole path", _text("ok", model="/etc/passwd"), (404,)),
    ("a model from a file address", _text("ok", model="file:///etc/passwd"), (404,)),
    (
        "a model from the network",
        _text("ok", model="http://169.254.169.254/latest/meta-data"),
        (404,),
    ),
    ("a model from the Hub", _text("ok", model="someone/something"), (404,)),
    ("a model with a null byte", _text("ok", model="tiny\x00"), (404,)),
    ("a model with a very long name", _text("ok", model="a" * 500_000), (404,)),
    ("a model that is a number", b'{"text": "ok", "model": 1}', (422,)),
]

_EXPLAIN: list[tuple[str, bytes, tuple[int, ...]]] = [
    ("a method by its path", _text("ok", method="../../etc/passwd"), (422,)),
    ("a task that is none", _text("ok", task="__init__"), (404,)),
    (
        "ten thousand methods",
        json.dumps({"text": "ok", "methods": ["random"] * 10_000}).encode(),
        (200, 422),
    ),
    ("a long text to explain", _text("a " * 1001), (413,)),
    ("nothing to explain", _text("\u200d\x01"), (200, 422)),
    ("words to say yes with", b'{"text": "ok", "faithfulness": "true"}', (422,)),
]

_PATHS: list[tuple[str, bytes, tuple[int, ...]]] = [
    ("up and away", b"/../../../../etc/passwd", (404,)),
    ("up from the page", b"/page/../../../../etc/passwd", (404,)),
    ("up in per cent", b"/page/%2e%2e%2f%2e%2e%2fetc%2fpasswd", (404,)),
    ("up in per cent twice", b"/page/%252e%252e%252fetc%252fpasswd", (404,)),
    ("up with backslashes", b"/page/..%5c..%5cetc%5cpasswd", (404,)),
    ("source of the package", b"/page/../app.py", (404,)),
    ("a null byte", b"/page/index.html%00.js", (404,)),
    ("two slashes", b"//etc/passwd", (404,)),
    ("a slash too many", b"/v1/models/", (404,)),
    ("capitals", b"/V1/MODELS", (404,)),
    ("a semicolon", b"/metrics;/live", (404,)),
    ("a wrong per cent", b"/%zz%", (404,)),
    ("not ASCII", b"/\xff\xfe", (400, 404)),
    ("a query full of dots", b"/live?file=../../etc/passwd", (200,)),
    ("a fragment", b"/live#../../etc/passwd", (200, 400)),
    ("a long path", b"/" + b"a" * 40_000, (431,)),
    ("an absolute target", b"http://evil.example/live", (200, 400)),
    ("a target without a slash", b"live", (400,)),
    ("another scheme", b"file:///etc/passwd", (400, 404)),
]

_CHUNKED = b"POST /v1/predict HTTP/1.1\r\n" + HOST + JSON + b"Transfer-Encoding: chunked\r\n"
_HTTP: list[tuple[str, tuple[bytes | float, ...], tuple[int, ...]]] = [
    ("chunks", (chunked(_OK[:5], _OK[5:]),), (200,)),
    ("one byte a chunk", (chunked(*(bytes([byte]) for byte in _OK)),), (200,)),
    (
        "chunks without end",
        (_CHUNKED + b"\r\n", *([b"ffff\r\n" + b"x" * 65_535 + b"\r\n"] * 40)),
        (413,),
    ),
    ("a chunk of a size that is none", (_CHUNKED + b"\r\nxyz\r\n",), (400,)),
    ("a chunk of a negative size", (_CHUNKED + b"\r\n-5\r\n",), (400,)),
    ("a chunk of a huge size", (_CHUNKED + b"\r\nffffffffffffffffff\r\n",), (400,)),
    (
        "a chunk with a long extension",
        (_CHUNKED + b"\r\n5;" + b"x" * 200_000 + b"\r\n",),
        (400, 408, 413),
    ),
    ("length and chunks", (post(_OK, headers=JSON + b"Transfer-Encoding: chunked\r\n"),), (400,)),
    (
        "chunks and length",
        (_CHUNKED + b"Content-Length: 4\r\n\r\n0\r\n\r\nGET /live HTTP/1.1\r\n\r\n",),
        (400,),
    ),
    ("two lengths", (post(_OK, headers=JSON + b"Content-Length: 5\r\n"),), (400,)),
    (
        "an unknown coding",
        (_CHUNKED.replace(b"chunked", b"chunked, identity") + b"\r\n" + _OK,),
        (400,),
    ),
    (
        "a coding with a trick",
        (_CHUNKED.replace(b"chunked", b"\x0bchunked") + b"\r\n" + _OK,),
        (400,),
    ),
    ("a negative length", (post(_OK, length=b"-1"),), (400,)),
    ("a length with a sign", (post(_OK, length=b"+14"),), (400,)),
    ("a length in hexadecimal", (post(_OK, length=b"0xe"),), (400,)),
    ("a length beyond all numbers", (post(_OK, length=b"9" * 60),), (400, 413)),
    ("a length of a terabyte", (post(_OK, length=b"1000000000000"),), (413,)),
    ("a body that is late", (post(b"", length=b"14"), _OK[:3], 3.0), (408,)),
    (
        "a body that drips",
        (post(b"", length=b"14"), *(part for byte in _OK[:12] for part in (bytes([byte]), 0.25))),
        (408,),
    ),
    ("a header with a blank before its colon", (get(b"/live", b"X-Test : 1\r\n"),), (400,)),
    ("a folded header", (get(b"/live", b"X-Test: 1\r\n folded\r\n"),), (200, 400)),
    ("a null byte in a header", (get(b"/live", b"X-Test: a\x00b\r\n"),), (400,)),
    ("lines that end in one character", (get(b"/live").replace(b"\r\n", b"\n"),), (200, 400)),
    ("a header without a name", (get(b"/live", b": 1\r\n"),), (400,)),
    (
        "ten thousand headers",
        (get(b"/live", b"".join(b"X-%d: 1\r\n" % n for n in range(10_000))),),
        (431,),
    ),
    ("a header of a megabyte", (get(b"/live", b"X-Test: " + b"a" * 1_000_000 + b"\r\n"),), (431,)),
    ("a header that does not end", (get(b"/live")[:-2] + b"X-Test: " + b"a" * 60_000,), (431,)),
    (
        "cookies by the kilobyte",
        (get(b"/live", b"Cookie: " + b"a=b; " * 5000 + b"\r\n"),),
        (200, 431),
    ),
    ("no host", (get(b"/live", host=b""),), (400, 403)),
    ("two hosts", (get(b"/live", b"Host: evil.example\r\n"),), (400,)),
    ("another host", (get(b"/live", host=b"Host: evil.example\r\n"),), (403,)),
    ("a host inside a name", (get(b"/live", host=b"Host: 127.0.0.1.evil.example\r\n"),), (403,)),
    (
        "a host before an at sign",
        (get(b"/live", host=b"Host: 127.0.0.1@evil.example\r\n"),),
        (403,),
    ),
    ("another origin", (get(b"/v1/models", b"Origin: http://evil.example\r\n"),), (403,)),
    ("no origin that has a name", (get(b"/v1/models", b"Origin: null\r\n"),), (403,)),
    (
        "forwarded for another host",
        (get(b"/live", b"X-Forwarded-Host: evil.example\r\nX-Forwarded-For: 1.2.3.4\r\n"),),
        (200,),
    ),
    (
        "a rewritten address",
        (get(b"/live", b"X-Original-URL: /metrics\r\nX-Rewrite-URL: /metrics\r\n"),),
        (200,),
    ),
    (
        "another method in a header",
        (post(_OK, headers=JSON + b"X-HTTP-Method-Override: DELETE\r\n"),),
        (200,),
    ),
    (
        "a thousand ranges",
        (get(b"/page/index.html", b"Range: bytes=" + b"0-0," * 1000 + b"1-1\r\n"),),
        (200,),
    ),
    ("conditions", (get(b"/", b"If-None-Match: *\r\nIf-Modified-Since: yesterday\r\n"),), (200,)),
    (
        "announced gzip",
        (post(gzip.compress(_OK), headers=JSON + b"Content-Encoding: gzip\r\n"),),
        (400, 415),
    ),
    (
        "a form",
        (post(b"text=ok", headers=b"Content-Type: application/x-www-form-urlencoded\r\n"),),
        (415,),
    ),
    (
        "parts",
        (post(b"--x--", headers=b"Content-Type: multipart/form-data; boundary=x\r\n"),),
        (415,),
    ),
    ("plain text", (post(_OK, headers=b"Content-Type: text/plain\r\n"),), (415,)),
    ("no content type", (post(_OK, headers=b""),), (415,)),
    (
        "pickle",
        (post(b"\x80\x04.", headers=b"Content-Type: application/octet-stream\r\n"),),
        (415,),
    ),
    (
        "another alphabet",
        (post(_OK, headers=b"Content-Type: application/json; charset=utf-7\r\n"),),
        (200, 415),
    ),
    (
        "continue first",
        (post(b"", headers=JSON + b"Expect: 100-continue\r\n", length=b"14"), 0.2, _OK),
        (200,),
    ),
    ("expect a miracle", (post(_OK, headers=JSON + b"Expect: miracle\r\n"),), (200, 417)),
    (
        "a web socket",
        (
            get(
                b"/v1/predict",
                b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n",
            ),
        ),
        (400, 405),
    ),
    (
        "HTTP/2 by upgrade",
        (
            get(
                b"/live",
                b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n",
            ),
        ),
        (200, 400),
    ),
    ("HTTP/2 at once", (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",), (400,)),
    ("HTTP/9", (get(b"/live", version=b"HTTP/9.9"),), (400,)),
    ("no version", (b"GET /live\r\n\r\n",), (400, 403)),
    (
        "another protocol",
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100,),
        (400,),
    ),
    ("a proxy's request", (get(b"evil.example:443", method=b"CONNECT"),), (400, 405)),
    ("trace", (get(b"/live", method=b"TRACE"),), (405,)),
    ("options of everything", (get(b"*", method=b"OPTIONS"),), (400, 404)),
    ("an unknown method", (get(b"/live", method=b"BREW"),), (400, 405)),
    ("delete a model", (get(b"/v1/models", method=b"DELETE"),), (405,)),
    ("a get with a body", (get(b"/live", b"Content-Length: 4\r\n") + b"body",), (200,)),
    ("nothing but noise", (bytes(range(256)) * 20,), (400,)),
    ("blank lines first", (b"\r\n\r\n" + get(b"/live"),), (200, 400)),
]

_TEI = [
    ("inputs in inputs", b'{"inputs": [[["a"]]]}', (422,)),
    ("an endless list of lists", b'{"inputs": ' + b"[" * 100_000, (400, 413, 422)),
    ("empty lists without end", b'{"inputs": [' + b"[]," * 100_000 + b"[]]}", (413, 422)),
    ("lists of one without end", b'{"inputs": [' + b'["a"],' * 100_000 + b'["a"]]}', (413,)),
    ("three sides", b'{"inputs": [["a", "b", "c"]]}', (422,)),
    ("sides that are none", b'{"inputs": [[null], [1e999], [true]]}', (422,)),
    ("a list that never ends", b'{"inputs": [["a"', (400,)),
    ("a comma too many", b'{"inputs": [["a",]]}', (400,)),
    ("inputs that are an object", b'{"inputs": {"a": "b"}}', (422,)),
    ("parameters", b'{"inputs": "a", "parameters": {"top_k": 1}}', (422,)),
    ("raw scores that are a word", b'{"inputs": "a", "raw_scores": "yes"}', (422,)),
    ("half a surrogate pair among inputs", b'{"inputs": ["\\ud83d", "a"]}', (422,)),
    ("more inputs than allowed", json.dumps({"inputs": ["a"] * 65}).encode(), (413,)),
    ("a long input", json.dumps({"inputs": "a " * 5000}).encode(), (413,)),
]
_PAIRS = [
    ("pairs without end", b'{"texts": [' + b'["a","b"],' * 50_000 + b'["a","b"]]}', (413,)),
    ("an object in a pair", b'{"texts": [["a", {}]]}', (422,)),
]

HOSTILE = (
    [Hostile(name, (post(body),), statuses) for name, body, statuses in _JSON_BODIES]
    + [
        Hostile(name, (post(body, path=b"/v1/explain"),), statuses)
        for name, body, statuses in _EXPLAIN
    ]
    + [Hostile(name, (post(body),), statuses) for name, body, statuses in _PAIRS]
    + [Hostile(name, (post(body, path=b"/predict"),), statuses) for name, body, statuses in _TEI]
    + [Hostile(name, (get(path),), statuses) for name, path, statuses in _PATHS]
    + [Hostile(name, parts, statuses) for name, parts, statuses in _HTTP]
)
