"""Tables become predictions that a stopped run keeps: in parts, each there when it is whole.

    OUT/plan.json             which rows become which part, and what they are made from
    OUT/part-00000.parquet …  the predictions; a part is there when it is whole
    OUT/records/              the hash of each part that was made, until the manifest says it
    OUT/manifest.json         written last: the folder is complete

Whatever is killed, the same command resumes: parts that are there as they were written are not made
again, and no part is ever there in halves. A part may be done twice, anywhere, with the same
result. One table that becomes one file is the same: its parts lie in OUT.part until they are all
there, and are joined. A pipe or a device has none of this: it is written to as the answers come.

A record (the plan, the manifest) is a JSON file: `{"made_from": {…}, …, "sha256": …}`. `made_from`
holds everything the predictions depend on (input, columns, format, model). A run resumes only when
all of it is the same; anything else would join predictions that do not belong together, and is
refused. `sha256` is that of the rest: a record is believed only as it was written.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, replace
from functools import cache, partial
from hashlib import sha256
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar

from litotes.core.errors import Stopped, UserError, write_errors
from litotes.core.jobs import Outcome, run_jobs
from litotes.core.json_text import load_json, parse_as
from litotes.core.progress import Watch, ignore_progress
from litotes.core.ray_jobs import run_on_ray
from litotes.core.storage import (
    LOCK,
    MANIFEST,
    find_foreign_file,
    locked,
    make_own_folder,
    open_stream,
    sha256_of,
    staging_folder,
    write_bytes,
    write_json,
)
from litotes.core.values import BadText, Task
from litotes.core.version import __version__
from litotes.data.tables import Span, cut_spans, find_tables, kind_of, read_rows
from litotes.data.tables.files import Start, require_file
from litotes.data.tables.parquet import open_parquet, read_arrow
from litotes.data.tables.rows import Row
from litotes.prediction.answers import BOOL, FLOAT, INT
from litotes.prediction.predictor import BatchPredictor, Predictor
from litotes.prediction.tables import (
    FORMATS,
    InputRow,
    Layout,
    TableRequest,
    Tally,
    answer_rows,
    arrow_table,
    header_line,
    row_lines,
)

PLAN, RECORDS = "plan.json", "records"
_PART = re.compile(rf"part-\d{{5,}}\.({'|'.join(FORMATS)})")
_ROWS_OF_A_FILE = 2000
"""In a part of what becomes one file: what a kill costs, at most."""
_MAX_ROWS_NAMED = 3  # bad rows in an error message; more are only counted

Progress = TypeVar("Progress")
Runner = Callable[..., Iterator[Outcome]]
"""runner(jobs, watch=…): does the parts, jobs by their names, somewhere."""


def write_record(file: Path, made_from: Mapping[str, Any], **progress: Any) -> None:
    """Replaces the record in one step; what it calls safe must be on disk already."""
    content = {"made_from": made_from, **progress}
    write_json(file, {**content, "sha256": _digest(content)})


def read_record(
    file: Path, made_from: Mapping[str, Any], parse: Callable[[Any], Progress]
) -> Progress:
    """The progress of the run that wrote the record, which must be made from the same."""
    output = file.parent
    try:
        content = load_json(file)
        if content.pop("sha256") != _digest(content):
            raise ValueError("not as it was written")
        before = dict(content.pop("made_from"))
        changes = [name for name, value in made_from.items() if before.get(name) != value]
        if not changes:
            return parse(content)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(f"{file} is damaged ({error}). Delete {output} to begin anew.") from error
    if "input" in changes and isinstance(before.get("input"), list):
        # the first file that differs; where none does, only their order has changed
        old, new = before["input"], made_from["input"]
        odd = [one for one in new if one not in old] + [one for one in old if one not in new]
        name = (odd or new)[0][0]
        changes[changes.index("input")] = f"input ({name} has changed, come or gone)"
    raise UserError(
        f"{output} holds answers of an earlier run, which had another"
        f" {' and another '.join(changes)}. Delete it to begin anew, or choose another --out."
    )


def _digest(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class PartRecord:
    """The hash of a part as it was written, and what became of its rows."""

    sha256: str
    tally: Tally


@dataclass(frozen=True)
class _PlanFile:
    """types: see `Layout`. parts: [number of the file, row, line, byte, number of rows] each."""

    types: dict[str, Literal["bool", "int64", "double"]]
    parts: list[tuple[int, int, int, int, int]]


@dataclass(frozen=True)
class _ManifestFile:
    """rows, parts: how many were written, in all and by part."""

    litotes: str
    rows: int
    parts: dict[str, int]
    records: dict[str, PartRecord]


@dataclass(frozen=True)
class FolderPlan:
    """The parts in their order.

    made_from: everything the predictions depend on; see `resume`. stamps: size and time of each
    input file, by its path.
    """

    made_from: Mapping[str, Any]
    layout: Layout
    spans: Sequence[Span]
    stamps: Mapping[str, tuple[int, int]]

    @property
    def n_rows(self) -> int:
        return sum(span.n_rows for span in self.spans)

    def parts(self) -> dict[str, Span]:
        """The rows of each part by the name of its file; names sort in the order of the rows."""
        n_digits, format = max(5, len(str(len(self.spans) - 1))), self.layout.request.format
        numbered = enumerate(self.spans)
        return {f"part-{number:0{n_digits}d}.{format}": span for number, span in numbered}


def resume_or_plan(
    request: TableRequest,
    tasks: Mapping[str, Task],
    model: Sequence[str],
    out: Path,
    watch: Watch,
) -> FolderPlan:
    """The plan of the run that was begun in `out`, or else a new one, which is written there."""
    files = find_tables(request.source)
    record, layout = out / PLAN, request.layout_of(files, tasks)
    if request.format == "parquet":
        layout = replace(layout, is_as_stored=_have_same_types(files, layout.kept))
    base = request.source if request.source.is_dir() else request.source.parent
    stamps = {str(file): _stamp(file) for file in files}
    made_from = {
        "input": [[file.relative_to(base).as_posix(), *stamps[str(file)]] for file in files],
        **request.made_from(layout),
        "number of rows per part": request.n_rows,
        "model": list(model),
    }
    if record.is_file():
        types, spans = read_record(record, made_from, partial(_parse_plan, files))
        return FolderPlan(made_from, replace(layout, types=types), spans, stamps)
    types, spans, parts = _find_types(request, layout.kept, files), [], []
    for number, file in enumerate(files):
        watch("counting rows", number, len(files), file.name)
        own = cut_spans(file, n_rows=request.n_rows, needs=request.texts)
        spans += own
        parts += [[number, *astuple(span.start), span.n_rows] for span in own]
    if not spans:
        raise UserError(f"{request.source} has no rows: give at least one text.")
    write_record(record, made_from, types=types, parts=parts)
    return FolderPlan(made_from, replace(layout, types=types), spans, stamps)


def _parse_plan(files: Sequence[Path], content: Any) -> tuple[Mapping[str, str], list[Span]]:
    plan = parse_as(_PlanFile, content)
    spans = []
    for part in plan.parts:
        if not all(0 <= number < 2**63 for number in part):
            raise ValueError("a number is no count")
        number, *start, n_rows = part
        spans.append(Span(str(files[number]), Start(*start), n_rows))
    return plan.types, spans


def _stamp(file: Path) -> tuple[int, int]:
    stat = file.stat()
    return stat.st_size, stat.st_mtime_ns


def _have_same_types(files: Sequence[Path], kept: Sequence[str]) -> bool:
    """Tells whether all files are Parquet files that agree on the types of these columns."""
    types = set()
    for file in files:
        if kind_of(file) != ".parquet":
            return False
        with open_parquet(file) as parquet:
            schema = parquet.schema_arrow
            stored = dict(zip(schema.names, map(str, schema.types), strict=True))
        types.add(tuple(stored.get(name) for name in kept))
    return len(types) == 1


def _find_types(
    request: TableRequest, kept: Sequence[str], files: Sequence[Path]
) -> dict[str, str]:
    """The types that columns of JSON keep in Parquet: those that all of their values have.

    All other columns are texts.
    """
    if request.format != "parquet" or {kind_of(file) for file in files} != {".jsonl"}:
        return {}
    found: dict[str, list[str]] = {}
    for file in files:
        for row in read_rows(file, needs=()):
            for name in kept:
                if (value := row.value(name)) is not None:
                    fitting = _types_for(value)
                    found[name] = [one for one in found.get(name, fitting) if one in fitting]
    return {name: fitting[0] for name, fitting in found.items() if fitting}


def _types_for(value: object) -> list[str]:
    """Arrow's names for the types that hold a value exactly, the narrowest first."""
    if isinstance(value, bool):
        return [BOOL]
    if isinstance(value, int) and abs(value) < 2**63:
        return [INT, FLOAT] if abs(value) <= 2**53 else [INT]
    return [FLOAT] if isinstance(value, float) else []


