"""A study of twelve runs, killed again and again: does the report come out the same, byte for byte?

    OMP_NUM_THREADS=1 python bench/trials/study_kills.py --kills 3

Three studies: undisturbed; its main process killed (SIGKILL) at random moments and started again,
and a worker killed too; on a local Ray cluster with a worker killed. All three `report.json` must
be the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
SMALL = ("recipe.training.epochs=2", "recipe.model.max_pieces=48", "recipe.training.batch_texts=32")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with TemporaryDirectory() as folder:
        out = Path(folder)
        started = time.monotonic()
        command(out / "whole").wait()
        seconds = time.monotonic() - started
        n_worker_kills = shoot(out / "shot", n_kills=options.kills, chance=chance, seconds=seconds)
        n_ray_kills = shoot_ray_worker(out / "ray", chance=chance)
        reports = {
            name: (out / name / "report.json").read_bytes() for name in ("whole", "shot", "ray")
        }
        result = {
            "runs": len(list((out / "whole" / "runs").iterdir())),
            "kills": options.kills,
            "worker_kills": n_worker_kills,
            "ray_worker_kills": n_ray_kills,
            "same_report": {name: reports[name] == reports["whole"] for name in ("shot", "ray")},
            "seconds_undisturbed": round(seconds),
        }
    print(json.dumps(result))


def command(out: Path, *more: str) -> subprocess.Popen[bytes]:
    changes = [word for change in SMALL for word in ("--set", change)]
    arguments = [
        sys.executable,
        "-m",
        "litotes",
        "study",
        str(ROOT / "recipes" / "study_quick.toml"),
        "--device",
        "cpu",
        *changes,
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with (out.parent / f"{out.name}.log").open("ab") as log:
        return subprocess.Popen(
            [*arguments, *(more or ("--workers", "2")), "--out", str(out)],
            stdout=log,
            stderr=log,
            env=environment,
        )


def shoot(out: Path, *, n_kills: int, chance: random.Random, seconds: float) -> int:
    """Kills the study's main process n times and one of its workers once; then lets it end."""
    n_worker_kills = 0
    for number in range(n_kills):
        process = command(out)
        time.sleep(chance.uniform(0.2, 0.4) * seconds)
        if number == 0:
            n_worker_kills += kill_one(children_of(process.pid, "spawn_main"), chance)
            time.sleep(3)
        print("killed after", len(list(out.glob("runs/*/facts.json"))), "runs", flush=True)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert command(out).wait() == 0
    return n_worker_kills


def shoot_ray_worker(out: Path, *, chance: random.Random) -> int:
    """Kills one Ray worker in the middle of its run."""
    process = command(out, "--on", "ray")
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(1)
        at_work = processes_called("ray::")
        if len(list(out.glob("runs/*/facts.json"))) >= 2 and at_work:
            n_killed = kill_one(at_work, chance)
            print(
                "killed a Ray worker after",
                len(list(out.glob("runs/*/facts.json"))),
                "runs",
                flush=True,
            )
            break
    else:
        n_killed = 0
    assert process.wait() == 0
    return n_killed


def kill_one(pids: list[int], chance: random.Random) -> int:
    if not pids:
        return 0
    os.kill(chance.choice(pids), signal.SIGKILL)
    return 1


def children_of(parent: int, word: str) -> list[int]:
    found = []
    for pid in processes_called(word):
        status = Path(f"/proc/{pid}/status").read_text()
        if f"PPid:\t{parent}\n" in status:
            found.append(pid)
    return found


def processes_called(word: str) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (
                    (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
            except OSError:
                continue
            if word in line and "IDLE" not in line:
                found.append(int(folder.name))
    return found


if __name__ == "__main__":
    main()
