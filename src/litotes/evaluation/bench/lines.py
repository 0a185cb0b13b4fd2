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
    """One way of doing the work: milliseconds for all texts (median of the rounds), and texts per second.

    against: the lines it is compared with; None: the baseline of all.
    """

    group: str
    name: str
    ms: float
    per_second: float
    ms_all_rounds: tuple[float, ...]
    against: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Bench:
    """The lines of a run, and the machine they ran on; `left_out` says for a line whose library is absent which one that is."""

    machine: dict[str, Any]
    baseline: str
    lines: tuple[Line, ...]
    left_out: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def ratios(self, line: Line) -> dict[str, float]:
        """How many times as fast as each line it is compared with, as far as those were not left out."""
        times = {other.name: other.ms for other in self.lines}
        against = (self.baseline,) if line.against is None else line.against
        return {name: times[name] / line.ms for name in against if name in times}


def nothing() -> None:
    """Of what needs no preparation."""


@dataclass(frozen=True)
class Way:
    """One way of doing the work: `act` is timed, what `prepare` makes for it is not; `against` as in Line."""

    act: Callable[[Any], object]
    prepare: Callable[[], Any] = nothing
    against: tuple[str, ...] | None = None


def take_turns(group: str, ways: Mapping[str, Way], *, n_texts: int, n_rounds: int, watch: Watch) -> tuple[Line, ...]:
    """A line per way; the first round warms up and is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(n_rounds + 1):
        for name, way in ways.items():
            ready = way.prepare()
            start = time.perf_counter()
            way.act(ready)
            if number:
                seconds[name].append(time.perf_counter() - start)
            watch("rounds", number, n_rounds, name)
    return tuple(_line(group, name, n_texts, times, ways[name].against) for name, times in seconds.items())


def machine() -> dict[str, Any]:
    """What the figures belong to."""
    return {
        "processor": platform.machine(),
        "n_cores": os.cpu_count(),
        "n_threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _line(group: str, name: str, n_texts: int, seconds: Sequence[float], against: tuple[str, ...] | None) -> Line:
    middle = statistics.median(seconds)
    rounds = tuple(round(s * 1000, 1) for s in seconds)
    return Line(group, name, round(middle * 1000, 1), round(n_texts / middle, 1), rounds, against)
