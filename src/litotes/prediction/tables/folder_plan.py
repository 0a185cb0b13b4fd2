"""Which rows become which part: the plan of a folder of predictions, kept in `plan.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.numbers import require_count
from litotes.core.progress import Watch
from litotes.core.values import Task
from litotes.data.tables.files import Start
from litotes.data.tables.parquet import open_parquet
from litotes.data.tables.rows import kind_of, read_rows
from litotes.data.tables.spans import Span, cut_spans, find_tables
from litotes.prediction.tables.layout import Layout
from litotes.prediction.tables.request import TableRequest, make_layout
from litotes.prediction.tables.resume import read_record, write_record

PLAN = "plan.json"
TYPES = ("bool", "int64", "double")
"""Arrow's names for the types that columns of JSON keep in Parquet."""
TEXT = "string"
_WIDE = "int64 beyond what a double holds exactly"


@dataclass(frozen=True)
class FolderPlan:
    """The parts in their order.

    made_from: everything the predictions depend on; see `resume`. stamps: size and time of each
    input file, by its path.
    """

    made_from: Mapping[str, Any]
    layout: Layout
    spans: tuple[Span, ...]
    stamps: Mapping[str, tuple[int, int]]

    @property
    def n_rows(self) -> int:
        return sum(span.n_rows for span in self.spans)

    def parts(self) -> dict[str, Span]:
        """The rows of each part by the name of its file; names sort in the order of the rows."""
        n_digits = max(5, len(str(len(self.spans) - 1)))
        format = self.made_from["format"]
        parts = {}
        for number, span in enumerate(self.spans):
            parts[f"part-{number:0{n_digits}d}.{format}"] = span
        return parts


def resume_or_plan(
    request: TableRequest,
    tasks: Mapping[str, Task],
    model: Sequence[str],
    out: Path,
    watch: Watch,
) -> FolderPlan:
    """The plan of the run that was begun in `out`, or else a new one, which is written there."""
    files = find_tables(request.source)
    record = out / PLAN
    layout = make_layout(request, files, tasks)
    if request.format == "parquet":
        layout = replace(layout, is_as_stored=_have_same_types(files, layout.kept))
    made_from = _made_from(request, layout, files, model)
    stamps = _stamps(files, made_from)
    if record.is_file():
        types, spans = read_record(record, made_from, lambda plan: _parse_plan(plan, files))
        return FolderPlan(made_from, replace(layout, types=types), spans, stamps)
    types = _find_types(request, layout.kept, files)
    spans = tuple(_cut(request, files, watch))
    if not spans:
        raise UserError(f"{request.source} has no rows: give at least one text.")
    write_record(record, made_from, types=types, parts=_format_parts(spans, files))
    return FolderPlan(made_from, replace(layout, types=types), spans, stamps)


def _made_from(
    request: TableRequest, layout: Layout, files: Sequence[Path], model: Sequence[str]
) -> dict[str, Any]:
    base = request.source if request.source.is_dir() else request.source.parent
    stamped = []
    for file in files:
        stat = file.stat()
        stamped.append([file.relative_to(base).as_posix(), stat.st_size, stat.st_mtime_ns])
    return {
        "input": stamped,
        **request.made_from(layout),
        "number of rows per part": request.n_rows,
        "model": list(model),
    }


def _stamps(files: Sequence[Path], made_from: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    stamps = {}
    for file, (_, size, time) in zip(files, made_from["input"], strict=True):
        stamps[str(file)] = (size, time)
    return stamps


def _cut(request: TableRequest, files: Sequence[Path], watch: Watch) -> list[Span]:
    spans: list[Span] = []
    for place, file in enumerate(files):
        watch("counting rows", place, len(files), file.name)
        spans += cut_spans(
            file, n_rows=request.n_rows, needs=request.texts, lenient=request.is_lenient
        )
    return spans


def _have_same_types(files: Sequence[Path], kept: Sequence[str]) -> bool:
    """Whether all files are Parquet files that agree on the types of these columns."""
    types = set()
    for file in files:
        if kind_of(file) != ".parquet":
            return False
        with open_parquet(file) as parquet:
            schema = parquet.schema_arrow
            if not set(kept) <= set(schema.names):
                return False
            types.add(tuple(str(schema.field(name).type) for name in kept))
    return len(types) == 1


def _find_types(
    request: TableRequest, kept: Sequence[str], files: Sequence[Path]
) -> dict[str, str]:
    """The types that columns of JSON keep in Parquet: those that all of their values have.

    All other columns are texts.
    """
    if request.format != "parquet" or {kind_of(file) for file in files} != {".jsonl"}:
        return {}
    found: dict[str, set[str]] = {name: set() for name in kept}
    for file in files:
        for row in read_rows(file, needs=(), lenient=True):
            for name in kept:
                if (value := row.value(name)) is not None:
                    found[name].add(_type_of(value))
    types = {}
    for name, own in found.items():
        if _WIDE in own and "double" not in own:
            own = (own - {_WIDE}) | {"int64"}
        if own == {"int64", "double"}:
            own = {"double"}
        if len(own) == 1 and own != {TEXT}:
            (types[name],) = own
    return types


def _type_of(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int) and abs(value) < 2**63:
        return "int64" if abs(value) <= 2**53 else _WIDE
    return "double" if isinstance(value, float) else TEXT


def _format_parts(spans: Sequence[Span], files: Sequence[Path]) -> list[list[int]]:
    """Each part as [number of the file, row, line, byte, number of rows]."""
    numbers = {str(file): number for number, file in enumerate(files)}
    return [[numbers[span.file], *astuple(span.start), span.n_rows] for span in spans]


def _parse_plan(
    content: Mapping[str, Any], files: Sequence[Path]
) -> tuple[dict[str, str], tuple[Span, ...]]:
    spans = []
    for part in content["parts"]:
        number, row, line, offset, n_rows = map(require_count, part)
        spans.append(Span(str(files[number]), Start(row, line, offset), n_rows))
    types = dict(content["types"])
    for type in types.values():
        if type not in TYPES:
            raise ValueError(f"{type!r:.40} is no type of a column")
    return types, tuple(spans)
