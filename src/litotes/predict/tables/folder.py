"""Bulk scoring: a table or a folder of tables becomes a folder of answers, in the order of the
rows.

    OUT/plan.json             which rows become which part, and what they are made from
    OUT/part-00000.parquet …  the answers; a part is there when it is whole
    OUT/begun/                who has begun which part on Ray, while it runs
    OUT/manifest.json         written last: the folder is complete

Whatever is killed, the same command goes on: parts that are there are not made again, and a part is
never there in halves.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from litotes.core.errors import Stopped, UserError
from litotes.core.progress import Watch, unwatched
from litotes.core.storage import LOCK, MANIFEST, clear_staged, is_staged, locked, write_json
from litotes.core.version import __version__
from litotes.predict.batch_predictor import BatchPredictor
from litotes.predict.tables.part import PartJob, work
from litotes.predict.tables.plan import PLAN, Plan, begun_or_new
from litotes.predict.tables.request import Request
from litotes.scale.jobs import run_jobs
from litotes.scale.on_ray_data import map_on_ray
from litotes.scale.outcomes import Outcome

BEGUN = "begun"
_PART = re.compile(r"part-\d{5,}\.(parquet|jsonl|csv)")

Runner = Callable[[dict[str, PartJob], Path, Watch], Iterator[Outcome]]
"""runner(jobs, begun, watch): does the parts somewhere. begun: a folder for its traces."""


@dataclass(frozen=True)
class Scored:
    """What became of it. n_found: parts that were there before; failures: why a part is not there,
    by its name.
    """

    out: Path
    plan: Plan
    n_found: int
    n_answered: int
    seconds: float
    failures: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        rate = self.n_answered / self.seconds if self.seconds else 0.0
        return {
            "out": str(self.out),
            "rows": self.plan.n_rows,
            "parts": len(self.plan.spans),
            "parts_found": self.n_found,
            "rows_answered": self.n_answered,
            "seconds": round(self.seconds, 1),
            "rows_per_second": round(rate, 1),
            "failures": self.failures,
        }


def here(n_workers: int) -> Runner:
    """In this process, or in several of this machine."""

    def run(jobs: dict[str, PartJob], begun: Path, watch: Watch) -> Iterator[Outcome]:
        return run_jobs(jobs, work, n_workers=n_workers, watch=watch, what="parts")

    return run


def on_ray(n_workers: int | None, address: str | None, *, n_gpus: float = 0) -> Runner:
    """On a cluster, or on one of this machine's cores; None: as many workers as there are places."""

    def run(jobs: dict[str, PartJob], begun: Path, watch: Watch) -> Iterator[Outcome]:
        begin = partial(
            map_on_ray, n_workers=n_workers, address=address, n_gpus=n_gpus, what="parts"
        )
        return begin(jobs, work, begun=begun, watch=watch)

    return run


def score_tables(
    request: Request, asked: BatchPredictor, out: Path, *, runner: Runner, watch: Watch = unwatched
) -> Scored:
    """Answers every row that has no answer yet.

    Bad parts are collected in `failures`; the others are done all the same.
    """
    # other processes may stand elsewhere
    out, request = out.resolve(), replace(request, source=request.source.resolve())
    _check_target(request.source, out)
    predictor = asked.predictor()
    request.check_names(predictor.tasks)
    model = tuple(runtime.identity() for runtime in predictor.runtimes)
    with locked(out):
        _check_folder(out)
        clear_staged(out)
        plan = begun_or_new(request, model, out, watch)
        spans = dict(zip(plan.names(), plan.spans, strict=True))
        todo = {
            name: PartJob(
                request, asked, model, plan.key_type, span, plan.stamps[span.file], out / name
            )
            for name, span in spans.items()
            if not (out / name).is_file()
        }
        started = time.monotonic()
        outcomes = _done(todo, out, runner, watch)
        seconds = time.monotonic() - started
        failures = {
            outcome.name: outcome.error for outcome in outcomes if outcome.error is not None
        }
        n_answered = sum(
            spans[outcome.name].n_rows for outcome in outcomes if outcome.error is None
        )
        if not failures:
            write_json(out / MANIFEST, _manifest(plan))
    return Scored(out, plan, len(spans) - len(todo), n_answered, seconds, failures)


def _done(todo: dict[str, PartJob], out: Path, runner: Runner, watch: Watch) -> list[Outcome]:
    begun = out / BEGUN
    shutil.rmtree(begun, ignore_errors=True)  # deaths of an earlier run do not count
    if not todo:
        return []
    (out / MANIFEST).unlink(missing_ok=True)  # it must not speak for parts that are not there
    begun.mkdir()
    try:
        return list(runner(todo, begun, watch))
    except (KeyboardInterrupt, Stopped) as error:
        n_left = sum(not job.file.is_file() for job in todo.values())
        raise Stopped(
            f"Stopped; {n_left} parts are left to do in {out}. Start the same command again to"
            " go on."
        ) from error
    finally:
        shutil.rmtree(begun, ignore_errors=True)


def _manifest(plan: Plan) -> dict[str, Any]:
    sizes = {name: span.n_rows for name, span in zip(plan.names(), plan.spans, strict=True)}
    return {
        "litotes": __version__,
        "rows": plan.n_rows,
        "parts": sizes,
        "made_from": plan.made_from,
    }


def _check_target(source: Path, out: Path) -> None:
    if out.is_file():
        raise UserError(f"{out} is a file; --out needs a folder for the parts.")
    if source.is_dir() and (out == source.resolve() or source.resolve() in out.parents):
        raise UserError(
            f"{out} lies in the folder that is read, {source}: its parts would be read as tables."
            " Choose another --out."
        )


def _check_folder(out: Path) -> None:
    """Nothing is written among somebody else's files."""
    for path in out.iterdir():
        if (
            path.name not in (PLAN, MANIFEST, BEGUN, LOCK)
            and not _PART.fullmatch(path.name)
            and not is_staged(path)
        ):
            raise UserError(
                f"{out} holds {path.name}, which is no part of answers: choose a new folder for"
                " --out."
            )
    if not (out / PLAN).is_file() and any(_PART.fullmatch(path.name) for path in out.iterdir()):
        raise UserError(
            f"{out} holds parts, but no {PLAN} that says what they were made from: choose a new"
            " folder for --out."
        )
