"""100,000 rows of which 1 % are broken, answered by a command that is killed twice.

    python bench/trials/bad_rows.py [--rows 100000] [--model builtin] [--format csv|jsonl|parquet]

Every row must come out once, in its place, with all of its columns; the broken ones without an
answer and with their problem.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

WORDS = ("the", "tea", "was", "lovely", "cold", "rude", "great", "queue", "never", "best")
DAMAGES = {
    "empty": lambda n: f"{n};;north;5\n".encode(),
    "blank": lambda n: f"{n};   ;north;5\n".encode(),
    "too few fields": lambda n: f"{n};tea\n".encode(),
    "too many fields": lambda n: f"{n};tea;north;5;more\n".encode(),
    "not UTF-8": lambda n: f"{n};caf".encode() + b"\xe9;north;5\n",
    "a NUL": lambda n: f"{n};a\0b;north;5\n".encode(),
    "an open quote": lambda n: f'{n};"tea;north;5\n'.encode(),
}


def write_table(file: Path, n_rows: int) -> dict[int, str]:
    """Writes the table; returns what is wrong with which row."""
    chance = random.Random(0)
    broken = {}
    with file.open("wb") as stream:
        stream.write("\ufeffid;text;region;stars\n".encode())
        for n in range(n_rows):
            if chance.random() < 0.01:
                broken[n] = chance.choice(list(DAMAGES))
                stream.write(DAMAGES[broken[n]](n))
            else:
                words = " ".join(chance.choices(WORDS, k=chance.randint(3, 9)))
                stream.write(f"{n};{words};{chance.choice(['north', 'süd'])};{n % 5}\n".encode())
    return broken


def run_killed_twice(command: list[str], out: Path) -> list[int]:
    """Runs the command, kills it twice in the middle; returns how many rows were safe each time."""
    safe: list[int] = []
    while len(safe) < 2:
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        before = safe[-1] if safe else 0
        while process.poll() is None and _n_safe(out) <= before + 3000:
            time.sleep(0.05)
        if process.poll() is not None:
            raise SystemExit("It was over before it could be killed twice: use more --rows.")
        process.send_signal(signal.SIGKILL)
        process.wait()
        safe.append(_n_safe(out))
    subprocess.run(command, check=True)
    return safe


def _n_safe(out: Path) -> int:
    part = out.with_name(f"{out.name}.part")
    if out.suffix == ".parquet":
        return 5000 * len(list(part.glob("part-*")))
    state = part / "state.json"
    return int(json.loads(state.read_text())["tally"]["n_read"]) if state.is_file() else 0


def read_answers(out: Path) -> list[dict[str, Any]]:
    if out.suffix == ".csv":
        with out.open(newline="", encoding="utf-8") as stream:
            return list(csv.DictReader(stream))
    if out.suffix == ".jsonl":
        return [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(out).to_pylist()
    return rows


def check(rows: list[dict[str, Any]], broken: dict[int, str], n_rows: int) -> Counter[str]:
    """What became of the broken rows, by their damage."""
    assert [int(row["id"]) for row in rows] == list(range(n_rows)), "a row is lost, twice or moved"
    found: Counter[str] = Counter()
    for n, row in enumerate(rows):
        has_problem = bool(row["problem"])
        assert has_problem == (n in broken), (row, broken.get(n))
        assert bool(row["sarcasm"]) != has_problem, row
        if n in broken:
            found[broken[n]] += 1
        else:
            assert row["region"] in ("north", "süd"), row
            assert int(row["stars"]) == n % 5, row
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--format", choices=("csv", "jsonl", "parquet"), default="csv")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        table, out = Path(folder) / "in.csv", Path(folder) / f"out.{options.format}"
        broken = write_table(table, options.rows)
        command = [sys.executable, "-m", "litotes", "predict", "--model", options.model]
        started = time.monotonic()
        safe = run_killed_twice([*command, "--file", str(table), "--out", str(out)], out)
        seconds = time.monotonic() - started
        found = check(read_answers(out), broken, options.rows)
    print(
        f"{options.rows:,} rows as {options.format}, killed after {safe[0]:,} and {safe[1]:,} rows"
    )
    print(f"all there once, in order, with their columns; {seconds:.0f} s")
    print(f"{len(broken):,} without an answer: {dict(sorted(found.items()))}")


if __name__ == "__main__":
    main()
