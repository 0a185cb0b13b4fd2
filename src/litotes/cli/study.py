"""`litotes study FILE`: a whole grid of runs, resumable, then one report."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.numbers import count
from litotes.core.machine import sleep_while_waiting

if TYPE_CHECKING:
    from litotes.study.plan import Study
    from litotes.study.report import Report
    from litotes.study.runs import StudyRuns

ABOUT = """\
Runs a whole grid of trainings from one file, in processes or on Ray, and writes one report with
tests of every difference. A stopped study goes on where it was.
"""
EXAMPLE = "litotes study recipes/study_quick.toml --workers 2 --out runs/study"
USES = ("json", "seed", "out", "device")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="a TOML file; see recipes/study_quick.toml"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a setting, e.g. recipe.training.epochs=3",
    )
    parser.add_argument(
        "--workers",
        type=count,
        metavar="N",
        help="runs at the same time (default: 1 on a CPU, as many as fit on a GPU)",
    )
    parser.add_argument(
        "--on",
        choices=("here", "ray"),
        default="here",
        help="on this machine or on a Ray cluster (default: here)",
    )


def run(options: argparse.Namespace) -> None:
    sleep_while_waiting()  # torch, imported below, would have them spin
    from litotes.cli.display import print_json, progress, say
    from litotes.core.errors import UserError
    from litotes.study.report import report_study
    from litotes.study.runs import execute
    from litotes.study.vocabulary import count_vocabularies

    study = _read(options)
    out = Path(options.out) if options.out else Path("runs") / options.file.stem
    vocabularies = count_vocabularies(study)  # before the long work: a wrong path shows at once
    with progress() as watch:
        runs = execute(
            study, out, n_workers=options.workers, on=options.on, device=options.device, watch=watch
        )
        report = report_study(study, runs, vocabularies, out, watch=watch)
    say(f"failed: {name}: {reason}" for name, reason in report.failures.items())
    if options.json:
        print_json(report.as_json())
    else:
        _print(report, runs, out)
    if report.failures:
        raise UserError(
            f"{len(report.failures)} of {report.n_runs} runs failed; start the command again to try"
            " them again."
        )


def _read(options: argparse.Namespace) -> Study:
    from litotes.core.errors import UserError
    from litotes.study.plan import read_study

    if options.on == "ray" and options.workers not in (None, 1):
        raise UserError(
            "--workers is for this machine; on a Ray cluster as many runs work as it has places"
            " for. Leave it out."
        )
    changes = list(options.set)
    if options.seed is not None:
        changes.append(f"recipe.seed={options.seed}")
    return read_study(options.file, changes=changes)


def _print(report: Report, runs: StudyRuns, out: Path) -> None:
    from litotes.cli.display import print_lines
    from litotes.cli.matrix import print_matrix

    for section in report.sections:
        print_lines("", section.name)
        for table in section.results.tables:
            print_matrix(table.matrix, title=table.title)
    print_lines(*report.abstract, "")
    print_lines(f"{runs.n_found} of {len(runs.jobs)} runs were found done.")
    print_lines(
        f"Report: {out / 'report.html'}   numbers: {out / 'report.json'}   times:"
        f" {out / 'timing.json'}   figures: {out / 'figures'}"
    )
