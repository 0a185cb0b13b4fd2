"""Kills a training run at random moments, starts it again each time, and compares the result with
a run that was never killed.

    python bench/trials/kills.py --kills 25

A kill counts as "during a save" when a half-written checkpoint is found afterwards. Prints one JSON
document.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from safetensors.torch import load_file

RECIPE = Path(__file__).parents[2] / "recipes" / "quick.toml"
SETTINGS = [
    "--set",
    "data.where.variety=en-AU",
    "--set",
    "training.checkpoint_seconds=0",
    "--set",
    "training.epochs=6",
    "--device",
    "cpu",
]


def start(out: Path) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "litotes",
        "train",
        str(RECIPE),
        *SETTINGS,
        "--resume",
        "--out",
        str(out),
    ]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(out: Path) -> None:
    process = start(out)
    _, errors = process.communicate()
    if process.returncode:
        raise SystemExit(errors.decode())


def newest_step(out: Path) -> str:
    return max((path.name for path in (out / "checkpoints").glob("step-*")), default="none yet")


def shoot(out: Path, chance: random.Random) -> dict[str, object] | None:
    """Starts the run and kills it between its start and a few saves later; None when it had
    finished before.
    """
    before = newest_step(out)
    process = start(out)
    while newest_step(out) == before and process.poll() is None and chance.random() < 0.999:
        time.sleep(0.02)  # start-up; now and then a kill falls into it as well
    time.sleep(chance.uniform(0.0, 0.8))
    if process.poll() is not None:
        return None
    process.send_signal(signal.SIGKILL)
    process.wait()
    return {"after": newest_step(out), "during_save": any((out / "checkpoints").glob(".staged-*"))}


def difference(out: Path, whole: Path) -> str:
    """Where two models differ most."""
    one, other = (load_file(folder / "model.safetensors") for folder in (out, whole))
    largest, name = max((float((one[name] - other[name]).abs().max()), name) for name in one)
    return f"{out.name} differs from the run never shot by up to {largest:.1e} ({name})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole"
        finish(whole)
        expected = (whole / "model.safetensors").read_bytes()
        kills: list[dict[str, object]] = []
        runs: list[bool] = []
        while len(kills) < options.kills:
            out = Path(folder) / f"shot-{len(runs)}"
            while len(kills) < options.kills and (kill := shoot(out, chance)) is not None:
                kills.append(kill)
                print(len(kills), kill, file=sys.stderr)
            finish(out)
            runs.append((out / "model.safetensors").read_bytes() == expected)
            if not runs[-1]:
                print(difference(out, whole), file=sys.stderr)
    during_save = sum(bool(kill["during_save"]) for kill in kills)
    print(
        json.dumps(
            {
                "kills": len(kills),
                "during_save": during_save,
                "runs": len(runs),
                "bit_equal": sum(runs),
            }
        )
    )
    sys.exit(0 if all(runs) else 1)


if __name__ == "__main__":
    main()
