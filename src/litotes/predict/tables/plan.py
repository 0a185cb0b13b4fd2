"""Which rows become which part, and what they were made from: kept in `plan.json`, so that a
stopped run can go on.

A run goes on only with the input, the model and the settings it was begun with; anything else would
join answers that do not belong together, and is told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.progress import Watch
from litotes.core.storage import write_json
from litotes.data.files import Start
from litotes.data.rows import kind_of, opened_parquet
from litotes.data.spans import Span, spans_of, tables_in
from litotes.predict.tables.request import Request
from litotes.predict.tables.writing import KEY_TYPES, TEXT

PLAN = "plan.json"


@dataclass(frozen=True)
class Plan:
    """The parts in their order.

    made_from: what decides the answers. key_type: see `Answers`. stamps: size and time of each
    file, by its path.
    """

    made_from: dict[str, Any]
    key_type: str
    spans: tuple[Span, ...]
    stamps: Mapping[str, tuple[int, int]]

    @property
    def n_rows(self) -> int:
        return sum(span.n_rows for span in self.spans)

    def names(self) -> list[str]:
        """Of the files, in an order that is also the alphabet's."""
        n_digits = max(5, len(str(len(self.spans) - 1)))
        return [
            f"part-{number:0{n_digits}d}.{self.made_from['format']}"
            for number in range(len(self.spans))
        ]


def begun_or_new(request: Request, model: Sequence[str], out: Path, watch: Watch) -> Plan:
    """The plan of the run that was begun in `out`, which must be of the same request; otherwise a
    new one, written there.
    """
    files = tables_in(request.source)
    made_from = _made_from(request, files, model)
    if (out / PLAN).is_file():
        content = _read(out / PLAN)
        _compare(out, content["made_from"], made_from)
        return _planned(out, content, files)
    plan = Plan(
        made_from,
        _key_type(request, files),
        tuple(_cut(request, files, watch)),
        _stamps(made_from, files),
    )
    if not plan.spans:
        raise UserError(f"{request.source} has no rows: give at least one text.")
    places = {str(file): place for place, file in enumerate(files)}
    parts = [[places[span.file], *astuple(span.start), span.n_rows] for span in plan.spans]
    write_json(out / PLAN, {"made_from": made_from, "key_type": plan.key_type, "parts": parts})
    return plan


def _cut(request: Request, files: Sequence[Path], watch: Watch) -> list[Span]:
    spans: list[Span] = []
    for place, file in enumerate(files):
        watch("counting rows", place, len(files), file.name)
        spans += spans_of(file, n_rows=request.n_rows, needs=request.needs())
    return spans


def _made_from(request: Request, files: Sequence[Path], model: Sequence[str]) -> dict[str, Any]:
    base = request.source if request.source.is_dir() else request.source.parent
    stats = [file.stat() for file in files]
    names = [file.relative_to(base).as_posix() for file in files]
    return {
        "input": [
            [name, stat.st_size, stat.st_mtime_ns] for name, stat in zip(names, stats, strict=True)
        ],
        "choice of columns": [request.column, request.pair, request.key, request.has_text],
        "number of rows per part": request.n_rows,
        "format": request.format,
        "model": list(model),
    }


def _key_type(request: Request, files: Sequence[Path]) -> str:
    """As all files have it, if they are Parquet files and agree."""
    types = set()
    for file in files:
        if request.key is None or kind_of(file) != ".parquet":
            return TEXT
        with opened_parquet(file) as parquet:
            names = parquet.schema_arrow.names
            types.add(
                str(parquet.schema_arrow.field(request.key).type) if request.key in names else TEXT
            )
    first, *others = types
    return first if not others and first in KEY_TYPES else TEXT


def _stamps(made_from: dict[str, Any], files: Sequence[Path]) -> dict[str, tuple[int, int]]:
    return {
        str(file): (size, time)
        for file, (_, size, time) in zip(files, made_from["input"], strict=True)
    }


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text("utf-8"))
        return {**content, "made_from": dict(content["made_from"])}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(
            f"{file} is damaged ({error}). Delete {file.parent} to begin anew."
        ) from error


def _planned(out: Path, content: dict[str, Any], files: Sequence[Path]) -> Plan:
    """A plan that was written down, of these very files."""
    made_from = content["made_from"]
    try:
        spans = tuple(
            Span(str(files[place]), Start(row, line, offset), n_rows)
            for place, row, line, offset, n_rows in content["parts"]
        )
        return Plan(made_from, str(content["key_type"]), spans, _stamps(made_from, files))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UserError(
            f"{out / PLAN} is damaged ({error}). Delete {out} to begin anew."
        ) from error


def _compare(out: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    changed = [
        _in_words(name, before.get(name), value)
        for name, value in now.items()
        if before.get(name) != value
    ]
    if changed:
        advice = "Delete it to begin anew, or choose another --out."
        raise UserError(
            f"{out} holds answers of an earlier run, which had another"
            f" {' and another '.join(changed)}. {advice}"
        )


def _in_words(name: str, before: Any, now: Any) -> str:
    """The name of what differs; of the input the first file as well."""
    if name != "input" or not isinstance(before, list):
        return name
    kept = [file for file in now if file in before]
    different, *_ = [file for file in [*now, *before] if file not in kept] or [now[0]]
    return f"{name} ({different[0]} has changed, come or gone)"
