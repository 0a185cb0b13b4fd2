"""What an unfinished output was made from, and how far it got: the record that lets a run resume.

A record is a JSON file beside the rows: `{"made_from": {…}, …, "sha256": …}`. `made_from` holds
everything the predictions depend on (input, columns, format, model). A run resumes only when all of
it is the same; anything else would join predictions that do not belong together, and is refused.
`sha256` is that of the rest: a record is believed only as it was written.
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
from dataclasses import asdict, astuple, dataclass, field, replace
from functools import cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from litotes.core.errors import Stopped, UserError, write_errors
from litotes.core.jobs import Outcome, run_jobs
from litotes.core.json_text import load_json
from litotes.core.numbers import require_count
from litotes.core.progress import Watch, ignore_progress
from litotes.core.ray_jobs import map_on_ray
from litotes.core.registry import pick
from litotes.core.storage import (
    LOCK,
    MANIFEST,
    Target,
    find_foreign_file,
    locked,
    make_folder,
    make_own_folder,
    open_own_file,
    open_stream,
    sha256_of,
    write_bytes,
    write_json,
)
from litotes.core.values import BadText, Task
from litotes.core.version import __version__
from litotes.data.tables import Span, cut_spans, find_tables, kind_of, read_rows
from litotes.data.tables.files import Start, require_file
from litotes.data.tables.parquet import open_parquet, read_arrow
from litotes.prediction.predictor import BatchPredictor, Predictor
from litotes.prediction.tables import (
    FORMATS,
    LINE_FORMATS,
    AnsweredRow,
    FileResult,
    InputRow,
    Layout,
    LineFormat,
    TableRequest,
    Tally,
    answer_rows,
    encode_parquet,
    input_rows,
    is_written,
    make_layout,
)

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

Progress = TypeVar("Progress")


def write_record(file: Path, made_from: Mapping[str, Any], **progress: Any) -> None:
    """Replaces the record in one step; what it calls safe must be on disk already."""
    content = {"made_from": made_from, **progress}
    write_json(file, {**content, "sha256": _digest(content)})


def read_record(
    file: Path, made_from: Mapping[str, Any], parse: Callable[[Mapping[str, Any]], Progress]
) -> Progress:
    """The progress of the run that wrote the record, which must be made from the same.

    parse: reads the progress from the record's content, after `made_from` was compared.
    """
    output = file.parent
    try:
        content = load_json(file)
        if content.pop("sha256") != _digest(content):
            raise ValueError("not as it was written")
        changes = _changes(dict(content["made_from"]), made_from)
        if not changes:
            return parse(content)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(f"{file} is damaged ({error}). Delete {output} to begin anew.") from error
    raise UserError(
        f"{output} holds answers of an earlier run, which had another"
        f" {' and another '.join(changes)}. Delete it to begin anew, or choose another --out."
    )


def _digest(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    changes = []
    for name, value in now.items():
        if before.get(name) == value:
            continue
        has_files = name == "input" and isinstance(before.get(name), list)
        changes.append(_input_change(before[name], value) if has_files else name)
    return changes


def _input_change(before: list[Any], now: list[Any]) -> str:
    """Names the first file that differs. Files: [name, size, time]."""
    for file in now:
        if file not in before:
            return f"input ({file[0]} has changed, come or gone)"
    gone = [file for file in before if file not in now]
    name = gone[0][0] if gone else now[0][0]  # none is gone: only their order has changed
    return f"input ({name} has changed, come or gone)"


# Which rows become which part: the plan of a folder of predictions, kept in `plan.json`.

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
    for file, (_, size, modified) in zip(files, made_from["input"], strict=True):
        stamps[str(file)] = (size, modified)
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


# One part: its rows are read, predicted and written, whole or not at all.
#
# It may be done twice, anywhere, with the same result. Its record is written first, into a folder
# next to it: a part that is there can be told from one that was damaged since.
#
#     OUT/records/part-00000.parquet.json   its sha256, and what became of its rows
#     OUT/part-00000.parquet

RECORDS = "records"
_MAX_ROWS_NAMED = 3  # bad rows in an error message; more are only counted


@dataclass(frozen=True)
class PartJob:
    """What a worker needs to know.

    model: the identities of the models, which must be the same on every worker. stamp: size and
    time of the input when its rows were counted.
    """

    request: TableRequest
    batch_predictor: BatchPredictor
    model: tuple[str, ...]
    layout: Layout
    span: Span
    stamp: tuple[int, int]
    file: Path


@dataclass(frozen=True)
class PartRecord:
    """The hash of a part as it was written, and what became of its rows."""

    sha256: str
    tally: Tally

    def as_json(self) -> dict[str, Any]:
        return {"sha256": self.sha256, "tally": self.tally.as_json()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> PartRecord:
        return cls(str(content["sha256"]), Tally.from_json(content["tally"]))


def predict_part(job: PartJob, watch: Watch) -> None:
    """Writes the file of this part."""
    predictor = _checked_predictor(job.batch_predictor, job.model)
    tally = Tally()
    written: list[AnsweredRow] = []
    places: list[int] = []  # of the rows that are written
    bad_rows = job.request.bad_rows
    for place, row in enumerate(answer_rows(predictor, _read_rows(job))):
        tally = tally.add(row.prediction, bad_rows)
        if is_written(row.prediction, bad_rows):
            written.append(row)
            places.append(place)
        watch("answering", tally.n_read, job.span.n_rows, job.file.name)
    content = _encode(job, written, places)
    write_part_record(job.file, PartRecord(sha256(content).hexdigest(), tally))
    write_bytes(job.file, content)


def _encode(job: PartJob, rows: Sequence[AnsweredRow], places: Sequence[int]) -> bytes:
    file = Path(job.span.file)
    if job.layout.is_as_stored:
        start = job.span.start.row
        kept = read_arrow(file, job.layout.kept, start, job.span.n_rows).take(places)
        _check_unchanged(file, job.stamp)
        return encode_parquet(job.layout, rows, kept)
    return FORMATS[job.request.format](job.layout, rows)


def write_part_record(part: Path, record: PartRecord) -> None:
    write_json(part.parent / RECORDS / f"{part.name}.json", record.as_json())


def read_part_record(part: Path) -> PartRecord | None:
    """What was written with a part; None where that is not known."""
    file = part.parent / RECORDS / f"{part.name}.json"
    try:
        return PartRecord.from_json(load_json(file)) if file.is_file() else None
    except (ValueError, LookupError, TypeError, AttributeError):  # damaged: the part is made again
        return None


def _read_rows(job: PartJob) -> list[InputRow]:
    """All bad rows are reported together, to be mended together, where they stop the work."""
    request, keeps = job.request, job.layout.kept
    found, bad = [], []
    rows = job.span.rows(request.texts, keeps=keeps, lenient=True)
    for row in input_rows(replace(request, bad_rows="empty"), rows, keeps):
        found.append(row)
        if isinstance(row.asked, BadText):
            bad.append(row.asked.problem)
    _check_unchanged(Path(job.span.file), job.stamp)
    if bad and request.bad_rows == "stop":
        raise UserError(_bad_rows(bad))
    return found


def _check_unchanged(file: Path, stamp: tuple[int, int]) -> None:
    stat = file.stat()
    if (stat.st_size, stat.st_mtime_ns) != stamp:
        raise UserError(
            f"{file} has been changed while it was read: begin anew, with another --out."
        )


def _bad_rows(errors: list[str]) -> str:
    n_more = len(errors) - _MAX_ROWS_NAMED
    more = [f"And {n_more} more rows like these."] if n_more > 0 else []
    return " ".join([*errors[:_MAX_ROWS_NAMED], *more])


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


# A table or a folder of tables becomes a folder of predictions in parts, in the order of the rows.
#
#     OUT/plan.json             which rows become which part, and what they are made from
#     OUT/part-00000.parquet …  the predictions; a part is there when it is whole
#     OUT/records/              the hash of each part that was made, until the manifest says it
#     OUT/begun/                which worker has begun which part on Ray, while it runs
#     OUT/manifest.json         written last: the folder is complete
#
# Whatever is killed, the same command resumes: parts that are there as they were written are not
# made
# again, and no part is ever there in halves.

BEGUN = "begun"
_PART = re.compile(r"part-\d{5,}\.(parquet|jsonl|csv)")

Runner = Callable[[dict[str, PartJob], Path, Watch], Iterator[Outcome]]
"""runner(jobs, begun, watch): does the parts somewhere. begun: a folder for its own notes."""


@dataclass(frozen=True)
class FolderResult:
    """What a run achieved.

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
    """In this process, or in several on this machine."""

    def run(jobs: dict[str, PartJob], begun: Path, watch: Watch) -> Iterator[Outcome]:
        return run_jobs(jobs, predict_part, n_workers=n_workers, watch=watch, what="parts")

    return run


