"""One line that fails does not end the others."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest

from bench.gpu.turns import (
    NO_TIME,
    Attempts,
    Makers,
    describe,
    time_in_guarded_turns,
    wall_clock,
)
from bench.lines import Candidate, Line
from litotes.core.progress import ignore_progress

LATER = time.monotonic() + 10_000


def timed(makers: Makers, attempts: Attempts, **more: Any) -> dict[str, Line]:
    lines = time_in_guarded_turns(
        "group", makers, attempts, n_texts=8, watch=ignore_progress, **{"n_rounds": 3} | more
    )
    return {line.name: line for line in lines}


class Failing:
    """Fails at its n-th run."""

    def __init__(self, n: int) -> None:
        self.n_left = n

    def __call__(self, _: object) -> None:
        self.n_left -= 1
        if not self.n_left:
            raise RuntimeError("no kernel image\nand more")


def sleep(_: object) -> str:
    time.sleep(0.002)
    return "done"


def broken() -> Candidate:
    raise ValueError("cannot be made")


def missing(library: str) -> Candidate:
    raise ModuleNotFoundError(f"No module named {library!r}", name=library)


def test_lines_that_fail_are_reported_and_the_others_measured() -> None:
    attempts = Attempts(LATER)
    makers: Makers = {
        "broken": broken,
        "cold": lambda: Candidate(Failing(1)),
        "late": lambda: Candidate(Failing(3)),
        "absent": partial(missing, "adasplash.kernels"),
        "unwritten": partial(missing, "litotes.prediction.cuda"),
        "good": lambda: Candidate(sleep),
    }
    lines = timed(makers, attempts, n_batches=2)
    assert list(lines) == ["good"]
    assert len(lines["good"].ms_all_rounds) == 3
    assert 1 <= lines["good"].ms < 500, "of one of two batches"
    assert attempts.failed == {
        "broken": "ValueError: cannot be made",
        "cold": "RuntimeError: no kernel image",
        "late": "RuntimeError: no kernel image",
        "unwritten": "ModuleNotFoundError: No module named 'litotes.prediction.cuda'",
    }
    assert attempts.left_out == {"absent": "adasplash"}


def test_the_first_run_is_heard_and_a_listener_that_fails_ends_its_line_alone() -> None:
    heard = []

    def hear(name: str, result: object) -> None:
        heard.append((name, result))
        assert name != "second"

    attempts = Attempts(LATER)
    makers = {name: lambda: Candidate(sleep) for name in ("first", "second")}
    assert list(timed(makers, attempts, on_first=hear)) == ["first"]
    assert heard == [("first", "done"), ("second", "done")]
    assert list(attempts.failed) == ["second"]


def test_nothing_new_is_begun_when_time_is_up() -> None:
    attempts = Attempts(time.monotonic() + 0.02)
    slow = Candidate(lambda _: time.sleep(0.05))
    lines = timed({"first": lambda: slow, "second": lambda: slow}, attempts)
    assert len(lines["first"].ms_all_rounds) == 1, "what is warm is measured once"
    assert attempts.failed == {"second": NO_TIME}


def test_an_interrupt_is_no_failure() -> None:
    def stop() -> Candidate:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        timed({"stopped": stop}, Attempts(LATER))


def test_a_clock_counts_the_act_and_an_error_has_a_name() -> None:
    seconds, result = wall_clock(partial(sleep, None))
    assert seconds >= 0.002
    assert result == "done"
    assert describe(KeyError()) == "KeyError: KeyError"
