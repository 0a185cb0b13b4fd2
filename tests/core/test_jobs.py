"""Jobs in this process and in others: what went wrong is told, what died is done again, and nobody
outlives the parent.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from toy_jobs import ToyJob, is_alive, pids, run, toy_jobs, wait_until

from litotes.core import jobs as jobs_module
from litotes.core.errors import Stopped, UserError
from litotes.core.jobs import JobProgress, Outcome, run_jobs
from litotes.core.progress import ignore_progress


def outcomes_of(folder: Path, *whats: str, n_workers: int) -> dict[str, Outcome]:
    return {
        outcome.name: outcome
        for outcome in run_jobs(
            toy_jobs(folder, *whats), run, n_workers=n_workers, watch=ignore_progress
        )
    }


@pytest.mark.parametrize("n_workers", [1, 2])
def test_every_job_has_its_outcome(tmp_path: Path, n_workers: int) -> None:
    outcomes = outcomes_of(tmp_path, "write", "fail", "crash", "write", n_workers=n_workers)
    assert sorted(outcomes) == ["0-write", "1-fail", "2-crash", "3-write"]
    assert {name for name, outcome in outcomes.items() if outcome.error is None} == {
        "0-write",
        "3-write",
    }
    assert outcomes["1-fail"].error == "There is no tea. Buy some."
    assert outcomes["1-fail"].trace is None
    assert outcomes["2-crash"].error == "ValueError: no tea"
    assert "in _crash" in str(outcomes["2-crash"].trace)
    assert (tmp_path / "0-write").exists()
    assert (tmp_path / "3-write").exists()


def test_one_worker_is_this_process_and_keeps_the_order(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int, str]] = []
    jobs = toy_jobs(tmp_path, "write", "fail", "write")
    outcomes = run_jobs(jobs, run, n_workers=1, watch=lambda *told: seen.append(told))
    assert next(outcomes).name == "0-write"
    assert not (tmp_path / "1-fail.begun").exists()
    assert [outcome.name for outcome in outcomes] == ["1-fail", "2-write"]
    assert pids(tmp_path) == {os.getpid()}
    assert seen[:3] == [
        ("runs", 0, 3, "running 0-write"),
        ("toy job", 1, 1, "write"),
        ("runs", 1, 3, "about 1 s left"),
    ]
    assert seen[-1] == ("runs", 3, 3, "1 failed")


@pytest.mark.parametrize(("what", "wish"), [("stop", Stopped), ("interrupt", KeyboardInterrupt)])
def test_a_wish_to_stop_is_no_outcome(tmp_path: Path, what: str, wish: type[BaseException]) -> None:
    with pytest.raises(wish):
        outcomes_of(tmp_path, "write", what, "write", n_workers=1)
    assert (tmp_path / "0-write").exists()
    assert not (tmp_path / "2-write.begun").exists()


def test_workers_take_job_after_job_in_order(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int, str]] = []
    jobs = toy_jobs(tmp_path, *["write"] * 12)
    outcomes = list(run_jobs(jobs, run, n_workers=2, watch=lambda *told: seen.append(told)))
    assert {outcome.error for outcome in outcomes} == {None}
    assert len(pids(tmp_path)) <= 2
    assert os.getpid() not in pids(tmp_path)
    for pid in pids(tmp_path):
        own = [name for name in jobs if (tmp_path / name).read_text() == f"{pid}"]
        assert own == sorted(own, key=lambda name: (tmp_path / name).stat().st_mtime_ns)
    assert seen[0] == ("runs", 0, 12, "running 0-write, 1-write")
    assert seen[-1] == ("runs", 12, 12, "")
    assert {what for what, *_ in seen} == {"runs"}
    assert not any(map(is_alive, pids(tmp_path)))


def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    outcomes = outcomes_of(
        tmp_path, "write", "die-once", "write", "stop-once", "write", n_workers=2
    )
    assert {outcome.error for outcome in outcomes.values()} == {None}
    assert sorted(outcomes) == sorted(
        file.name for file in tmp_path.iterdir() if file.suffix != ".begun"
    )
    for name in ("1-die-once", "3-stop-once"):
        assert len((tmp_path / f"{name}.begun").read_text().splitlines()) == 2


def test_a_job_that_ends_every_worker_is_given_up(tmp_path: Path) -> None:
    outcomes = outcomes_of(tmp_path, "die", "write", "leave", "write", n_workers=2)
    assert (
        outcomes["0-die"].error
        == "0-die ended its worker twice (signal 9): perhaps out of memory; use fewer --workers."
    )
    assert (
        outcomes["2-leave"].error
        == "2-leave ended its worker twice (exit code 3): run it with --workers 1 to see why."
    )
    assert outcomes["1-write"].error is None
    assert outcomes["3-write"].error is None
    assert len((tmp_path / "0-die.begun").read_text().splitlines()) == 2


def test_a_worker_killed_while_it_has_nothing_to_do_is_replaced(tmp_path: Path) -> None:
    outcomes = run_jobs(
        toy_jobs(tmp_path, "write", "die-later"), run, n_workers=2, watch=ignore_progress
    )
    assert next(outcomes).name == "0-write"
    idle = int((tmp_path / "0-write").read_text())
    os.kill(idle, signal.SIGKILL)
    assert wait_until(lambda: not is_alive(idle), seconds=5)
    (tmp_path / "now").touch()
    assert [(outcome.name, outcome.error) for outcome in outcomes] == [("1-die-later", None)]
    assert len(pids(tmp_path)) == 3


def test_who_does_not_listen_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_module, "GRACE_SECONDS", 0.3)
    jobs = run_jobs(
        toy_jobs(tmp_path, "write", "stay", "stay"), run, n_workers=2, watch=ignore_progress
    )
    assert next(jobs).name == "0-write"
    assert wait_until(lambda: len(list(tmp_path.glob("*stay.begun"))) == 2, seconds=5)
    time.sleep(0.1)  # they stop listening just after they have begun
    jobs.close()  # type: ignore[attr-defined]
    assert not any(map(is_alive, pids(tmp_path)))


def test_work_that_a_worker_cannot_import_is_a_failed_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_here(job: ToyJob, watch: Any) -> None:
        """Of a module that no other process finds."""

    module = ModuleType("nowhere_else")
    only_here.__module__, only_here.__qualname__ = "nowhere_else", "only_here"
    module.only_here = only_here  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nowhere_else", module)
    (outcome,) = run_jobs(
        toy_jobs(tmp_path, "write"), only_here, n_workers=2, watch=ignore_progress
    )
    assert outcome.error == "ModuleNotFoundError: No module named 'nowhere_else'"


def test_a_worker_knows_its_threads_before_torch_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "threads_per_worker", lambda n_workers: 10 + n_workers)
    outcomes_of(tmp_path, "describe", "write", n_workers=2)
    assert (tmp_path / "process").read_text() == "12 False"


@pytest.mark.parametrize(
    ("asked", "n_cores", "expected"),
    [(None, 7, 3), ("1", 7, 1), ("2", 7, 2), ("8", 7, 3), ("0", 7, 1), ("4,2", 7, 3), (None, 1, 1)],
)
def test_workers_share_the_cores(
    monkeypatch: pytest.MonkeyPatch, asked: str | None, n_cores: int, expected: int
) -> None:
    monkeypatch.setattr(jobs_module, "n_cores", lambda: n_cores)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if asked is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert jobs_module.threads_per_worker(2) == expected
    assert jobs_module.threads_per_worker(20) == 1
    for n_workers in (1, 2):
        assert not list(run_jobs({}, run, n_workers=n_workers, watch=ignore_progress))
    with pytest.raises(UserError, match="--workers 1"):
        run_jobs({}, run, n_workers=0, watch=ignore_progress)


def test_the_time_left_follows_from_what_is_done() -> None:
    notes: list[str] = []
    tally = JobProgress(
        10,
        n_workers=4,
        watch=lambda what, done, total, note: notes.append(f"{done}/{total} {note}"),
    )
    now = time.monotonic()
    tally.report()
    tally.report(
        [Outcome("a", 500.0), Outcome("b", 700.0), Outcome("c", 0.1, error="No tea.")],
        {"d": now - 300, "e": now - 9000},
    )
    tally.report(running={**dict.fromkeys("def", now), "g": now - 120})
    tally.report([Outcome(name, 600.0) for name in "defghi"], {"j": now - 570})
    tally.report(running={"j": now - 700})
    assert notes == [
        "0/10 ",
        "3/10 1 failed, running d, e, about 14 min left",  # (5 × 600 + 300 + 0) / 4 = 825 s
        "3/10 1 failed, running d, e, f and 1 more, about 17 min left",  # (6 × 600 + 480) / 4
        "9/10 1 failed, running j, about 30 s left",
        "9/10 1 failed, running j",  # overdue: nothing can be said
    ]


DRIVER = """
import sys
from pathlib import Path
from toy_jobs import toy_jobs, run
from litotes.core.errors import Stopped
from litotes.core.jobs import run_jobs

