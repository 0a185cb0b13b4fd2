"""Ways to damage a file: bytes at random, values of JSON, cells of a table, columns of Parquet.

Every mutator takes a source of chance and what the file holds, and returns other bytes.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import random
from collections.abc import Callable
from typing import Any

Rows = list[dict[str, str]]

DEEP = 3_000
STEERING = "red\x1b[31m\x1b]0;title\x07 \x9b2J\u202eturned\rforged"

ODD_BYTES = (
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b[2J", b'"', b"'", b"\r", b"\n", b"\t", b",", b"\\",
    b"{", b"}", b"[", b"]", b"NaN", b"-Infinity", b"1e999", b"9" * 400, b"\xed\xa0\x80", b"=1+1",
    "\u202e\u2028\u200d".encode(), b"\xf0\x9f\x92", b"null", b"--", b"#", b"=",
)  # fmt: skip

ODD_CELLS = (
    "", " ", STEERING, "=1+1", "@tea", "-5", "nan", "inf", "1e999", "tea\nqueue", 'say "tea"',
    "a,b", "\u200b\u200b", "\U0001f469\u200d\U0001f527", "x" * 5_000, "positive", "POSITIVE", "2",
    "\ufeff", "train", "\x7f", "é", "ﷺ" * 50, "\u0301" * 40,
)  # fmt: skip

ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 2**31, 2**63, 2**70, -(2**70), 0.5, -0.5, 1e308, 5e-324, "",
    "tea", STEERING, "../x", "/", "\ud800", "\0", "9" * 300, [], [1], [[1]], ["tea"], [None], {},
    {"a": 1}, {"": None}, {STEERING: STEERING},
)  # fmt: skip

RAW_VALUES = ("NaN", "Infinity", "-Infinity", "1e999", "9" * 5_000, "[" * DEEP + "]" * DEEP)
"""What Python's own writer would not write."""
_HOLE = "a-hole-to-fill"


def damage_bytes(chance: random.Random, content: bytes) -> bytes:
    """A few places are flipped, cut out, doubled or filled with something odd."""
    damaged = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(damaged) + 1)
        end = min(len(damaged), start + chance.choice((1, 1, 4, 40)))
        match chance.randrange(5):
            case 0 if start < len(damaged):
                damaged[start] ^= 1 << chance.randrange(8)
            case 1:
                del damaged[start:end]
            case 2:
                damaged[start:start] = damaged[start:end]
            case 3:
                damaged[start:end] = chance.choice(ODD_BYTES)
            case _:
                damaged[start:start] = chance.choice(ODD_BYTES)
    if chance.random() < 0.1:
        del damaged[chance.randrange(len(damaged) + 1) :]
    return bytes(damaged)


def damage_json(chance: random.Random, content: bytes) -> bytes:
    """A value somewhere in the document is replaced, removed, or given another name."""
    document = json.loads(content)
    raw = None
    for _ in range(chance.randint(1, 2)):
        place, key = _random_place(chance, document)
        match chance.randrange(6):
            case 0:
                del place[key]
            case 1 if isinstance(place, dict):
                place[chance.choice(("tea", STEERING, ""))] = place.pop(key)
            case 2:
                place[key], raw = _HOLE, chance.choice(RAW_VALUES)
            case 3 if isinstance(place, dict):
                place[chance.choice(("tea", STEERING))] = chance.choice(ODD_VALUES)
            case _:
                place[key] = copy.deepcopy(chance.choice(ODD_VALUES))
        if not document:
            break
    text = json.dumps(document)
    return (text if raw is None else text.replace(f'"{_HOLE}"', raw)).encode()


def damage_json_or_bytes(chance: random.Random, content: bytes) -> bytes:
    return (damage_json if chance.random() < 0.75 else damage_bytes)(chance, content)


def _random_place(chance: random.Random, document: Any) -> tuple[Any, Any]:
    """A table or list inside the document, and a key or an index in it."""
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = chance.choice(keys)
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or chance.random() < 0.3:
            return place, key
        place = inner


