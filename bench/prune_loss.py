"""Whether a pruning can be trusted: how often it is accepted, what was expected, what came true.

    python bench/prune_loss.py DATA --out runs/prune-loss [--seeds 5] [--cases google,sst2]
        [--folds 4] [--no-control] [--sure 0.8] [--device cuda] [--workers 10] [--quick]
    python bench/prune_loss.py DATA --out runs/prune-base --encoder mpnet --learning-rate 3e-5
        --targets 2,3,4 --seeds 3 --cases google,reddit,sarcasm
        [--heads 1] [--epochs 12] [--settle 8] [--other-texts]

DATA holds besstie/ and glue/. For every case (Google and Reddit sentiment, Reddit sarcasm, SST-2)
and seed: a dense model, then `prune --loss 0.5`. The truth is the test split (BESSTIE's and SST-2's
valid texts); of SST-2 4,000 texts are learned from and 10,000 others report as well. Each run
leaves OUT/CASE-SEED.json, and what has one is not run again; a run that was stopped goes on.
OUT/summary.json says for each case how many were accepted, the expected and the true loss of the
chosen settings, and how often intervals cover: of all settings, with the error of the truth itself
allowed for. --other-texts: the dense model's answers to BESSTIE's other training texts are learned
from as well. --quick: 240 texts, an epoch of each phase; to see that it works, not for figures.
"""

from __future__ import annotations

import argparse
import csv
import math
import random
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from litotes.core.json_text import load_json
from litotes.core.machine import machine
from litotes.core.storage import write_json
from litotes.core.values import Example
from litotes.data.keys import text_key
from litotes.data.sources import load
from litotes.pruning import PruneResult, PruneSettings, prune
from litotes.pruning.frontier import Point
from litotes.training.recipe import Recipe
from litotes.training.run import train

N_SST2 = 4000
N_FRESH = 10_000
N_QUICK = 240
DENSE = {
    "training__epochs": 8,
    "training__batch_texts": 32,
    "training__held_out": 0.1,
    "training__reserved": 0.15,
}


@dataclass(frozen=True)
class Case:
    """Texts to prune for. n_most: training texts; the others report."""

    source: str
    task: str
    where: str | None = None
    n_most: int | None = None


CASES = {
    "google": Case("besstie:{data}/besstie", "sentiment", "Google"),
    "reddit": Case("besstie:{data}/besstie", "sentiment", "Reddit"),
    "sarcasm": Case("besstie:{data}/besstie", "sarcasm", "Reddit"),
    "sst2": Case("glue/sst2:{data}/glue", "sentiment", None, N_SST2),
}


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parse(arguments)
    out: Path = options.out
    waiting = []
    for name in options.cases.split(","):
        folder = out / "tables" / name
        more = other_texts(CASES[name], options.data) if options.other_texts else []
        tables = write_tables(CASES[name], options.data, folder, more, quick=options.quick)
        waiting += [
            (options, name, seed, tables)
            for seed in range(options.seeds)
            if not _file(options, name, seed).is_file()
        ]
    waiting.sort(key=lambda job: job[2])  # stopped early, every case has as many seeds
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for file in as_completed([pool.submit(run_and_keep, *job) for job in waiting]):
            print(file.result(), flush=True)
    files = sorted(out.glob("*-*.json"))
    summary = {"machine": machine(), "cases": summarize([load_json(file) for file in files])}
    write_json(out / "summary.json", summary)
    for name, row in summary["cases"].items():
        print(name, row)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--loss", type=float, default=0.5)
    parser.add_argument("--sure", type=float)
    parser.add_argument("--folds", type=int, default=4)
    parser.add_argument("--no-control", action="store_true", help="no dense model trained on")
    parser.add_argument("--device")
    parser.add_argument("--workers", type=int, default=1, help="runs at the same time")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--learning-rate", type=float, default=8e-5, help="of the dense model")
    parser.add_argument("--targets", help="times fewer operations, with commas between")
    parser.add_argument("--heads", type=float, help="as `litotes prune` has it")
    parser.add_argument("--epochs", type=int, help="likewise")
    parser.add_argument("--settle", type=int, help="likewise")
    parser.add_argument("--other-texts", action="store_true", help="of BESSTIE, without labels")
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args(arguments)


def other_texts(case: Case, data: Path) -> list[Example]:
    """The source's training texts that the case does not have, without labels, and none that is
    tested on.
    """
    corpus = load(case.source.format(data=data))
    own = {text_key(one.text) for one in corpus.where(source=case.where, task=case.task)}
    tested = {text_key(one.text) for one in corpus.where(split="valid")}
    others = {text_key(one.text): one for one in corpus.where(split="train")}
    return [replace(one, labels={}) for key, one in others.items() if key not in own | tested]


def write_tables(
    case: Case, data: Path, folder: Path, more: Sequence[Example] = (), *, quick: bool
) -> dict[str, str]:
    """Sources for pruning: the texts of the case with `more`, which have no labels, and, where it
    has more than it learns from, fresh ones that report.
    """
    corpus = load(case.source.format(data=data)).where(source=case.where, task=case.task)
    parts = {split: corpus.where(split=split).examples for split in ("train", "valid")}
    learned = random.Random(0).sample(parts["train"], len(parts["train"]))
    n_most = N_QUICK if quick else case.n_most
    fresh = learned[n_most : n_most + (N_QUICK if quick else N_FRESH)] if n_most else []
    tested = parts["valid"][:N_QUICK] if quick else parts["valid"]
    folder.mkdir(parents=True, exist_ok=True)
    tables = {"data": _write_table(folder / "texts.csv", case, [*learned[:n_most], *tested])}
    if more:
        tables["data"] += f" + {_write_texts(folder / 'others.csv', more)}"
    if fresh:
        tables["held_out"] = _write_table(folder / "fresh.csv", case, fresh)
    return tables