def watch(what, done, total, note):
    global told
    if not told:
        told = True
        print("begun", flush=True)

told = False
try:
    jobs = toy_jobs(Path(sys.argv[1]), *sys.argv[2:])
    for outcome in run_jobs(jobs, run, n_workers=2, watch=watch):
        print(outcome.name, flush=True)
except Stopped as error:
    print(error)
"""


def driver(folder: Path, *whats: str) -> subprocess.Popen[str]:
    """A parent that can be shot, in a process group of its own as on a terminal."""
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command = [sys.executable, "-c", DRIVER, str(folder), *whats]
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


@pytest.mark.timed
def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    with driver(tmp_path, "sleep", "train", "write") as parent:
        assert wait_until(lambda: len(pids(tmp_path)) == 2, seconds=20)
        parent.kill()
        started = time.monotonic()
    assert wait_until(
        lambda: not any(map(is_alive, pids(tmp_path))), seconds=2 - (time.monotonic() - started)
    )
    assert not (tmp_path / "2-write.begun").exists()


@pytest.mark.timed
def test_ctrl_c_lets_the_training_save(tmp_path: Path) -> None:
    with driver(tmp_path, "write", "sleep", "train", "write") as parent:
        assert wait_until((tmp_path / "training").exists, seconds=60)
        os.killpg(parent.pid, signal.SIGINT)  # as a terminal does it: to all of them
        told, errors = parent.communicate(timeout=20)
    assert (
        told == "begun\n0-write\nStopped with 1 of 4 runs done. Start the command again to go on.\n"
    )
    assert errors == ""
    assert parent.returncode == 0
    assert (tmp_path / "saved").exists()
    assert not (tmp_path / "3-write.begun").exists()
    assert not any(map(is_alive, pids(tmp_path)))


@pytest.mark.parametrize("after", [0.1, 0.3])
def test_ctrl_c_while_workers_start_leaves_no_traces(tmp_path: Path, after: float) -> None:
    with driver(tmp_path, "sleep", "sleep") as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        time.sleep(after)
        os.killpg(parent.pid, signal.SIGINT)
        told, errors = parent.communicate(timeout=20)
    assert "Stopped with 0 of 2 runs done" in told
    assert errors == ""
    assert not any(map(is_alive, pids(tmp_path)))
