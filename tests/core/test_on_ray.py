"""The same promises on Ray, with a real cluster of this machine's cores; without Ray the rest is
still tested.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from toy_jobs import is_alive, pids, run, toy_jobs, wait_until

from litotes.core import ray_jobs
from litotes.core.errors import UserError
from litotes.core.progress import ignore_progress
from litotes.core.ray_jobs import is_local, run_on_ray

DRIVER = """
import json, sys
from pathlib import Path
from toy_jobs import toy_jobs, run
from litotes.core.errors import Stopped
from litotes.core.progress import ignore_progress
from litotes.core.ray_jobs import cluster, run_on_ray

first, second = Path(sys.argv[1]), Path(sys.argv[2])
with cluster("local") as ray:  # one for both: it takes seconds to start
    print(json.dumps([node["NodeManagerAddress"] for node in ray.nodes()]), flush=True)
    jobs = toy_jobs(first, "write", "die-once", "fail", "crash", "stop-once")
    outcomes = run_on_ray(jobs, run, address=None, watch=ignore_progress)
    print(json.dumps({outcome.name: outcome.error for outcome in outcomes}), flush=True)
    try:
        jobs = toy_jobs(second, "train", "die-later", "write")
        list(run_on_ray(jobs, run, address=None, watch=ignore_progress))
    except Stopped as error:
        print(json.dumps(str(error)), flush=True)
"""


@contextmanager
def driver(*folders: Path) -> Iterator[subprocess.Popen[str]]:
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = os.environ | {"PYTHONPATH": path}
    environment.pop("RAY_ADDRESS", None)
    command = [sys.executable, "-W", "error", "-c", DRIVER, *map(str, folders)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("ray") is None, reason='ray is not installed: pip install "litotes[ray]"'
)
def test_a_cluster_keeps_the_promises_of_one_machine(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    with driver(first, second) as process:
        wait_until(
            lambda: (second / "training").exists() or process.poll() is not None, seconds=300
        )
        os.killpg(process.pid, signal.SIGINT)
        told, errors = process.communicate(timeout=180)
    # and not a word from Ray among them
    nodes, outcomes, stopped = map(json.loads, told.splitlines())
    assert errors == ""
    assert nodes == ["127.0.0.1"]
    assert outcomes == {
        "0-write": None,
        "1-die-once": None,
        "2-fail": "There is no tea. Buy some.",
        "3-crash": "ValueError: no tea",
        "4-stop-once": None,
    }
    for name in ("1-die-once", "4-stop-once"):
        assert (first / name).exists()
        assert len((first / f"{name}.begun").read_text().splitlines()) == 2
    assert stopped == "Stopped with 0 of 3 runs done. Start the command again to go on."
    assert (second / "saved").exists()
    assert not any(map(is_alive, pids(first) | pids(second)))


def test_without_ray_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    with pytest.raises(UserError, match=r'pip install "litotes\[ray\]"'):
        next(run_on_ray(toy_jobs(tmp_path, "write"), run, address=None, watch=ignore_progress))


def test_an_address_where_nobody_is_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = ModuleType("ray")
    ray.is_initialized = lambda: False  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, and not listened at
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(
            UserError, match=rf"No Ray cluster answers at {address} .*ray start --head"
        ):
            next(
                run_on_ray(toy_jobs(tmp_path, "write"), run, address=address, watch=ignore_progress)
            )


def test_the_address_says_whether_jobs_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert is_local(None)
    assert is_local("local")
    assert not is_local("auto")
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert not is_local(None)


def test_places_are_counted_by_node() -> None:
    nodes: list[dict[str, Any]] = [
        {"Alive": True, "Resources": {"CPU": 7.0, "GPU": 2.0}},
        {"Alive": True, "Resources": {"CPU": 3.0}},
        {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0}},
    ]
    assert ray_jobs.count_places(nodes, {"CPU": 2}, is_local=False) == 4
    assert ray_jobs.count_places(nodes, {"CPU": 2, "GPU": 0.5}, is_local=False) == 3
    assert ray_jobs.count_places(nodes, {"CPU": 2}, 3, is_local=True) == 3
    # one such node may come
    assert ray_jobs.count_places(nodes[1:], {"CPU": 1, "GPU": 1}, is_local=False) == 1
    assert ray_jobs.count_places(nodes[1:], {"CPU": 1}, 5, is_local=False) == 5
    with pytest.raises(UserError, match="1 CPU and 1 GPU, which this machine does not have"):
        ray_jobs.count_places(nodes[1:], {"CPU": 1, "GPU": 1}, is_local=True)
    with pytest.raises(UserError, match=r"5 workers need 1 CPU each.*room for 3: use --workers 3"):
        ray_jobs.count_places(nodes[1:], {"CPU": 1}, 5, is_local=True)