def _write_table(file: Path, case: Case, examples: Sequence[Example]) -> str:
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text", "answer", "variety", "split"])
        for example in examples:
            answer = example.labels[case.task]
            writer.writerow([example.text, answer, example.variety or "", example.split])
    variety = "&variety=variety" if examples[0].variety else ""
    return f"table:{file}?label.{case.task}=answer{variety}&split=split"


def _write_texts(file: Path, examples: Sequence[Example]) -> str:
    """A table of texts alone."""
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text", "split"])
        writer.writerows([one.text, one.split] for one in examples)
    return f"table:{file}?split=split"


def _file(options: argparse.Namespace, name: str, seed: int) -> Path:
    """Where a run leaves its figures."""
    out: Path = options.out
    return out / f"{name}-{seed}.json"


def run_and_keep(options: argparse.Namespace, name: str, seed: int, tables: dict[str, str]) -> Path:
    file = _file(options, name, seed)
    write_json(file, run_one(options, name, seed, tables))
    return file


def run_one(
    options: argparse.Namespace, name: str, seed: int, tables: dict[str, str]
) -> dict[str, Any]:
    """One dense model and its pruning."""
    started = time.monotonic()
    work = options.out / "work" / f"{name}-{seed}"
    recipe = Recipe().changed(seed=seed, data__source=tables["data"], **DENSE)
    rate = options.learning_rate
    recipe = recipe.changed(model__encoder=options.encoder, training__learning_rate=rate)
    settings = PruneSettings(
        loss=options.loss,
        sure=options.sure,
        folds=options.folds,
        control=not options.no_control,
        seed=seed,
        held_out=tables.get("held_out"),
    )
    if options.targets:
        settings = replace(settings, targets=tuple(map(float, options.targets.split(","))))
    named = {"heads": options.heads, "epochs": options.epochs, "settle_epochs": options.settle}
    settings = replace(
        settings, **{name: value for name, value in named.items() if value is not None}
    )
    if options.quick:
        recipe = recipe.changed(training__epochs=1, model__max_pieces=32)
        settings = replace(settings, targets=(1.5, 2.5), epochs=1, settle_epochs=1)
    train(recipe, work / "dense", device=options.device, resume=True)
    if (work / "pruned" / "litotes.json").is_file():
        shutil.rmtree(work / "pruned")  # finished, but stopped before its file was written
    pruned = prune(
        work / "dense", tables["data"], work / "pruned", settings=settings, device=options.device
    )
    shutil.rmtree(work)
    seconds = time.monotonic() - started
    return {"case": name, "seed": seed, "quick": options.quick, **as_row(pruned, seconds)}


def as_row(pruned: PruneResult, seconds: float) -> dict[str, Any]:
    """What is kept of a run."""
    chosen = pruned.chosen
    return {
        "accepted": chosen is not None,
        "chosen": None if chosen is None else chosen.as_json(),
        "refusal": pruned.refusal() if chosen is None else None,
        "covered": [covers(point) for point in pruned.points if point.kind != "dense"],
        "seconds": seconds,
        **pruned.as_json(),
    }


def covers(point: Point) -> bool | None:
    """Whether the interval of what was expected covers the truth, whose own error is allowed for;
    None where the truth is not known.
    """
    truth = point.reported or point.test_loss
    if truth is None:
        return None
    expected = point.best_guess
    errors = [error_of(expected.interval), error_of(truth.interval)]
    return abs(expected.points - truth.points) <= 1.96 * math.hypot(*errors)


def error_of(interval: Sequence[float]) -> float:
    """The standard error behind an interval of 95 %."""
    low, high = interval
    return (high - low) / 3.92


def true_loss(point: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of a point that was written down, on texts without a part in the choice: fresh ones, or the
    test split.
    """
    found: Mapping[str, Any] = point["reported"] or point["test_loss"]
    return found


def summarize(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By case, and over all of them."""
    by_case: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        for name in (row["case"], "all"):
            by_case.setdefault(name, []).append(row)
    return {name: _summary(some) for name, some in by_case.items()}


def _summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    chosen = [row["chosen"] for row in rows if row["accepted"]]
    true = [true_loss(point)["points"] for point in chosen]
    expected = [point["expected"]["points"] for point in chosen]
    covered = [one for row in rows for one in row["covered"] if one is not None]
    budget = rows[0]["budget"]["loss"]
    return {
        "runs": len(rows),
        "accepted": len(chosen),
        "times_fewer_operations": _mean([point["flops_ratio"] for point in chosen]),
        "expected_loss": _mean(expected),
        "true_loss": _mean(true),
        "true_losses": true,
        "true_within_budget": _mean([float(loss <= budget) for loss in true]),
        "said_within_budget": _mean([point["expected"]["chance_within"] for point in chosen]),
        "coverage": _mean([float(one) for one in covered]),
        "intervals": len(covered),
    }


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


if __name__ == "__main__":
    main()
