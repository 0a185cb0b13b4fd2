"""Lines of a benchmark: every speed is a ratio against a named line measured in the same minutes.

All lines of a group take turns (core/timing.py). Milliseconds are the median round's; a ratio is
the median of the rounds' ratios, each of two lines in the same round. Spreads are the quartiles of
the rounds.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from litotes.core.progress import TimedAction, Watch, ignore_result, time_in_turns

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
        return cls(_round(statistics.median(values)), _round(low), _round(high))


@dataclass(frozen=True)
class Line:
    """One way of doing the work: milliseconds (median of the rounds) for what the bench says, and
    texts per second.

    against: the lines it is compared with; None: the baseline of all.
    flops: the encoder's operations in that time (pruning/cost.py), where they are known.
    limit: the line that shows how fast the machine can multiply at all.
    shown_by: of a limit, the product that showed it.
    ms_best: of the quickest round, where JSON leaves the rounds out.
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
    shown_by: str | None = None
    ms_best: float | None = None

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Line:
        """The line as far as it was written."""
        names = {known.name for known in fields(cls)}
        known = {name: value for name, value in content.items() if name in names}
        return cls(**{"ms_all_rounds": ()} | known)

    @property
    def spread(self) -> Spread:
        return Spread.of(self.ms_all_rounds)

    @property
    def best_rate(self) -> float:
        """Operations a millisecond in its quickest round; 0 where they are not known."""
        quickest = self.ms_best or min(self.ms_all_rounds, default=self.ms)
        return (self.flops or 0) / quickest

    def as_json(self) -> dict[str, Any]:
        content = {name: value for name, value in asdict(self).items() if value is not None}
        if len(self.ms_all_rounds) > MOST_WRITTEN:
            del content["ms_all_rounds"]
            content["n_rounds"] = len(self.ms_all_rounds)
            content["ms_best"] = min(self.ms_all_rounds)
            content["ms_p99"] = _round(float(np.quantile(self.ms_all_rounds, 0.99)))
        return content | {"ms_low": self.spread.low, "ms_high": self.spread.high}


@dataclass(frozen=True)
class BenchResult:
    """The lines of a group; `left_out` names the missing library of every line that was left out,
    `refused` says why an opponent is not among them.

    ms_of: what the milliseconds and operations of a line are for. notes: what a reader of the lines
    has to know.
    """

    baseline: str
    lines: tuple[Line, ...]
    left_out: Mapping[str, str]
    ms_of: str = "all texts"
    notes: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> list[dict[str, Any]]:
        """Each line with its ratios and its share of the limit."""
        return [line.as_json() | self._comparison(line) for line in self.lines]

    def against(self, line: Line) -> tuple[str, ...]:
        """The names of the lines it is compared with, left out or not."""
        return (self.baseline,) if line.against is None else line.against

    def ratios(self, line: Line) -> dict[str, Spread]:
        """How many times as fast as each line it is compared with, if that one was measured."""
        rounds = {other.name: other.ms_all_rounds for other in self.lines}
        found = {}
        for name in self.against(line):
            if name in rounds:
                pairs = zip(rounds[name], line.ms_all_rounds, strict=True)
                found[name] = Spread.of([theirs / ours for theirs, ours in pairs])
        return found

    def share_of_limit(self, line: Line) -> float | None:
        """Its operations a second as a share of the most the machine has shown, in any round: in a
        product alone, or in a line of the same limit, which computes products too.
        """
        measured = [other for other in self.lines if other.name == line.limit]
        if not line.flops or not any(other.flops for other in measured):
            return None
        measured += [other for other in self.lines if other.limit == line.limit]
        return round(line.flops / line.ms / max(other.best_rate for other in measured), 4)

    def _comparison(self, line: Line) -> dict[str, Any]:
        ratios = {name: asdict(ratio) for name, ratio in self.ratios(line).items()}
        share = self.share_of_limit(line)
        return {"ratios": ratios} | ({} if share is None else {"share_of_limit": share})


@dataclass(frozen=True)
class Candidate(TimedAction):
    """One way of doing the work, ready to be timed; `against`, `flops` and `limit` as in Line."""

    against: tuple[str, ...] | None = None
    flops: int | None = None
    limit: str | None = None


def time_lines(
    group: str,
    candidates: Mapping[str, Candidate],
    *,
    n_texts: int,
    n_rounds: int,
    watch: Watch,
    n_batches: int = 1,
    n_runs: int = 1,
    on_first: Callable[[str, Any], None] = ignore_result,
) -> tuple[Line, ...]:
    """A line per candidate, timed in turns; n_runs and on_first as in `time_in_turns`.

    n_batches: a round's, where milliseconds are those of one batch.
    """
    seconds = time_in_turns(
        candidates,
        what=f"{group}: rounds",
        n_rounds=n_rounds,
        watch=watch,
        n_runs=n_runs,
        on_first=on_first,
    )
    lines = []
    for name, candidate in candidates.items():
        lines.append(
            make_line(group, name, candidate, seconds[name], n_texts=n_texts, n_batches=n_batches)
        )
    return tuple(lines)


def make_line(
    group: str,
    name: str,
    candidate: Candidate,
    seconds: Sequence[float],
    *,
    n_texts: int,
    n_batches: int = 1,
) -> Line:
    """seconds: of each round, for all its texts and batches."""
    ms = tuple(_round(second * 1000 / n_batches) for second in seconds)
    middle = statistics.median(ms)
    return Line(
        group,
        name,
        _round(middle),
        round(n_texts / n_batches / middle * 1000, 2),
        ms,
        against=candidate.against,
        flops=candidate.flops,
        limit=candidate.limit,
    )


def _round(number: float) -> float:
    """To five digits: a microsecond of what takes milliseconds."""
    return float(f"{number:.5g}")
