"""Lines on a GPU take turns as elsewhere (lines.py), but one that fails does not end the others:
hours on a lent machine must not be lost to a missing kernel.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import torch

from bench.lines import BenchResult, Candidate, Line, make_line
from litotes.core.errors import reason_of
from litotes.core.progress import Watch, ignore_result

Makers = Mapping[str, Callable[[], Candidate]]
"""What makes the candidates, by the names of their lines."""
Clock = Callable[[Callable[[], Any]], tuple[float, Any]]
"""Does something once; gives the seconds it took, and its result."""
Facts = Mapping[str, Mapping[str, float]]
Found = TypeVar("Found")

NO_TIME = "not measured: the run's time was up"
HEAD_START = 40_000_000
"""Cycles the GPU waits before what is timed by its own clock: some 20 ms, in which the host hands
over all launches, so that its own time is not counted.
"""


@dataclass(frozen=True)
class GpuGroup:
    """What a group measured.

    failed: lines that could not be measured, and why. facts: what is known about lines besides
    their times, by line and name.
    """

    result: BenchResult
    failed: Mapping[str, str] = field(default_factory=dict)
    facts: Facts = field(default_factory=dict)


@dataclass
class Attempts:
    """What has failed so far. deadline: after it, by `time.monotonic`, nothing new is begun.

    left_out: lines whose library is not installed, and which one that is.
    """

    deadline: float
    failed: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self.deadline

    def is_lost(self, name: str) -> bool:
        return name in self.failed or name in self.left_out

    def attempt(self, name: str, act: Callable[[], Found]) -> Found | None:
        """The result; None where this line fails now or has failed before."""
        if self.is_lost(name):
            return None
        try:
            return act()
        except ModuleNotFoundError as error:
            library = (error.name or "").partition(".")[0]
            if library == "litotes":
                self.failed[name] = describe(error)
            else:
                self.left_out[name] = library
        # compilers, drivers and other people's kernels fail in every way; the error is reported
        except Exception as error:
            self.failed[name] = describe(error)
        return None


def describe(error: Exception) -> str:
    return f"{type(error).__name__}: {reason_of(error)}"


def wall_clock(act: Callable[[], Any]) -> tuple[float, Any]:
    """Until the device is done."""
    wait_for_device()
    start = time.perf_counter()
    result = act()
    wait_for_device()
    return time.perf_counter() - start, result


def device_clock(act: Callable[[], Any]) -> tuple[float, Any]:
    """By the GPU's own clock: what its kernels take, one after the other."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    wait_for_device()
    torch.cuda._sleep(HEAD_START)
    start.record()
    result = act()
    end.record()
    wait_for_device()
    return start.elapsed_time(end) / 1000, result


def wait_for_device() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def clock_of(device: torch.device) -> Clock:
    """For single kernels."""
    return device_clock if device.type == "cuda" else wall_clock


def time_in_guarded_turns(
    group: str,
    makers: Makers,
    attempts: Attempts,
    *,
    n_texts: int,
    n_rounds: int,
    watch: Watch,
    n_batches: int = 1,
    clock: Clock = wall_clock,
    on_first: Callable[[str, Any], None] = ignore_result,
) -> tuple[Line, ...]:
    """A line for each candidate that can be made and measured; of the others `attempts` says why.

    A first run of each warms up; `on_first` is given its result. n_batches as in `time_lines`.
    """
    candidates: dict[str, Candidate] = {}
    for number, (name, make) in enumerate(makers.items()):
        watch(f"{group}: warming up", number, len(makers), name)
        if attempts.is_late:
            attempts.failed[name] = NO_TIME
            continue
        candidate = attempts.attempt(name, make)
        if candidate is None:
            continue
        first = attempts.attempt(name, partial(clock, partial(candidate.act, None)))
        if first is not None:
            candidates[name] = candidate
            attempts.attempt(name, partial(on_first, name, first[1]))
    seconds = _time_rounds(group, candidates, attempts, n_rounds=n_rounds, watch=watch, clock=clock)
    lines = []
    for name, times in seconds.items():
        if not attempts.is_lost(name):
            lines.append(
                make_line(
                    group, name, candidates[name], times, n_texts=n_texts, n_batches=n_batches
                )
            )
    return tuple(lines)


def _time_rounds(
    group: str,
    candidates: Mapping[str, Candidate],
    attempts: Attempts,
    *,
    n_rounds: int,
    watch: Watch,
    clock: Clock,
) -> dict[str, list[float]]:
    """The seconds of each round; fewer rounds where time is up, but the same number for all."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(n_rounds):
        if attempts.is_late and number:
            break
        # every other round goes backwards: no line always follows the same neighbour
        for name in list(candidates)[:: -1 if number % 2 else 1]:
            act = partial(candidates[name].act, None)
            measured = attempts.attempt(name, partial(clock, act))
            if measured is not None:
                seconds[name].append(measured[0])
            watch(f"{group}: rounds", number + 1, n_rounds, name)
    return seconds