@dataclass(frozen=True)
class PartJob:
    """Everything a worker needs to know.

    predictor: a BatchPredictor where it has to travel. model: the identities of the models, which
    must be the same on every worker. stamp: size and time of the input when its rows were counted.
    """

    predictor: Predictor | BatchPredictor
    model: tuple[str, ...]
    layout: Layout
    span: Span
    stamp: tuple[int, int]
    file: Path

    @property
    def request(self) -> TableRequest:
        return self.layout.request


class _TableReader:
    """Reads one table once for parts that follow each other, where each would begin anew."""

    def __init__(self) -> None:
        self._next = -1
        self._rows: Iterator[Row] = iter(())

    def __call__(self, job: PartJob) -> Iterator[Row]:
        span, needs = job.span, job.request.texts
        if span.start.row != self._next:
            self._rows = read_rows(
                Path(span.file),
                needs=needs,
                keeps=job.layout.kept,
                start=span.start,
            )
        self._next = span.start.row + span.n_rows
        return islice(self._rows, span.n_rows)


def _read_span(job: PartJob) -> Iterator[Row]:
    return job.span.rows(job.request.texts, keeps=job.layout.kept)


def predict_part(
    job: PartJob, watch: Watch, *, read: Callable[[PartJob], Iterator[Row]] = _read_span
) -> None:
    """Writes the file of this part. read: its rows."""
    predictor = job.predictor
    if isinstance(predictor, BatchPredictor):
        predictor = _checked_predictor(predictor, job.model)
    layout, format = job.layout, job.request.format
    rows = _input_rows(job, read)
    kept = None
    if format == "parquet" and layout.is_as_stored:
        kept = read_arrow(Path(job.span.file), layout.kept, job.span.start.row, job.span.n_rows)
    if _stamp(Path(job.span.file)) != job.stamp:
        raise UserError(
            f"{job.span.file} has been changed while it was read: begin anew, with another --out."
        )
    tally, tables, lines = Tally(), [], [header_line(layout, format)]
    for answered in answer_rows(predictor, rows, at_once=False):
        if format == "parquet":
            own = None if kept is None else kept.slice(tally.n_read, len(answered.kept))
            tables.append(arrow_table(layout, answered, own))
        else:
            lines.append(row_lines(layout, format, answered))
        tally = tally.add(answered, layout)
        watch("answering", tally.n_read, job.span.n_rows, job.file.name)
    content = _parquet_bytes(tables) if tables else "".join(lines).encode()
    # first, in a folder next to it: a part that is there can be told from one damaged since
    write_part_record(job.file, PartRecord(sha256(content).hexdigest(), tally))
    write_bytes(job.file, content)


