"""`litotes submit --model M --data FILE.csv --out answer.zip`: an entry to the shared task."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.options import add_runtime, add_verbose
from litotes.cli.predictors import load_predictors

if TYPE_CHECKING:
    from litotes.core.values import Task
    from litotes.evaluation.shared_task import Submission

ABOUT = """\
Answers the shared task's texts with a model and writes the file to hand in, checked row by row
against what the organisers' script accepts.
"""
EXAMPLE = "litotes submit --model runs/mine --data valid.csv --out answer.zip"
USES = ("json", "out", "device")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        required=True,
        action="append",
        metavar="M",
        help="a model folder; twice for one model per task",
    )
    parser.add_argument(
        "--data",
        required=True,
        type=Path,
        metavar="FILE.csv",
        help="source,variety,text (.csv, .csv.gz); labels are not read",
    )
    add_runtime(parser)
    add_verbose(parser)


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_lines, progress, say
    from litotes.core.numbers import counted
    from litotes.evaluation.shared_task import ANSWER, TASKS, answer, write_submission

    out = _archive(options)
    predictors = load_predictors(options, options.model)
    with progress() as watch:
        submission = answer(options.data, predictors, watch=watch)
    write_submission(submission, out)
    say(submission.notes)
    counts = {task.name: _count_labels(submission, task) for task in TASKS}
    n_rows = len(submission.rows)
    if options.json:
        notes = list(submission.notes)
        print_json({"file": str(out), "n": n_rows, "answers": counts, "notes": notes})
        return
    for task, by_label in counts.items():
        print_lines(f"{task}: " + ", ".join(f"{n} {label}" for label, n in by_label.items()))
    print_lines(
        f"{out} holds {ANSWER} with {counted(n_rows, 'row')}, compared with {options.data}."
    )


def _count_labels(submission: Submission, task: Task) -> dict[str, int]:
    return {label: submission.count(task.name, n) for n, label in enumerate(task.labels)}


def _archive(options: argparse.Namespace) -> Path:
    from litotes.core.errors import UserError
    from litotes.core.storage import find_target
    from litotes.evaluation.shared_task import ANSWER

    out = Path(options.out or "answer.zip")
    if out.suffix.lower() != ".zip":
        raise UserError(f"--out {out}: name the archive to write, for example --out answer.zip.")
    if out.with_name(ANSWER).resolve() == options.data.resolve():
        raise UserError(
            f"--out {out}: {ANSWER} is written into the same folder and would replace"
            f" {options.data}. Write into another folder."
        )
    for file in (out, out.with_name(ANSWER)):
        find_target(file)
    return out
