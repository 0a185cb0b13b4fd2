"""A table or a folder of tables becomes a folder of predictions in parts, in the order of the rows.

    OUT/plan.json             which rows become which part, and what they are made from
    OUT/part-00000.parquet …  the predictions; a part is there when it is whole
    OUT/records/              the hash of each part that was made, until the manifest says it
    OUT/begun/                which worker has begun which part on Ray, while it runs
    OUT/manifest.json         written last: the folder is complete

Whatever is killed, the same command resumes: parts that are there as they were written are not made
again, and no part is ever there in halves.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from litotes.core.errors import Stopped, UserError
from litotes.core.jobs import Outcome, run_jobs
from litotes.core.progress import Watch, ignore_progress
from litotes.core.ray_jobs import map_on_ray
from litotes.core.storage import LOCK, MANIFEST, find_foreign_file, locked, make_folder, sha256_of
from litotes.core.version import __version__
from litotes.prediction.batch_predictor import BatchPredictor
from litotes.prediction.tables.answered_rows import Tally
from litotes.prediction.tables.folder_plan import PLAN, FolderPlan, resume_or_plan
from litotes.prediction.tables.part import (
    RECORDS,
    PartJob,
    PartRecord,
    predict_part,
    read_part_record,
    write_part_record,
)
from litotes.prediction.tables.request import TableRequest
from litotes.prediction.tables.resume import read_record, write_record

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
    _check_target(request.source, out)
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


def _check_target(source: Path, out: Path) -> None:
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
