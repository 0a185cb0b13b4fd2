"""`litotes hub push` and `pull`: model folders on the Hugging Face Hub; `litotes score`: the shared
task.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from litotes.cli.display import print_json, print_lines, progress, say
from litotes.cli.inputs import load_predictors
from litotes.core.errors import UserError
from litotes.core.numbers import counted
from litotes.core.storage import find_target, write_json
from litotes.evaluation.shared_task import ANSWER, TASKS, answer, score_files, write_submission
from litotes.model import hub
from litotes.model.builtin import BUILTIN


def push(options: argparse.Namespace) -> None:
    pushed = hub.push(
        options.model, options.name, private=not options.public, message=options.message
    )
    say([f"Not uploaded: {', '.join(pushed.left_out)}."] if pushed.left_out else [])
    if options.json:
        print_json(pushed.as_json())
        return
    print_lines(
        f"Pushed {counted(len(pushed.files), 'file')} to {pushed.name}, commit {pushed.revision}.",
        f"Pull it: litotes hub pull {pushed.name}@{pushed.revision} --out FOLDER",
    )


def pull(options: argparse.Namespace) -> None:
    with progress() as watch:
        pulled = hub.pull(options.name, options.out, watch=watch)
    say(pulled.notes)
    if options.json:
        print_json(pulled.as_json())
        return
    print_lines(
        f"{counted(len(pulled.files), 'file')} of {pulled.name}@{pulled.revision} in"
        f" {pulled.folder}, checked.",
        f"Use it: litotes predict --model {pulled.folder} TEXT",
    )


def score(options: argparse.Namespace) -> None:
    if options.submit is not None:
        _submit(options)
        return
    if options.predictions is None:
        raise UserError(
            "Give PREDICTIONS and GOLD to score a file, or --submit FILE to answer one."
        )
    result = score_files(options.predictions, options.gold, seed=options.seed or 0)
    if options.out:
        write_json(Path(options.out) / "score.json", result.as_json())
    say(result.notes())
    if options.json:
        print_json(result.as_json())
    else:
        print_lines(*result.lines())


def _submit(options: argparse.Namespace) -> None:
    """Answers the shared task's texts and writes the archive to hand in."""
    out = _archive(options)
    predictors = load_predictors(options, options.model or [BUILTIN])
    with progress() as watch:
        submission = answer(options.submit, predictors, watch=watch)
    write_submission(submission, out)
    say(submission.notes)
    counts = {
        task.name: {label: submission.count(task.name, n) for n, label in enumerate(task.labels)}
        for task in TASKS
    }
    n_rows = len(submission.rows)
    if options.json:
        notes = list(submission.notes)
        print_json({"file": str(out), "n": n_rows, "answers": counts, "notes": notes})
        return
    for task, by_label in counts.items():
        print_lines(f"{task}: " + ", ".join(f"{n} {label}" for label, n in by_label.items()))
    rows = counted(n_rows, "row")
    print_lines(f"{out} holds {ANSWER} with {rows}, compared with {options.submit}.")


def _archive(options: argparse.Namespace) -> Path:
    out = Path(options.out or "answer.zip")
    if out.suffix.lower() != ".zip":
        raise UserError(f"--out {out}: name the archive to write, for example --out answer.zip.")
    if out.with_name(ANSWER).resolve() == options.submit.resolve():
        raise UserError(
            f"--out {out}: {ANSWER} is written into the same folder and would replace"
            f" {options.submit}. Write into another folder."
        )
    for file in (out, out.with_name(ANSWER)):
        find_target(file)
    return out
