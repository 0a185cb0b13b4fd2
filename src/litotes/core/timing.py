"""Side by side in one run: every speed is a ratio against a named line measured in the same
minutes.

All lines of a group take turns, round after round, so that a busy moment of the machine hits them
alike. Milliseconds are the median round's; a ratio is the median of the rounds' ratios, each of two
ways in the same round. Spreads are the quartiles of the rounds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from litotes.core.progress import Watch

N_COLD = 2
"""Runs of a row that are not counted."""
MOST_WRITTEN = 20
"""Rounds that JSON lists one by one; of more of them it gives median and spread alone."""


@dataclass(frozen=True)
class Spread:
    """Half of the rounds lie between low and high."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        low, high = np.quantile(values, [0.25, 0.75]).tolist()
        return cls(*(_rounded(value) for value in (statistics.median(values), low, high)))


@dataclass(frozen=True)
class Line:
    """One way of doing the work: milliseconds (median of the rounds) for what the bench says, and
    texts per second.

    against: the lines it is compared with; None: the baseline of all.
    flops: the encoder's operations in that time (prune/cost.py), where they are known.
    limit: the line that shows how fast the machine can multiply at all.
    agreement: the share of texts that get the label our dense float32 encoder gives them.
    parts: milliseconds by part of the work, of the quickest run.
    """

    group: str
    name: str
    ms: float
    per_second: float
    ms_all_rounds: tuple[float, ...]
    against: tuple[str, ...] | None = None
    flops: int | None = None
    limit: str | None = None
    agreement: float | None = None
    parts: Mapping[str, float] | None = None

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Line:
        """The line as far as it was written."""
        known = {field.name: content[field.name] for field in fields(cls) if field.name in content}
        return cls(**{"ms_all_rounds": ()} | known)

    @property
    def spread(self) -> Spread:
        return Spread.of(self.ms_all_rounds)

    def as_json(self) -> dict[str, Any]:
        content = {name: value for name, value in asdict(self).items() if value is not None}
        if len(self.ms_all_rounds) > MOST_WRITTEN:
            del content["ms_all_rounds"]
            content["n_rounds"] = len(self.ms_all_rounds)
            content["ms_p99"] = _rounded(float(np.quantile(self.ms_all_rounds, 0.99)))
        return content | {"ms_low": self.spread.low, "ms_high": self.spread.high}


@dataclass(frozen=True)
class Bench:
    """The lines of a group; `left_out` says for a line whose library is absent which one that is.

    ms_of: what the milliseconds and operations of a line are for. notes: what a reader of the lines
    has to know.
    """

    baseline: str
    lines: tuple[Line, ...]
    left_out: Mapping[str, str]
    ms_of: str = "all texts"
    notes: tuple[str, ...] = ()

    def as_json(self) -> list[dict[str, Any]]:
        """Each line with its ratios and its share of the limit."""
        return [line.as_json() | self._compared(line) for line in self.lines]

    def against(self, line: Line) -> tuple[str, ...]:
        """The names of the lines it is compared with, left out or not."""
        return (self.baseline,) if line.against is None else line.against

    def ratios(self, line: Line) -> dict[str, Spread]:
        """How many times as fast as each line it is compared with, as far as those were not left
        out.
        """
        rounds = {other.name: other.ms_all_rounds for other in self.lines}
        return {
            name: Spread.of(
                [
                    theirs / ours
                    for theirs, ours in zip(rounds[name], line.ms_all_rounds, strict=True)
                ]
            )
            for name in self.against(line)
            if name in rounds
        }

    def share_of_limit(self, line: Line) -> float | None:
        """Its operations a second as a share of those the machine reaches in one large product, in
        that one's best round.
        """
        limits = [other for other in self.lines if other.name == line.limit]
        if not limits or not line.flops or not limits[0].flops:
            return None
        return round(line.flops / line.ms / (limits[0].flops / min(limits[0].ms_all_rounds)), 4)

    def _compared(self, line: Line) -> dict[str, Any]:
        share = self.share_of_limit(line)
        found = {"ratios": {name: asdict(ratio) for name, ratio in self.ratios(line).items()}}
        return found if share is None else found | {"share_of_limit": share}


def nothing() -> None:
    """Of what needs no preparation."""


@dataclass(frozen=True)
class Way:
    """One way of doing the work: `act` is timed, what `prepare` makes for it is not; `against`,
    `flops` and `limit` as in Line.
    """

    act: Callable[[Any], object]
    prepare: Callable[[], Any] = nothing
    against: tuple[str, ...] | None = None
    flops: int | None = None
    limit: str | None = None


def unheard(name: str, made: object) -> None:
    """Nobody asks what the ways made."""


def take_turns(
    group: str,
    ways: Mapping[str, Way],
    *,
    n_texts: int,
    n_rounds: int,
    watch: Watch,
    n_batches: int = 1,
    n_runs: int = 1,
    first: Callable[[str, Any], None] = unheard,
) -> tuple[Line, ...]:
    """A line per way; the first round warms up and is not counted, but `first` is given what it
    made, by the way's name.

    n_batches: a round's, where milliseconds are those of one batch. n_runs: how often a way acts in
    a row before it is the next one's turn; each time counts as a round of its own, but for the
    first two, when caches are still the other's. Every other round goes backwards, so that nobody
    always follows the same neighbour.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(n_rounds + 1):
        for name in list(ways)[:: -1 if number % 2 else 1]:
            times, made = _in_a_row(ways[name], n_runs if number else min(n_runs, N_COLD + 1))
            if number:
                seconds[name] += times
            else:
                first(name, made)
            watch(f"{group}: rounds", number, n_rounds, name)
    return tuple(
        _line(group, name, ways[name], times, n_texts, n_batches) for name, times in seconds.items()
    )


def _in_a_row(way: Way, n_runs: int) -> tuple[list[float], object]:
    """The seconds of each run, and what the last one made."""
    times, made = [], None
    for _ in range(n_runs):
        ready = way.prepare()
        start = time.perf_counter()
        made = way.act(ready)
        times.append(time.perf_counter() - start)
    return times[N_COLD:] or times, made


def _line(
    group: str, name: str, way: Way, seconds: Sequence[float], n_texts: int, n_batches: int
) -> Line:
    ms = tuple(_rounded(second * 1000 / n_batches) for second in seconds)
    middle = statistics.median(ms)
    per_second = n_texts / (middle * n_batches) * 1000
    return Line(
        group, name, _rounded(middle), round(per_second, 2), ms, way.against, way.flops, way.limit
    )


def _rounded(number: float) -> float:
    """To five digits: a microsecond of what takes milliseconds."""
    return float(f"{number:.5g}")
