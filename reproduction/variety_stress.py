"""Which features break models that know one variety, and does training with features help?

    python -m reproduction.variety_stress --besstie PATH --encoder minilm --encoder mpnet=FOLDER
        --out runs/variety_stress --workers 12 --device cuda

Each encoder is trained on the Reddit comments of one variety of BESSTIE, for sentiment and for
sarcasm, with three seeds, and each of these twice: plain, and with half of the training texts
rewritten by features that are common in the other varieties (`data.rewrites`). All settings are
those of `study_encoders.toml`, which were fixed on training texts. Every model answers the real
validation comments of every variety, and up to 50 of them under every feature and its control.

A run is a file, OUT/runs/NAME.json; what is there is not run again. At the end, or with --summary
alone, OUT/variety_stress.json says what came out (`variety_summary.py`), which
`python -m reproduction.variety_page OUT/variety_stress.json` turns into a section of
docs/results/stress.md with its figure. --set changes the recipe: --set training.epochs=1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.jobs import run_jobs, threads_per_worker
from litotes.core.machine import sleep_while_waiting
from litotes.core.storage import write_json
from litotes.data.tasks import SARCASM, SENTIMENT
from litotes.training.recipe import Recipe, apply_changes, recipe_of
from reproduction.printed_progress import PrintedProgress
from reproduction.variety_jobs import (
    SOURCE,
    VARIETIES,
    CaseJob,
    VarietyJob,
    foreign_rewrites,
    make_cases,
    run_variety_job,
    studied_rewrites,
)
from reproduction.variety_summary import summarise

HEADS = {SENTIMENT.name: "linear", SARCASM.name: "mean"}
LEARNING_RATES = {"minilm": 5e-5}
LARGER = 3e-5
"""The learning rate of every other encoder."""


def main(words: Sequence[str] | None = None) -> None:
    options = _parse(words)
    out: Path = options.out.resolve()
    if not options.summary:
        sleep_while_waiting()
        _run(options, out)
    files = sorted((out / "runs").glob("*.json"))
    content = summarise(files, json.loads((out / "cases.json").read_text("utf-8")))
    write_json(out / "variety_stress.json", content)
    print(out / "variety_stress.json")


def plan(options: argparse.Namespace, out: Path) -> dict[str, VarietyJob]:
    """All runs by name, those of the first encoder first; a seed is whole before the next."""
    n_threads = threads_per_worker(options.workers)
    jobs = {}
    for encoder in options.encoder:
        label, folder = _encoder(encoder)
        for seed in range(options.seeds):
            for recipe, is_augmented in _recipes(options, label, folder, seed):
                (task,) = recipe.data.tasks or ()
                job = VarietyJob(
                    encoder=label,
                    task=task,
                    trained_on=str(recipe.data.where.variety),
                    is_augmented=is_augmented,
                    seed=seed,
                    recipe=recipe,
                    folder=out,
                    n_threads=n_threads,
                    device=options.device,
                )
                jobs[job.name] = job
    return jobs


def _recipes(
    options: argparse.Namespace, label: str, folder: str, seed: int
) -> Iterator[tuple[Recipe, bool]]:
    for task, head in HEADS.items():
        for variety in VARIETIES:
            for is_augmented in (False, True):
                content = Recipe().model_dump()
                content["seed"] = seed
                content["data"] |= {
                    "source": _source(options),
                    "tasks": [task],
                    "where": {"variety": variety, "source": SOURCE},
                    "rewrites": foreign_rewrites(variety) if is_augmented else [],
                }
                content["model"] |= {"encoder": folder, "head": head}
                rate = LEARNING_RATES.get(label, LARGER)
                content["training"] |= {"learning_rate": rate, "held_out": 0.0}
                content["training"]["calibration"] = "none"
                apply_changes(content, options.set)
                yield recipe_of(content, "variety_stress"), is_augmented


def _run(options: argparse.Namespace, out: Path) -> None:
    jobs = plan(options, out)
    _prepare(options, out)
    todo = {name: job for name, job in jobs.items() if not job.file.is_file()}
    failures = {}
    for outcome in run_jobs(
        todo, run_variety_job, n_workers=options.workers, watch=PrintedProgress()
    ):
        if outcome.error is not None:
            failures[outcome.name] = outcome.error
    for name, reason in failures.items():
        print(f"failed: {name}: {reason}", file=sys.stderr)
    if failures:
        raise SystemExit(f"{len(failures)} of {len(jobs)} runs failed; start again to try them.")


def _prepare(options: argparse.Namespace, out: Path) -> None:
    """Rewrites the texts, once for all models."""
    if (out / "cases.json").is_file():
        return
    jobs = {}
    for name in studied_rewrites():
        file = out / "cases" / f"{name}.json"
        jobs[name] = CaseJob(name, _source(options), options.texts, file)
    todo = {name: job for name, job in jobs.items() if not job.file.is_file()}
    workers, what = options.workers, "rewrites"
    for outcome in run_jobs(
        todo, make_cases, n_workers=workers, watch=PrintedProgress(), what=what
    ):
        if outcome.error is not None:
            raise UserError(f"{outcome.name}: {outcome.error}")
    cases = []
    for job in jobs.values():
        cases += json.loads(job.file.read_text("utf-8"))
    write_json(out / "cases.json", cases)


def _source(options: argparse.Namespace) -> str:
    return f"besstie:{options.besstie.resolve()}"


def _encoder(text: str) -> tuple[str, str]:
    """What it is called, and its name or folder: `mpnet`, `mpnet=FOLDER`, or `FOLDER`."""
    label, equals, folder = text.partition("=")
    if equals:
        return label, folder
    return Path(text).name, text


def _parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--besstie", type=Path, help="the folder of BESSTIE")
    parser.add_argument("--encoder", action="append", default=[], metavar="NAME[=FOLDER]")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--texts", type=int, default=50, help="under each rewrite, at most")
    parser.add_argument("--device")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--summary", action="store_true", help="nothing but the summary")
    options = parser.parse_args(words)
    if not options.summary and not (options.besstie and options.encoder):
        parser.error("give --besstie PATH and at least one --encoder, or --summary")
    return options


if __name__ == "__main__":
    main()