def _input_rows(job: PartJob, read: Callable[[PartJob], Iterator[Row]]) -> list[InputRow]:
    """All bad rows are reported together, to be mended together, where they stop the work."""
    lenient = replace(job.request, bad_rows="empty")
    rows = list(lenient.input_rows(read(job), job.layout.kept))
    bad = [row.asked.problem for row in rows if isinstance(row.asked, BadText)]
    if bad and job.request.bad_rows == "stop":
        n_more = len(bad) - _MAX_ROWS_NAMED
        more = [f"And {n_more} more rows like these."] if n_more > 0 else []
        raise UserError(" ".join([*bad[:_MAX_ROWS_NAMED], *more]))
    return rows


def _parquet_bytes(tables: Sequence[Any]) -> bytes:
    import pyarrow.parquet

    target = BytesIO()
    pyarrow.parquet.write_table(pyarrow.concat_tables(tables), target)
    return target.getvalue()


def _record_of(part: Path) -> Path:
    return part.parent / RECORDS / f"{part.name}.json"


def write_part_record(part: Path, record: PartRecord) -> None:
    write_json(_record_of(part), asdict(record))


def read_part_record(part: Path) -> PartRecord:
    """Reads a part's record; none, or a damaged one, is an OSError or a ValueError."""
    return parse_as(PartRecord, load_json(_record_of(part)))


