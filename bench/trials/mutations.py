"""Damaged tables, recipes and state files, run through the public commands: no traceback, no
character that steers a terminal, and an exit code that is documented.

    python bench/trials/mutations.py --n 2000 --seed 0

A run ends with 0, or with 2 and one sentence. One that is still at work after some seconds is
stopped and counted: a damaged recipe may be a good one that trains. Prints a table and every
failure, each with the number that makes it again (`--only NUMBER`); the exit code is 1 if there is
any.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mutation_world import World, make_world
from mutators import damage_bytes, damage_json_or_bytes, table_bytes

from litotes.cli.main import main as run_command
from litotes.core.json_text import from_json
from litotes.core.storage import MANIFEST, sha256_of
from litotes.core.text import is_steering
from litotes.model.folder import Manifest
from litotes.prediction.table_jobs import write_record

SECONDS = 10.0
"""After which a run is stopped."""

_BUG = re.compile(r"\b[A-Z]\w*Error\b")

Case = Callable[[random.Random, World, Path], list[str]]
"""Makes damaged files in a folder, and returns the arguments of a command that reads them."""


def damaged_table(kind: str) -> Case:
    def make(chance: random.Random, world: World, folder: Path) -> list[str]:
        file = folder / f"in.{kind}"
        file.write_bytes(table_bytes(chance, world.rows, kind))
        source = f"table:{file}?label.sentiment=sentiment&variety=variety&source=source&split=split"
        out, json_option = ["--out", str(folder / "out")], chance.choice(([], ["--json"]))
        model = ["--model", str(world.model)]
        if kind == "csv" and chance.random() < 0.3:
            (folder / "gold.csv").write_bytes(world.gold)
            commands = [
                ["score", "--submit", str(file), *model, "--out", str(folder / "answer.zip")],
                ["score", str(file), str(folder / "gold.csv"), *out],
                ["score", str(folder / "gold.csv"), str(file)],
            ]
            return [*chance.choice(commands), *json_option]
        bulk = ["--on", "here", "--rows-per-part", "5", "--key", "id"]
        form = ["--format", chance.choice(("csv", "jsonl"))]
        commands = [
            ["audit", "--data", source, *out],
            ["audit", "--data", f"table:{file}?label=sentiment&variety=variety"],
            ["coverage", "--by", "words", "--data", source, *out],
            ["evaluate", *model, "--data", source, *out],
            ["predict", "--file", str(file), *model],
            ["predict", "--file", str(file), *form, *model, *out],
            ["predict", "--file", str(file), *bulk, *form, *model, *out],
            ["predict", "--file", str(file), *bulk, *model, *out],
        ]
        return [*chance.choice(commands), *json_option]

    return make


def damaged_recipe(suffix: str) -> Case:
    def make(chance: random.Random, world: World, folder: Path) -> list[str]:
        file = folder / f"recipe.{suffix}"
        if suffix == "json":
            file.write_bytes(damage_json_or_bytes(chance, world.recipe_json.read_bytes()))
        else:
            file.write_bytes(damage_bytes(chance, world.recipe_toml.read_bytes()))
        # what makes a good recipe long is set back
        short = ["--set", "training.epochs=1", "--set", f"data.source={world.source}"]
        changes = chance.choice(([], short, short, ["--set", "seed=3"]))
        return ["train", str(file), *changes, "--out", str(folder / "run"), "--device", "cpu"]

    return make


def damaged_model(chance: random.Random, world: World, folder: Path) -> list[str]:
    model = shutil.copytree(world.model, folder / "model")
    _damage(chance, model / chance.choice(("litotes.json", "litotes.json", "tokenizer.json")))
    commands = [
        ["predict", "great tea", "--model", str(model)],
        ["predict", "great tea", "--model", str(model), "--json"],
        ["evaluate", "--model", str(model), "--data", world.source],
        ["train", str(world.recipe_toml), "--resume", "--out", str(model), "--device", "cpu"],
    ]
    return chance.choice(commands)


def damaged_finished_run(chance: random.Random, world: World, folder: Path) -> list[str]:
    model = shutil.copytree(world.model, folder / "model")
    _damage(chance, model / "scores.json")
    return ["train", str(world.recipe_toml), "--resume", "--out", str(model), "--device", "cpu"]


def damaged_checkpoint(chance: random.Random, world: World, folder: Path) -> list[str]:
    run = shutil.copytree(world.stopped_run, folder / "run")
    newest = max((run / "checkpoints").glob("step-*"))
    _damage(chance, newest / chance.choice(("state.json", "state.json", "state.json", MANIFEST)))
    return ["train", str(world.recipe_toml), "--resume", "--out", str(run), "--device", "cpu"]


def damaged_state(chance: random.Random, world: World, folder: Path) -> list[str]:
    shutil.copytree(world.stopped_file.parent, folder, dirs_exist_ok=True)
    out = folder / world.stopped_file.name
    _damage(chance, out.with_name(f"{out.name}.part") / "plan.json")
    model = ["--model", str(world.model)]
    return ["predict", "--file", str(world.table), *model, "--format", "csv", "--out", str(out)]


def damaged_plan(chance: random.Random, world: World, folder: Path) -> list[str]:
    out = shutil.copytree(world.stopped_folder, folder / "answers")
    _damage(chance, out / "plan.json")
    bulk = ["--on", "here", "--rows-per-part", "5", "--format", "csv"]
    return [
        *("predict", "--file", str(world.table), "--model", str(world.model)),
        *(*bulk, "--out", str(out), "--device", "cpu"),
    ]


def damaged_study(chance: random.Random, world: World, folder: Path) -> list[str]:
    file = shutil.copy(world.study_toml, folder / "study.toml")
    out = shutil.copytree(world.study, folder / "study")
    if chance.random() < 0.3:
        file.write_bytes(damage_bytes(chance, file.read_bytes()))
    else:
        _damage(chance, chance.choice(sorted(out.rglob("*.json"))))
    return ["study", str(file), "--out", str(out), "--device", "cpu"]


CASES: dict[str, Case] = {
    **{kind: damaged_table(kind) for kind in ("csv", "tsv", "json", "jsonl", "parquet")},
    "recipe.toml": damaged_recipe("toml"),
    "recipe.json": damaged_recipe("json"),
    "litotes.json": damaged_model,
    "scores.json": damaged_finished_run,
    "checkpoint": damaged_checkpoint,
    "unfinished file": damaged_state,
    "plan.json": damaged_plan,
    "study": damaged_study,
}


def _damage(chance: random.Random, file: Path) -> None:
    """Damages a JSON file, and states its new hash where one is stated: the damage is to be read,
    not to be noticed before.
    """
    file.write_bytes(damage_json_or_bytes(chance, file.read_bytes()))
    with suppress(ValueError, TypeError, AttributeError, RecursionError):
        content = json.loads(file.read_bytes())
        if content.pop("sha256", None) is not None and "made_from" in content:
            write_record(file, **content)
    manifest = file.with_name(MANIFEST)
    if manifest != file and manifest.is_file():
        stated = json.loads(manifest.read_text("utf-8"))
        if file.name in stated.get("files", ()):  # of a model folder
            Manifest(stated["files"] | {file.name: sha256_of(file)}).write(file.parent)
        elif file.name in stated:
            manifest.write_text(json.dumps(stated | {file.name: sha256_of(file)}), "utf-8")


@dataclass(frozen=True)
class Outcome:
    """How a command ended. fault: what is wrong with that, None where nothing is."""

    kind: str
    number: int
    arguments: list[str]
    code: int | None
    fault: str | None
    seconds: float


def run_case(world: World, number: int, *, seed: int) -> Outcome:
    """The mutation of this number; it depends on nothing else."""
    kind = list(CASES)[number % len(CASES)]
    chance = random.Random(f"{seed}-{number}")
    with tempfile.TemporaryDirectory(dir=world.folder) as folder:
        arguments = CASES[kind](chance, world, Path(folder))
        started = time.monotonic()
        code, out, err, bug = _captured(arguments)
        fault = bug or _fault(code, out, err, is_json="--json" in arguments)
    return Outcome(kind, number, arguments, code, fault, time.monotonic() - started)


def _captured(arguments: list[str]) -> tuple[int | None, str, str, str | None]:
    """Exit code, stdout, stderr, and the traceback of a bug."""
    code, bug = None, None
    with _streams() as (out, err):
        try:
            with _time_limit():
                code = run_command(arguments)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except KeyboardInterrupt:
            code = 130
        except Exception:  # what would be a traceback and exit code 1
            bug = traceback.format_exc()
        texts = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    return code, *texts, bug


@contextmanager
def _streams() -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    """Standard streams in memory, as strict about characters as the real ones."""
    before = sys.stdout, sys.stderr
    streams = tuple(io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    sys.stdout, sys.stderr = streams
    try:
        yield streams[0], streams[1]
    finally:
        sys.stdout, sys.stderr = before


@contextmanager
def _time_limit() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _fault(code: int | None, out: str, err: str, *, is_json: bool) -> str | None:
    for name, text in (("stdout", out), ("stderr", err)):
        steering = {char for char in text if char != "\n" and is_steering(char)}
        if steering:
            return f"{sorted(steering)} on {name}"
    last = err.splitlines()[-1] if err.strip() else ""
    if _BUG.search(err):  # parts and runs collect what went wrong
        return f"a bug in words: {last}"
    if code == 2 and not (last.startswith("litotes") and last.endswith((".", "?"))):
        return f"no sentence: {last!r}"
    if code == 0 and is_json and out:  # predict --out writes the document there
        try:
            from_json(out)
        except ValueError as error:
            return f"stdout is not JSON: {error}"
    return None if code in (0, 2, 130) else f"exit code {code}"


def print_outcomes(outcomes: list[Outcome]) -> None:
    print(f"{'damaged':<14}{'runs':>6}{'0':>6}{'2':>6}{'stopped':>9}{'faults':>8}")
    for kind in [*CASES, "all"]:
        chosen = [outcome for outcome in outcomes if kind in ("all", outcome.kind)]
        codes = Counter(outcome.code for outcome in chosen)
        n_faults = sum(outcome.fault is not None for outcome in chosen)
        print(f"{kind:<14}{len(chosen):>6}{codes[0]:>6}{codes[2]:>6}{codes[130]:>9}{n_faults:>8}")
    for outcome in outcomes:
        if outcome.fault is not None:
            print(f"\n--only {outcome.number}: litotes {' '.join(outcome.arguments)}")
            print(ascii(outcome.fault).replace("\\n", "\n"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=2000, help="mutations (default 2000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the mutation of this number alone")
    parser.add_argument("--seconds", type=float, default=3000, help="to end after, at the latest")
    options = parser.parse_args()
    numbers = range(options.n) if options.only is None else [options.only]
    with tempfile.TemporaryDirectory() as folder:
        world = make_world(Path(folder))
        deadline, outcomes = time.monotonic() + options.seconds, []
        for number in numbers:
            outcomes.append(run_case(world, number, seed=options.seed))
            if time.monotonic() > deadline:
                break
    print_outcomes(outcomes)
    sys.exit(1 if any(outcome.fault for outcome in outcomes) else 0)


if __name__ == "__main__":
    main()
