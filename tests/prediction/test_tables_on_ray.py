"""Bulk scoring on a real cluster of this machine's cores: a worker is shot, the command is stopped,
and every row is there once.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree

import pytest
from toy_jobs import is_alive, wait_until

from litotes.exporting.export import export_models
from litotes.prediction.predictor import BatchPredictor

N_FILES, N_ROWS, N_PER_PART = 3, 8_000, 500
BAD = 12_345  # the row without a text
SECONDS_TO_BEGIN = 300  # a cluster starts, a model is loaded; a busy machine takes long

DRIVER = """
import json, sys
from pathlib import Path
from litotes.prediction.predictor import BatchPredictor
from litotes.core.errors import Stopped
from litotes.prediction.tables import TableRequest
from litotes.prediction.table_jobs import predict_to_folder, ray_runner
from litotes.core.ray_jobs import cluster

source, out, asked = Path(sys.argv[1]), Path(sys.argv[2]), BatchPredictor(sys.argv[3], device="cpu")
request = TableRequest(source, format="parquet", bad_rows="stop", n_rows=int(sys.argv[4]))
with cluster("local"):  # one for all: it takes seconds to start
    try:
        predict_to_folder(request, asked, out, runner=ray_runner(2, None))
    except Stopped as error:
        print(json.dumps(str(error)), flush=True)
    scored = predict_to_folder(request, asked, out, runner=ray_runner(None, None))
    print(json.dumps(scored.as_json()), flush=True)

    import logging
    import ray.data
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # of the snippet, which prints
    ray.data.DataContext.get_current().enable_progress_bars = False
    exec(sys.argv[5])
"""


@pytest.fixture(scope="module")
def model(trained_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> BatchPredictor:
    pytest.importorskip("onnxruntime")
    folder = copytree(trained_folder, tmp_path_factory.mktemp("on-ray") / "run")
    export_models(folder, n_texts=20)
    return BatchPredictor(str(folder), device="cpu")


def snippet(root: Path) -> str:
    """The snippet for Ray Data in docs/how-to/tables.md: comments.parquet becomes ray-answers."""
    (found,) = re.findall(
        r"^```py\n(.*?import ray\n.*?)^```",
        (root / "docs" / "how-to" / "tables.md").read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    return str(found).rpartition("```py\n")[2]


@contextmanager
def driver(*arguments: str, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", DRIVER, *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "STARTED_IN": str(cwd)}
    environment.pop("RAY_ADDRESS", None)
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=cwd,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def busy_workers(mark: str) -> list[int]:
    """The processes that do a job, of the cluster whose driver has this mark in its environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            is_busy = (process / "cmdline").read_bytes().startswith(b"ray::_attempt")
            if is_busy and mark.encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


def shoot_one(folder: Path, process: subprocess.Popen[str]) -> int:
    """Kills a worker in the middle of a part."""
    deadline = time.monotonic() + SECONDS_TO_BEGIN
    while process.poll() is None and time.monotonic() < deadline:
        for pid in busy_workers(str(folder)):
            os.kill(pid, signal.SIGKILL)
            return pid
        time.sleep(0.02)
    raise AssertionError(f"exit code {process.poll()}")


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("ray") is None, reason='ray is not installed: pip install "litotes[ray]"'
)
def test_every_row_once_whoever_is_killed(
    model: BatchPredictor, root: Path, tmp_path: Path
) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    texts = [
        "" if n == BAD else f"the tea is {'great' if n % 3 else 'bad'} {n}" + " queue" * (n % 9)
        for n in range(N_FILES * N_ROWS)
    ]
    for file in range(N_FILES):
        ids = range(file * N_ROWS, (file + 1) * N_ROWS)
        pq.write_table(
            pa.table({"id": ids, "text": [texts[n] for n in ids]}),
            source / f"{file}.parquet",
            row_group_size=1300,
        )
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "mine").symlink_to(model.folder)
    pq.write_table(pa.table({"text": texts[:40]}), tmp_path / "comments.parquet")
    with driver(
        str(source), str(out), model.folder, str(N_PER_PART), snippet(root), cwd=tmp_path
    ) as process:
        assert wait_until(
            lambda: len(list(out.glob("part-*"))) >= 2 or process.poll() is not None, seconds=300
        )
        pid = shoot_one(tmp_path, process)
        n_before = len(list(out.glob("part-*")))
        assert wait_until(  # another goes on
            lambda: len(list(out.glob("part-*"))) > n_before or process.poll() is not None,
            seconds=180,
        )
        assert not is_alive(pid)
        os.killpg(process.pid, signal.SIGINT)
        told, errors = process.communicate(timeout=300)
    stopped, summary = map(json.loads, told.splitlines())  # and not a word from Ray among them
    assert stopped.startswith("Stopped; ")
    assert "parts are left to do in" in stopped
    n_parts = N_FILES * N_ROWS // N_PER_PART
    bad_part = f"part-{BAD // N_PER_PART:05d}.parquet"
    (failure,) = summary["failures"].items()
    assert failure[0] == bad_part
    assert f"1.parquet, row {BAD - N_ROWS + 1}, column 'text' is empty" in failure[1]
    assert n_before <= summary["parts_found"] < n_parts - 1
    assert summary["rows_answered"] == (n_parts - 1 - summary["parts_found"]) * N_PER_PART
    parts = sorted(out.glob("part-*"))
    assert len(parts) == n_parts - 1
    rows = [row for path in parts for row in pq.read_table(path).to_pylist()]
    ids = [n for n in range(len(texts)) if n // N_PER_PART != BAD // N_PER_PART]
    assert [(row["id"], row["text"]) for row in rows] == [(n, texts[n]) for n in ids]
    for row in rows[::997]:
        (alone,) = model.predictor().predict([row["text"]])
        assert row["sarcasm"] == alone.answers["sarcasm"].label
    others = sorted(path.name for path in out.iterdir() if not path.name.startswith("part-"))
    assert others == ["plan.json", "records"]  # until the last part is there
    answers = pq.read_table(tmp_path / "ray-answers").to_pylist()
    assert sorted(row["text"] for row in answers) == sorted(texts[:40])
    again = model.predictor().predict([row["text"] for row in answers])
    assert [row["sarcasm"] for row in answers] == [one.answers["sarcasm"].label for one in again]
    assert errors == ""