@cache
def _checked_predictor(batch_predictor: BatchPredictor, model: tuple[str, ...]) -> Predictor:
    """The predictor of this process, once it is known to be the one that was asked for."""
    predictor = batch_predictor.predictor()
    if predictor.identities != model:
        raise UserError(
            f"{batch_predictor.folder} on {platform.node()} is another model, or computed"
            " otherwise, than where this was started: copy the same folder, and install the same"
            " litotes, on every node."
        )
    return predictor


@dataclass(frozen=True)
class FolderResult:
    """The outcome of a run.

    n_found: parts that were there before; damaged: those that were there, but not as they had been
    written, and were made again; n_answered: rows of parts made now; tally: of all parts that are
    there; failures: why a part is missing, by its name.
    """

    out: Path
    plan: FolderPlan
    n_found: int
    damaged: tuple[str, ...]
    n_answered: int
    tally: Tally
    seconds: float
    failures: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        rate = self.n_answered / self.seconds if self.seconds else 0.0
        return {
            "out": str(self.out),
            "rows": self.plan.n_rows,
            "parts": len(self.plan.spans),
            "parts_found": self.n_found,
            "parts_damaged": list(self.damaged),
            "rows_answered": self.n_answered,
            "rows_bad": self.tally.n_bad,
            "problems": list(self.tally.problems),
            "rows_unreadable": self.tally.n_unreadable,
            "seconds": round(self.seconds, 1),
            "rows_per_second": round(rate, 1),
            "failures": self.failures,
        }


def local_runner(n_workers: int) -> Runner:
    """Runs jobs in this process, or in several on this machine."""
    return partial(run_jobs, work=predict_part, n_workers=n_workers, what="parts")


def ray_runner(n_workers: int | None, address: str | None, *, n_gpus: float = 0) -> Runner:
    """Runs jobs on a cluster, or on this machine's cores; None: as many workers as fit."""
    where: Any = {"address": address, "n_workers": n_workers, "n_gpus_per_job": n_gpus}
    return partial(run_on_ray, work=predict_part, what="parts", **where)


