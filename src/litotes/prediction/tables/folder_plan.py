"""Which rows become which part: the plan of a folder of predictions, kept in `plan.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.numbers import require_count
from litotes.core.progress import Watch
from litotes.core.values import Task
from litotes.data.tables.files import Start
from litotes.data.tables.parquet import open_parquet
from litotes.data.tables.rows import kind_of
from litotes.data.tables.spans import Span, cut_spans, find_tables
from litotes.prediction.tables.folder_request import FolderRequest
from litotes.prediction.tables.formats import KEY_TYPES, TEXT_KEY
from litotes.prediction.tables.resume import read_record, write_record

PLAN = "plan.json"


@dataclass(frozen=True)
class FolderPlan:
    """The parts in their order.

    made_from: everything the predictions depend on; see `resume`. key_type: see `Key`. stamps: size
    and time of each input file, by its path.
    """

    made_from: Mapping[str, Any]
    key_type: str
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
    request: FolderRequest,
    tasks: Mapping[str, Task],
    model: Sequence[str],
    out: Path,
    watch: Watch,
) -> FolderPlan:
    """The plan of the run that was begun in `out`, or else a new one, which is written there."""
    files = find_tables(request.source)
    made_from = _made_from(request, tasks, files, model)
    stamps = _stamps(files, made_from)
    record = out / PLAN
    if record.is_file():
        key_type, spans = read_record(record, made_from, lambda plan: _parse_parts(plan, files))
        return FolderPlan(made_from, key_type, spans, stamps)
    key_type = _key_type(request, files)
    spans = tuple(_cut(request, files, watch))
    if not spans:
        raise UserError(f"{request.source} has no rows: give at least one text.")
    write_record(record, made_from, key_type=key_type, parts=_format_parts(spans, files))
    return FolderPlan(made_from, key_type, spans, stamps)


def _made_from(
    request: FolderRequest, tasks: Mapping[str, Task], files: Sequence[Path], model: Sequence[str]
) -> dict[str, Any]:
    base = request.source if request.source.is_dir() else request.source.parent
    stamped = []
    for file in files:
        stat = file.stat()
        stamped.append([file.relative_to(base).as_posix(), stat.st_size, stat.st_mtime_ns])
    return {
        "input": stamped,
        "choice of columns": [request.column, request.pair, request.key, request.keep_text],
        "set of answer columns": [column.name for column in request.columns(tasks)],
        "number of rows per part": request.n_rows,
        "format": request.format,
        "treatment of formulas": "kept" if request.keep_formulas else "guarded",
        "model": list(model),
    }


def _stamps(files: Sequence[Path], made_from: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    stamps = {}
    for file, (_, size, time) in zip(files, made_from["input"], strict=True):
        stamps[str(file)] = (size, time)
    return stamps


def _cut(request: FolderRequest, files: Sequence[Path], watch: Watch) -> list[Span]:
    spans: list[Span] = []
    for place, file in enumerate(files):
        watch("counting rows", place, len(files), file.name)
        spans += cut_spans(file, n_rows=request.n_rows, needs=request.needs())
    return spans


def _key_type(request: FolderRequest, files: Sequence[Path]) -> str:
    """The type that the key has in all files, if they are Parquet files and agree on it."""
    types = set()
    for file in files:
        if request.key is None or kind_of(file) != ".parquet":
            return TEXT_KEY
        with open_parquet(file) as parquet:
            schema = parquet.schema_arrow
            has_key = request.key in schema.names
            types.add(str(schema.field(request.key).type) if has_key else TEXT_KEY)
    first, *others = types
    return first if not others and first in KEY_TYPES else TEXT_KEY


def _format_parts(spans: Sequence[Span], files: Sequence[Path]) -> list[list[int]]:
    """Each part as [number of the file, row, line, byte, number of rows]."""
    numbers = {str(file): number for number, file in enumerate(files)}
    return [[numbers[span.file], *astuple(span.start), span.n_rows] for span in spans]


def _parse_parts(content: Mapping[str, Any], files: Sequence[Path]) -> tuple[str, tuple[Span, ...]]:
    spans = []
    for part in content["parts"]:
        number, row, line, offset, n_rows = map(require_count, part)
        spans.append(Span(str(files[number]), Start(row, line, offset), n_rows))
    key_type = content["key_type"]
    if key_type not in (TEXT_KEY, *KEY_TYPES):
        raise ValueError(f"{key_type!r:.40} is no type of a key")
    return key_type, tuple(spans)