def damage_rows(chance: random.Random, rows: Rows) -> Rows:
    """Some cells hold something odd, and now and then a column has another name."""
    damaged = [dict(row) for row in rows]
    for _ in range(chance.randint(1, 5)):
        row = chance.choice(damaged)
        row[chance.choice(list(row))] = chance.choice(ODD_CELLS)
    if chance.random() < 0.15:
        old, new = chance.choice(list(rows[0])), chance.choice(ODD_CELLS)
        damaged = [{new if name == old else name: row[name] for name in row} for row in damaged]
    return damaged


def write_delimited(rows: Rows, delimiter: str) -> bytes:
    written = io.StringIO()
    writer = csv.writer(written, delimiter=delimiter)
    writer.writerows([list(rows[0]), *(list(row.values()) for row in rows)])
    return written.getvalue().encode()


def write_json_lines(rows: Rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def table_bytes(chance: random.Random, rows: Rows, kind: str) -> bytes:
    """A damaged table of this kind: its cells, its bytes, or both."""
    if kind == "parquet":
        content = _parquet(chance, damage_rows(chance, rows))
        return damage_bytes(chance, content) if chance.random() < 0.3 else content
    if chance.random() < 0.7:
        rows = damage_rows(chance, rows)
    if kind in ("csv", "tsv"):
        content = write_delimited(rows, "," if kind == "csv" else "\t")
    else:
        content = write_json_lines(rows)
        if chance.random() < 0.4:
            lines = content.splitlines(keepends=True)
            place = chance.randrange(len(lines))
            lines[place] = damage_json(chance, lines[place]) + b"\n"
            content = b"".join(lines)
    return damage_bytes(chance, content) if chance.random() < 0.5 else content


def _parquet(chance: random.Random, rows: Rows) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: pa.array([row[name] for row in rows]) for name in rows[0]}
    if chance.random() < 0.6:
        columns[chance.choice(list(columns))] = chance.choice(_ODD_COLUMNS)(chance, len(rows))
    written = io.BytesIO()
    pq.write_table(pa.table(columns), written, row_group_size=chance.choice((3, 100)))
    return written.getvalue()


def _column(values: Callable[[random.Random], Any], kind: str | None = None) -> Any:
    def make(chance: random.Random, n: int) -> Any:
        import pyarrow as pa

        return pa.array([values(chance) for _ in range(n)], kind and pa.type_for_alias(kind))

    return make


def _latin_column(chance: random.Random, n: int) -> Any:
    """Texts that claim to be UTF-8 and are not."""
    import pyarrow as pa

    offsets = b"".join((4 * place).to_bytes(4, "little") for place in range(n + 1))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"caf\xe9" * n)]
    return pa.Array.from_buffers(pa.string(), n, buffers)


def _word_column(chance: random.Random, n: int) -> Any:
    import pyarrow as pa

    return pa.array([chance.choice(ODD_CELLS) for _ in range(n)]).dictionary_encode()


_ODD_COLUMNS = (
    _latin_column,
    _word_column,
    _column(lambda chance: chance.randrange(-(2**62), 2**62), "timestamp[us]"),
    _column(lambda chance: chance.randrange(2**31), "date32"),
    _column(lambda chance: chance.randrange(2**62), "duration[ns]"),
    _column(lambda chance: chance.choice((0.5, float("nan"), float("inf"), None)), "double"),
    _column(lambda chance: chance.randrange(-(2**63), 2**63), "int64"),
    _column(lambda chance: chance.choice((True, None)), "bool"),
    _column(lambda chance: b"\xff\xfe", "binary"),
    _column(lambda chance: [1, 2]),
    _column(lambda chance: {"a": STEERING}),
    _column(lambda chance: None),
    _column(lambda chance: chance.choice((None, "tea")), "string"),
)