def predict_to_folder(
    request: TableRequest,
    predictor: Predictor | BatchPredictor,
    out: Path,
    *,
    runner: Runner,
    watch: Watch = ignore_progress,
) -> FolderResult:
    """Predicts every row that has no prediction yet.

    Parts that fail are collected in `failures`; the others are done all the same.
    """
    # other processes may have another working directory
    out, request = out.resolve(), replace(request, source=request.source.resolve())
    _check_target(request.source, out)
    ready = ready_predictor(predictor)
    model = ready.identities
    with locked(out):
        _check_folder(out)
        plan = resume_or_plan(request, ready.tasks, model, out, watch)
        records, damaged = _find_parts(plan, out, watch)
        n_found, jobs = len(records), {}
        for name, span in plan.parts().items():
            if name not in records:
                stamp = plan.stamps[span.file]
                jobs[name] = PartJob(predictor, model, plan.layout, span, stamp, out / name)
        started = time.monotonic()
        failures = {}
        if jobs:
            _make_room(out, records, damaged)
            failures = _run(jobs, out, runner, watch)
        seconds = time.monotonic() - started
        done = [name for name in jobs if name not in failures]
        for name in done:
            with suppress(OSError, ValueError):  # not there yet on a slow network file system
                records[name] = read_part_record(out / name)
        tally = Tally()
        for record in records.values():
            tally = tally.merge(record.tally)
        if not failures:
            _write_manifest(plan, out, records, tally)
    n_answered = sum(jobs[name].span.n_rows for name in done)
    return FolderResult(out, plan, n_found, tuple(damaged), n_answered, tally, seconds, failures)


def ready_predictor(predictor: Predictor | BatchPredictor) -> Predictor:
    """Returns the predictor that answers in this process."""
    return predictor.predictor() if isinstance(predictor, BatchPredictor) else predictor


def _find_parts(
    plan: FolderPlan, out: Path, watch: Watch
) -> tuple[dict[str, PartRecord], list[str]]:
    """The parts that are there: the records of those that are as they were written, and the names
    of the others.
    """
    stated, whole, damaged = {}, {}, []
    if (out / MANIFEST).is_file():
        parse = partial(parse_as, _ManifestFile)
        stated = read_record(out / MANIFEST, plan.made_from, parse).records
    names = [name for name in plan.parts() if (out / name).is_file()]
    for place, name in enumerate(names):
        watch("checking parts", place, len(names), name)
        with suppress(OSError, ValueError):  # without its record it is made again
            record = stated.get(name) or read_part_record(out / name)
            if record.sha256 == sha256_of(out / name):
                whole[name] = record
        if name not in whole:
            damaged.append(name)
    return whole, damaged


def _make_room(out: Path, whole: Mapping[str, PartRecord], damaged: Sequence[str]) -> None:
    """Takes away what must not vouch for parts that are missing, and those that are damaged."""
    if (out / MANIFEST).is_file():
        for name, record in whole.items():
            write_part_record(out / name, record)
        (out / MANIFEST).unlink()
    for name in damaged:
        (out / name).unlink()


def _run(jobs: dict[str, PartJob], out: Path, runner: Runner, watch: Watch) -> dict[str, str]:
    """Does the jobs; why those that failed did, by name."""
    try:
        outcomes = list(runner(jobs, watch=watch))
    except (KeyboardInterrupt, Stopped) as error:
        n_left = sum(not job.file.is_file() for job in jobs.values())
        raise Stopped(
            f"Stopped; {n_left} parts are left to do in {out}. Start the same command again to"
            " go on."
        ) from error
    return {one.name: one.error for one in outcomes if one.error is not None}


def _write_manifest(
    plan: FolderPlan, out: Path, records: Mapping[str, PartRecord], tally: Tally
) -> None:
    if not (out / MANIFEST).is_file():  # otherwise nothing was left to do
        written = {name: record.tally.n_written for name, record in records.items()}
        content = _ManifestFile(__version__, tally.n_written, written, dict(records))
        write_record(out / MANIFEST, plan.made_from, **asdict(content))
    shutil.rmtree(out / RECORDS, ignore_errors=True)


def _check_target(source: Path, out: Path) -> None:
    if out.is_file():
        raise UserError(f"{out} is a file; --out needs a folder for the parts.")
    if source.is_dir() and (out == source or source in out.parents):
        raise UserError(
            f"{out} lies in the folder that is read, {source}: its parts would be read as tables."
            " Choose another --out."
        )


