"""Side by side in one run: every speed is a ratio against a named baseline measured in the same minutes.

All lines of a group take turns, round after round, so that a busy moment of the machine hits them alike; the median round counts.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from litotes.progress import Watch


@dataclass(frozen=True)
class Line:
    """One way of doing the work: milliseconds (median of the rounds) for what the bench says, and texts per second.

    against: the lines it is compared with; None: the baseline of all.
    flops: the encoder's operations in that time (evaluation/cost.py), where they are known.
    """

    group: str
    name: str
    ms: float
    per_second: float
    ms_all_rounds: tuple[float, ...]
    against: tuple[str, ...] | None = None
    flops: int | None = None


@dataclass(frozen=True)
class Bench:
    """The lines of a run, and the machine they ran on; `left_out` says for a line whose library is absent which one that is.

    ms_of: what the milliseconds and operations of a line are for.
    """

    machine: dict[str, Any]
    baseline: str
    lines: tuple[Line, ...]
    left_out: dict[str, str]
    ms_of: str = "all texts"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def against(self, line: Line) -> tuple[str, ...]:
        """The names of the lines it is compared with, left out or not."""
        return (self.baseline,) if line.against is None else line.against

    def ratios(self, line: Line) -> dict[str, float]:
        """How many times as fast as each line it is compared with, as far as those were not left out."""
        times = {other.name: other.ms for other in self.lines}
        return {name: times[name] / line.ms for name in self.against(line) if name in times}


def nothing() -> None:
    """Of what needs no preparation."""


@dataclass(frozen=True)
class Way:
    """One way of doing the work: `act` is timed, what `prepare` makes for it is not; `against` and `flops` as in Line."""

    act: Callable[[Any], object]
    prepare: Callable[[], Any] = nothing
    against: tuple[str, ...] | None = None
    flops: int | None = None


def take_turns(group: str, ways: Mapping[str, Way], *, n_texts: int, n_rounds: int, watch: Watch, n_batches: int = 1) -> tuple[Line, ...]:
    """A line per way; the first round warms up and is not counted. n_batches: a round's, where milliseconds are those of one batch."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(n_rounds + 1):
        for name, way in ways.items():
            ready = way.prepare()
            start = time.perf_counter()
            way.act(ready)
            if number:
                seconds[name].append(time.perf_counter() - start)
            watch("rounds", number, n_rounds, name)
    return tuple(_line(group, name, ways[name], times, n_texts, n_batches) for name, times in seconds.items())


def machine() -> dict[str, Any]:
    """What the figures belong to."""
    return {
        "processor": platform.machine(),
        "n_cores": os.cpu_count(),
        "n_threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _line(group: str, name: str, way: Way, seconds: Sequence[float], n_texts: int, n_batches: int) -> Line:
    ms = [second * 1000 / n_batches for second in seconds]
    middle = statistics.median(ms)
    per_second = n_texts / (middle * n_batches) * 1000
    return Line(group, name, round(middle, 1), round(per_second, 1), tuple(round(one, 1) for one in ms), way.against, way.flops)
