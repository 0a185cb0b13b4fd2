"""200,000 rows on a local Ray cluster of two workers, one of them killed half-way: is every row
there once, in order, with the answer it gets alone?

    python bench/trials/ray_kill.py --model runs/mine

The rows are the sampler's texts with running numbers, in a folder of Parquet files. Rows per second
are counted over the whole command, with the start of the cluster, the death and what it cost.
Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from litotes.data.sources import load
from litotes.prediction.predictor import Predictor

N_FILES, ROWS_PER_GROUP = 8, 4096
N_ALONE = 200  # rows compared with the answer that each gets alone


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True, help="a model folder; an exported one is faster")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rows-per-part", type=int, default=2500)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    texts = [example.text for example in load("sampler").examples]
    with TemporaryDirectory() as folder:
        source, out = Path(folder) / "in", Path(folder) / "out"
        write_tables(source, [f"{texts[n % len(texts)]} {n}" for n in range(options.rows)])
        started = time.monotonic()
        process = begin(source, out, options)
        death = shoot_in_the_middle(out, process, options)
        said, errors = process.communicate()
        seconds = time.monotonic() - started
        if process.returncode:
            raise SystemExit(errors.decode())
        result = {
            "rows": options.rows,
            "workers": options.workers,
            **death,
            **compare(out, source, options.model),
            "seconds": round(seconds, 1),
            "rows_per_second": round(options.rows / seconds, 1),
            "summary": {name: value for name, value in json.loads(said).items() if name != "out"},
        }
    print(json.dumps(result, indent=2))


def write_tables(source: Path, texts: list[str]) -> None:
    source.mkdir()
    size = ceil(len(texts) / N_FILES)
    for number in range(N_FILES):
        ids = range(number * size, min((number + 1) * size, len(texts)))
        table = pa.table({"id": ids, "text": [texts[n] for n in ids]})
        pq.write_table(table, source / f"{number}.parquet", row_group_size=ROWS_PER_GROUP)


def begin(source: Path, out: Path, options: argparse.Namespace) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "litotes",
        "predict",
        "--file",
        str(source),
        "--model",
        options.model,
        "--key",
        "id",
        "--json",
    ]
    more = [
        "--on",
        "ray",
        "--workers",
        str(options.workers),
        "--rows-per-part",
        str(options.rows_per_part),
        "--out",
        str(out),
    ]
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    return subprocess.Popen(
        [*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )


def shoot_in_the_middle(
    out: Path, process: subprocess.Popen[bytes], options: argparse.Namespace
) -> dict[str, object]:
    """Kills a worker that is at a part, when half of the parts are there."""
    n_parts = N_FILES * ceil(ceil(options.rows / N_FILES) / options.rows_per_part)
    while process.poll() is None:
        time.sleep(0.005)
        n_done = len(list(out.glob("part-*")))
        if n_done < n_parts // 2:
            continue
        for worker in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has just ended
                if (worker / "cmdline").read_bytes().startswith(b"ray::_attempt"):
                    os.kill(int(worker.name), signal.SIGKILL)
                    return {"is_killed": True, "parts_done_before": n_done}
    return {"is_killed": False, "parts_done_before": len(list(out.glob("part-*")))}


def compare(out: Path, source: Path, model: str) -> dict[str, object]:
    """Every row once and in order; a sample of them asked one by one."""
    given = pa.concat_tables(pq.read_table(file) for file in sorted(source.iterdir()))
    answered = pa.concat_tables(pq.read_table(file) for file in sorted(out.glob("part-*")))
    predictor = Predictor.load(model, device="cpu")
    places = range(0, answered.num_rows, max(answered.num_rows // N_ALONE, 1))
    n_labels, furthest = 0, 0.0
    for row in answered.take(list(places)).to_pylist():
        (alone,) = predictor.predict([row["text"]])
        for task, answer in alone.answers.items():
            n_labels += row[task] == answer.label
            furthest = max(
                furthest, abs((row[f"{task}_probability"] or 0) - (answer.probability or 0))
            )
    return {
        "every_row_once_in_order": (
            answered.select(["id", "text"]).equals(given.select(["id", "text"]))
        ),
        "labels_as_alone": f"{n_labels} of {len(places) * len(predictor.tasks)}",
        "largest_difference_of_a_probability": furthest,
    }


if __name__ == "__main__":
    main()