def _check_folder(out: Path) -> None:
    """Refuses a folder that holds other files than ours."""
    foreign = find_foreign_file(out, (PLAN, MANIFEST, RECORDS, LOCK), _PART)
    if foreign is not None:
        raise UserError(
            f"{out} holds {foreign}, which is no part of answers: choose a new folder for --out."
        )
    if not (out / PLAN).is_file() and any(_PART.fullmatch(path.name) for path in out.iterdir()):
        raise UserError(
            f"{out} holds parts, but no {PLAN} that says what they were made from: choose a new"
            " folder for --out."
        )


@dataclass(frozen=True)
class FileResult:
    """A finished file: what its rows hold, and what became of those of the input."""

    layout: Layout
    tally: Tally


def predict_to_file(
    request: TableRequest,
    predictor: Predictor | BatchPredictor,
    out: Path,
    *,
    watch: Watch = ignore_progress,
) -> FileResult:
    """Writes every row of the only table, with its prediction, to `out`: renamed into place when
    it is whole.
    """
    target = request.check_target(out)
    if not request.source.is_file():
        require_file(request.source)
        raise UserError(
            f"{request.source} is no ordinary file, which could be read again from its start: save"
            " it to one."
        )
    if request.bad_rows == "stop":  # a bad row is told now, not after hours
        for row in request.rows():
            request.asked(row)
    if target.is_stream:
        return _predict_to_stream(request, predictor, out, watch)
    parts = target.path.with_name(f"{target.path.name}.part")
    make_own_folder(parts)  # rows that are not whole are not for others to read
    request = replace(request, n_rows=min(request.n_rows, _ROWS_OF_A_FILE))
    result = predict_to_folder(request, predictor, parts, runner=_in_order, watch=watch)
    with locked(parts), write_errors(out), staging_folder(parts) as staging:
        _join(result, request.format, staging / out.name)
        (staging / out.name).replace(target.path)
    shutil.rmtree(parts, ignore_errors=True)
    return FileResult(result.plan.layout, result.tally)


def _in_order(jobs: dict[str, PartJob], watch: Watch) -> Iterator[Outcome]:
    """The parts of one table, one after the other; the first that fails ends the work."""
    read = _TableReader()
    n_rows = max(job.span.start.row + job.span.n_rows for job in jobs.values())
    for name, job in jobs.items():
        n_before = job.span.start.row

        def watch_rows(what: str, done: int, _: int, note: str, before: int = n_before) -> None:
            watch(what, before + done, n_rows, "")

        predict_part(job, watch_rows, read=read)
        yield Outcome(name, 0.0)


def _join(result: FolderResult, format: str, file: Path) -> None:
    """The rows of all parts; of Parquet a part becomes a group of rows."""
    parts = [result.out / name for name in result.plan.parts()]
    if format == "parquet":
        import pyarrow.parquet as pq

        schema = pq.read_schema(parts[0])
        with pq.ParquetWriter(file, schema) as writer:
            for part in parts:
                writer.write_table(pq.read_table(part, schema=schema))
    else:
        n_header = len(header_line(result.plan.layout, format).encode())
        with file.open("wb") as joined:
            for number, part in enumerate(parts):
                with part.open("rb") as rows:
                    rows.seek(n_header if number else 0)
                    shutil.copyfileobj(rows, joined)
    with file.open("rb+") as written:
        os.fsync(written.fileno())


def _predict_to_stream(
    request: TableRequest, predictor: Predictor | BatchPredictor, out: Path, watch: Watch
) -> FileResult:
    predictor = ready_predictor(predictor)
    if request.format == "parquet":
        raise UserError(f"{out} is a pipe or a device: a Parquet file is written to a file.")
    layout = request.layout_of([request.source], predictor.tasks)
    n_total, tally = sum(1 for _ in request.rows()), Tally()
    rows = request.input_rows(request.rows(keeps=layout.kept), layout.kept)
    with write_errors(out), open_stream(out) as stream:
        stream.write(header_line(layout, request.format).encode())
        for answered in answer_rows(predictor, rows):
            stream.write(row_lines(layout, request.format, answered).encode())
            stream.flush()
            tally = tally.add(answered, layout)
            watch("answering", tally.n_read, n_total, "")
    return FileResult(layout, tally)