def ray_runner(n_workers: int | None, address: str | None, *, n_gpus: float = 0) -> Runner:
    """On a cluster, or on one of this machine's cores; None: as many workers as it has room for."""

    def run(jobs: dict[str, PartJob], begun: Path, watch: Watch) -> Iterator[Outcome]:
        return map_on_ray(
            jobs,
            predict_part,
            begun=begun,
            n_workers=n_workers,
            address=address,
            watch=watch,
            n_gpus=n_gpus,
            what="parts",
        )

    return run


def predict_to_folder(
    request: TableRequest,
    batch_predictor: BatchPredictor,
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
    _folder_target(request.source, out)
    predictor = batch_predictor.predictor()
    model = predictor.identities
    with locked(out):
        _check_folder(out)
        plan = resume_or_plan(request, predictor.tasks, model, out, watch)
        found = _find_parts(plan, out, watch)
        jobs = {}
        for name, span in plan.parts().items():
            if name not in found.whole:
                stamp = plan.stamps[span.file]
                jobs[name] = PartJob(
                    request, batch_predictor, model, plan.layout, span, stamp, out / name
                )
        result = _run(jobs, plan, found, runner, watch)
        if not result.failures:
            _write_manifest(plan, result)
    return result


@dataclass(frozen=True)
class _FoundParts:
    """The parts that are there: the records of those that are as they were written, and the names
    of the others.
    """

    out: Path
    whole: dict[str, PartRecord]
    damaged: tuple[str, ...]


def _find_parts(plan: FolderPlan, out: Path, watch: Watch) -> _FoundParts:
    stated: dict[str, PartRecord] = {}
    if (out / MANIFEST).is_file():
        stated = read_record(out / MANIFEST, plan.made_from, _parse_records)
    whole, damaged = {}, []
    names = [name for name in plan.parts() if (out / name).is_file()]
    for place, name in enumerate(names):
        watch("checking parts", place, len(names), name)
        record = stated.get(name) or read_part_record(out / name)
        if record is not None and record.sha256 == sha256_of(out / name):
            whole[name] = record
        else:
            damaged.append(name)
    return _FoundParts(out, whole, tuple(damaged))


def _parse_records(manifest: Mapping[str, Any]) -> dict[str, PartRecord]:
    return {name: PartRecord.from_json(own) for name, own in manifest["records"].items()}


def _run(
    jobs: dict[str, PartJob], plan: FolderPlan, found: _FoundParts, runner: Runner, watch: Watch
) -> FolderResult:
    started = time.monotonic()
    n_answered, failures = 0, {}
    for outcome in _outcomes(jobs, found, runner, watch):
        if outcome.error is None:
            n_answered += jobs[outcome.name].span.n_rows
        else:
            failures[outcome.name] = outcome.error
    seconds = time.monotonic() - started
    tally = Tally()
    for name in plan.parts():
        record = found.whole.get(name) or read_part_record(found.out / name)
        if record is not None:
            tally = tally.merge(record.tally)
    n_found = len(found.whole)
    return FolderResult(
        found.out, plan, n_found, found.damaged, n_answered, tally, seconds, failures
    )


def _outcomes(
    jobs: dict[str, PartJob], found: _FoundParts, runner: Runner, watch: Watch
) -> list[Outcome]:
    out, begun = found.out, found.out / BEGUN
    shutil.rmtree(begun, ignore_errors=True)  # deaths of an earlier run do not count
    if not jobs:
        return []
    if (out / MANIFEST).is_file():  # it must not vouch for parts that are missing
        for name, record in found.whole.items():
            write_part_record(out / name, record)
        (out / MANIFEST).unlink()
    for name in found.damaged:
        (out / name).unlink()
    make_folder(begun)
    try:
        return list(runner(jobs, begun, watch))
    except (KeyboardInterrupt, Stopped) as error:
        n_left = sum(not job.file.is_file() for job in jobs.values())
        raise Stopped(
            f"Stopped; {n_left} parts are left to do in {out}. Start the same command again to"
            " go on."
        ) from error
    finally:
        shutil.rmtree(begun, ignore_errors=True)


def _write_manifest(plan: FolderPlan, result: FolderResult) -> None:
    out = result.out
    if not (out / MANIFEST).is_file():  # otherwise nothing was left to do
        records = {}
        for name in plan.parts():
            record = read_part_record(out / name)
            assert record is not None, "it was written with its part"
            records[name] = record.as_json()
        write_record(
            out / MANIFEST,
            plan.made_from,
            litotes=__version__,
            rows=result.tally.n_written,
            parts={name: record["tally"]["n_written"] for name, record in records.items()},
            records=records,
        )
    shutil.rmtree(out / RECORDS, ignore_errors=True)


def _folder_target(source: Path, out: Path) -> None:
    if out.is_file():
        raise UserError(f"{out} is a file; --out needs a folder for the parts.")
    if source.is_dir() and (out == source.resolve() or source.resolve() in out.parents):
        raise UserError(
            f"{out} lies in the folder that is read, {source}: its parts would be read as tables."
            " Choose another --out."
        )


def _check_folder(out: Path) -> None:
    """Refuses a folder that holds other files than ours."""
    foreign = find_foreign_file(out, (PLAN, MANIFEST, BEGUN, RECORDS, LOCK), _PART)
    if foreign is not None:
        raise UserError(
            f"{out} holds {foreign}, which is no part of answers: choose a new folder for --out."
        )
    if not (out / PLAN).is_file() and any(_PART.fullmatch(path.name) for path in out.iterdir()):
        raise UserError(
            f"{out} holds parts, but no {PLAN} that says what they were made from: choose a new"
            " folder for --out."
        )


# One table becomes one file of predictions, in constant memory; a killed run resumes where it was.
#
#     OUT.part/rows         the predictions so far, in the order of the texts
#     OUT.part/state.json   how many of them are safe, their hash, and what they were made from;
#                           written after every chunk, once its rows are on disk
#     OUT                   the finished file, renamed into place
#
# A run that was killed between two states leaves rows that the state does not know: the next run
# cuts
# them off and computes them again. So no row is lost and none is there twice. A pipe or a device
# has
# none of this: it is written to as the predictions come.

ROWS, STATE = "rows", "state.json"
_ROWS_BETWEEN_STATES = 1024
_CHUNK = 1 << 20


def predict_to_file(
    predictor: Predictor, request: TableRequest, out: Path, *, watch: Watch = ignore_progress
) -> FileResult:
    """Writes every row of the only table, with its prediction, to `out`, in a format of lines."""
    line_format = pick(LINE_FORMATS, request.format, "format of lines")
    target = _file_target(request, out)
    layout = make_layout(request, [request.source], predictor.tasks)
    n_total = sum(1 for _ in _input_rows(request, ()))  # reports a bad table now, not after hours
    writer = _RowWriter(line_format, layout, request.bad_rows)
    if target.is_stream:
        tally = _predict_to_stream(predictor, request, out, writer, n_total, watch)
        return FileResult(layout, tally)
    part = target.path.with_name(f"{target.path.name}.part")
    make_own_folder(part)  # rows that are not whole are not for others to read
    with locked(part):
        _check_part(part)
        made_from = _file_made_from(predictor, request, layout)
        safe, hash_so_far = _safe_progress(part, made_from)
        if not safe.n_bytes:
            # left by a run that had finished: it must not vouch for new rows
            (part / STATE).unlink(missing_ok=True)
        with write_errors(part / ROWS), _open_rows(part / ROWS) as stream:
            stream.truncate(safe.n_bytes)
            stream.seek(0, os.SEEK_END)
            rows = _RowFile(part, stream, writer, made_from, safe, hash_so_far)
            if not safe.n_bytes:
                rows.write_header()
            _write_predictions(predictor, request, rows, n_total, watch)
        with write_errors(out):
            (part / ROWS).replace(target.path)
            (part / STATE).unlink()
    with suppress(OSError):  # another process may be about to use it
        part.rmdir()
    return FileResult(layout, rows.tally)


def _file_target(request: TableRequest, out: Path) -> Target:
    target = request.check_target(out)
    if not request.source.is_file():
        require_file(request.source)
        raise UserError(
            f"{request.source} is no ordinary file, which could be read again from its start: save"
            " it to one."
        )
    return target


def _input_rows(request: TableRequest, kept: Sequence[str]) -> Iterator[InputRow]:
    return input_rows(request, request.rows(keeps=kept), kept)


def _check_part(part: Path) -> None:
    foreign = find_foreign_file(part, (ROWS, STATE, LOCK))
    if foreign is not None:
        raise UserError(
            f"{part} is where answers are kept until they are whole, but it holds {foreign}. Move"
            " it away."
        )


def _open_rows(file: Path) -> BinaryIO:
    return os.fdopen(open_own_file(file, os.O_RDWR), "r+b")


def _predict_to_stream(
    predictor: Predictor,
    request: TableRequest,
    out: Path,
    writer: _RowWriter,
    n_total: int,
    watch: Watch,
) -> Tally:
    tally = Tally()
    with write_errors(out), open_stream(out) as stream:
        stream.write(writer.header())
        for row in answer_rows(predictor, _input_rows(request, writer.layout.kept)):
            stream.write(writer.row(row))
            tally = tally.add(row.prediction, request.bad_rows)
            watch("answering", tally.n_read, n_total, "")
    return tally


@dataclass(frozen=True)
class _RowWriter:
    """Answered rows as the bytes of a file. bad_rows: see `BAD_ROWS`."""

    format: LineFormat
    layout: Layout
    bad_rows: str

    def header(self) -> bytes:
        return self.format.header(self.layout).encode()

    def row(self, row: AnsweredRow) -> bytes:
        if not is_written(row.prediction, self.bad_rows):
            return b""
        return self.format.rows(self.layout, [row]).encode()


@dataclass(frozen=True)
class _Progress:
    """What is safe on disk: what became of these rows, so many bytes, and their hash."""

    tally: Tally = field(default_factory=Tally)
    n_bytes: int = 0
    rows_sha256: str = ""


class _RowFile:
    """The file of rows, and the state that says how many of them are safe on disk."""

    def __init__(
        self,
        part: Path,
        stream: BinaryIO,
        writer: _RowWriter,
        made_from: Mapping[str, Any],
        safe: _Progress,
        hash_so_far: Hash,
    ) -> None:
        self.part, self._stream, self._writer = part, stream, writer
        self._made_from, self._hash = made_from, hash_so_far
        self.tally = safe.tally
        self.n_safe = safe.tally.n_read

    def write_header(self) -> None:
        self._write(self._writer.header())

    @property
    def layout(self) -> Layout:
        return self._writer.layout

    def write_row(self, row: AnsweredRow) -> None:
        self._write(self._writer.row(row))
        self.tally = self.tally.add(row.prediction, self._writer.bad_rows)
        if self.tally.n_read - self.n_safe >= _ROWS_BETWEEN_STATES:
            self.make_safe()

    def _write(self, content: bytes) -> None:
        self._stream.write(content)
        self._hash.update(content)

    def make_safe(self) -> None:
        self._stream.flush()
        os.fsync(self._stream.fileno())
        progress = _Progress(self.tally, self._stream.tell(), self._hash.hexdigest())
        write_record(self.part / STATE, self._made_from, **asdict(progress))
        self.n_safe = self.tally.n_read


def _write_predictions(
    predictor: Predictor, request: TableRequest, rows: _RowFile, n_total: int, watch: Watch
) -> None:
    left = islice(_input_rows(request, rows.layout.kept), rows.tally.n_read, None)
    try:
        for row in answer_rows(predictor, left):
            rows.write_row(row)
            watch("answering", rows.tally.n_read, n_total, "")
        rows.make_safe()
    except KeyboardInterrupt as error:
        raise Stopped(
            f"Stopped; {rows.n_safe} rows are kept in {rows.part}. Start the same command again"
            " to go on."
        ) from error


def _file_made_from(predictor: Predictor, request: TableRequest, layout: Layout) -> dict[str, Any]:
    """Everything the predictions depend on; see `resume`."""
    stat = request.source.stat()
    return {
        "file": [request.source.name, stat.st_size, stat.st_mtime_ns],
        **request.made_from(layout),
        "model": list(predictor.identities),
    }


def _safe_progress(part: Path, made_from: Mapping[str, Any]) -> tuple[_Progress, Hash]:
    """What an earlier run made safe, and its hash to go on with: nothing where there was none, or
    it finished.
    """
    if not (part / STATE).is_file() or not (part / ROWS).is_file():
        return _Progress(), sha256()
    progress = read_record(part / STATE, made_from, _parse_progress)
    if (part / ROWS).stat().st_size < progress.n_bytes:
        raise UserError(f"{part / ROWS} is shorter than it was. Delete {part} to begin anew.")
    hash_so_far = _hash_start(part / ROWS, progress.n_bytes)
    if hash_so_far.hexdigest() != progress.rows_sha256:
        raise UserError(f"{part / ROWS} is not as it was written. Delete {part} to begin anew.")
    return progress, hash_so_far


def _parse_progress(state: Mapping[str, Any]) -> _Progress:
    return _Progress(
        Tally.from_json(state["tally"]),
        require_count(state["n_bytes"]),
        str(state["rows_sha256"]),
    )


def _hash_start(file: Path, n_bytes: int) -> Hash:
    """The hash of the first bytes of a file."""
    found = sha256()
    with file.open("rb") as stream:
        while n_bytes > 0 and (chunk := stream.read(min(n_bytes, _CHUNK))):
            found.update(chunk)
            n_bytes -= len(chunk)
    return found


# One table becomes one Parquet file: its parts, which a stopped run keeps, are joined.
#
# OUT.part/    the parts, as `to_folder` keeps them
# OUT          the finished file, renamed into place

_JOINED = "joined"


def predict_to_parquet(
    request: TableRequest,
    batch_predictor: BatchPredictor,
    out: Path,
    *,
    watch: Watch = ignore_progress,
) -> FileResult:
    """Writes every row of the only table, with its prediction, to `out`."""
    target = request.check_target(out)
    if target.is_stream:
        raise UserError(f"{out} is a pipe or a device: a Parquet file is written to a file.")
    parts = target.path.with_name(f"{target.path.name}.part")
    make_folder(parts)
    result = predict_to_folder(request, batch_predictor, parts, runner=local_runner(1), watch=watch)
    for reason in result.failures.values():
        raise UserError(reason)
    with locked(parts), write_errors(out):
        make_folder(parts / BEGUN)  # which the next run removes, should this one be killed
        _join(result, parts / BEGUN / _JOINED)
        (parts / BEGUN / _JOINED).replace(target.path)
    shutil.rmtree(parts, ignore_errors=True)
    return FileResult(result.plan.layout, result.tally)


def _join(result: FolderResult, file: Path) -> None:
    """A part becomes a group of rows."""
    import pyarrow.parquet as pq

    names = list(result.plan.parts())
    schema = pq.read_schema(result.out / names[0])
    with pq.ParquetWriter(file, schema) as writer:
        for name in names:
            writer.write_table(pq.read_table(result.out / name, schema=schema))
