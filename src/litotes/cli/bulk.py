"""`litotes predict --file F --on here|ray --out FOLDER`: tables of any size, part by part."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.numbers import count

if TYPE_CHECKING:
    from litotes.prediction.predictor import BatchPredictor
    from litotes.prediction.table_jobs import FolderResult, Runner
    from litotes.prediction.tables import TableRequest

_ONLY_WITH_ON = ("address", "workers", "rows_per_part")


def add_bulk_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "many rows, part by part", "--file F may then be a folder of tables, and --out is a folder"
    )
    group.add_argument("--on", choices=("here", "ray"), help="on this machine, or on a Ray cluster")
    group.add_argument(
        "--address",
        metavar="A",
        help="of the cluster (default: $RAY_ADDRESS, or else one of this machine's cores)",
    )
    group.add_argument(
        "--workers",
        type=count,
        metavar="N",
        help="processes with a model each (default: here 1, on Ray one a core)",
    )
    group.add_argument(
        "--rows-per-part", type=count, metavar="N", help="rows in a file of answers (default: 5000)"
    )


def reject_bulk_options(options: argparse.Namespace) -> None:
    """Without --on, options that need it are a mistake."""
    from litotes.core.errors import UserError

    for name in _ONLY_WITH_ON:
        if getattr(options, name):
            raise UserError(
                f"--{name.replace('_', '-')} is for answers in parts: add --on here or --on ray."
            )


def run_bulk(options: argparse.Namespace, request: TableRequest) -> None:
    from litotes.cli.display import print_json, progress, say
    from litotes.core.errors import UserError
    from litotes.prediction.table_jobs import predict_to_folder

    predictor = batch_predictor(options)
    say(predictor.predictor().notes)
    if options.verbose:
        say(predictor.predictor().describe())
    out, runner = Path(options.out), _runner(options)
    with progress() as watch:
        result = predict_to_folder(request, predictor, out, runner=runner, watch=watch)
    say(f"failed: {name}: {reason}" for name, reason in result.failures.items())
    if options.json:
        print_json(result.as_json())
    else:
        say(result.plan.layout.notes(options.prefix))
        say([_summary(result), *result.tally.sentences(options.bad_rows)])
    if result.failures:
        reason = next(iter(result.failures.values()))
        raise UserError(
            f"{len(result.failures)} of {len(result.plan.spans)} parts failed, the others are in"
            f" {result.out}. {reason}"
        )


def check_bulk_options(options: argparse.Namespace) -> None:
    from litotes.core.errors import UserError

    if options.file is None or options.out is None:
        raise UserError(
            "--on answers tables in parts: name the table or folder (--file F) and a folder for the"
            " answers (--out FOLDER)."
        )
    if options.format == "table":
        raise UserError(
            "A table is for a person to read: with --on choose --format parquet, jsonl or csv."
        )
    if options.address is not None and options.on != "ray":
        raise UserError("--address is that of a Ray cluster: add --on ray.")


def batch_predictor(options: argparse.Namespace) -> BatchPredictor:
    """With --on on the CPU by default, so that all workers compute the same, on any machine."""
    from litotes.core.jobs import threads_per_worker
    from litotes.prediction.predictor import BatchPredictor

    n_workers = options.workers or 1
    if options.on == "ray":
        n_cores = 1
    elif n_workers > 1:
        n_cores = threads_per_worker(n_workers)
    else:
        n_cores = None  # all of them
    return BatchPredictor(
        options.model,
        device=options.device if options.on is None else options.device or "cpu",
        runtime=options.runtime,
        n_cores=n_cores,
        variety=options.variety,
        precision=options.precision,
    )


def _runner(options: argparse.Namespace) -> Runner:
    from litotes.prediction.table_jobs import local_runner, ray_runner

    if options.on == "here":
        return local_runner(options.workers or 1)
    n_gpus = 1 if (options.device or "").startswith("cuda") else 0
    return ray_runner(options.workers, options.address, n_gpus=n_gpus)


def _summary(result: FolderResult) -> str:
    found = f" Parts that were there before: {result.n_found}." if result.n_found else ""
    if result.damaged:
        found += f" Damaged since, and made again: {', '.join(result.damaged)}."
    return (
        f"{result.n_answered} of {result.plan.n_rows} rows answered in {result.seconds:.0f} s:"
        f" {result.out}.{found}"
    )
