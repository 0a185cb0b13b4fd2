"""Progress reports of long work (the core never prints), and its timing side by side: all
actions take turns, so that a busy moment of the machine hits them alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Watch = Callable[[str, int, int, str], None]
"""watch(what, done, total, note): called often by what does the work; drawn by the command line."""


def describe_duration(seconds: float) -> str:
    """A length of time, as exactly as an estimate deserves."""
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


class Milestone(str):
    """A note worth a line of its own: the end of an epoch, not just another step."""


def ignore_progress(what: str, done: int, total: int, note: str = "") -> None:
    """The watch of work whose progress is not shown."""


def prefix_watch(watch: Watch, label: str) -> Watch:
    """The same watch with a label before everything that is reported to it."""

    def watch_part(what: str, done: int, total: int, note: str) -> None:
        watch(f"{label}: {what}", done, total, note)

    return watch_part


N_COLD = 2
"""Runs of a row that are not counted: the caches still hold what the action before left there."""


def no_preparation() -> None:
    """For actions that need none."""


@dataclass(frozen=True)
class TimedAction:
    """`act` is timed; `prepare`, whose result it is given, is not."""

    act: Callable[[Any], object]
    prepare: Callable[[], Any] = no_preparation


def ignore_result(name: str, result: object) -> None:
    """For callers that only want the times."""


def time_in_turns(
    actions: Mapping[str, TimedAction],
    *,
    what: str,
    n_rounds: int,
    watch: Watch,
    n_runs: int = 1,
    on_first: Callable[[str, Any], None] = ignore_result,
) -> dict[str, list[float]]:
    """The seconds of each counted run, by the action's name.

    what: names the rounds in the progress bar. n_runs: how often an action runs in a row before it
    is the next one's turn; each run counts by itself, except for the first `N_COLD` of a row. The
    first round warms up and is not counted; `on_first` is given its result, by the action's name.
    """
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(n_rounds + 1):
        is_warm_up = number == 0
        n_now = min(n_runs, N_COLD + 1) if is_warm_up else n_runs
        # every other round goes backwards: no action always follows the same neighbour
        for name in list(actions)[:: -1 if number % 2 else 1]:
            times, result = _run_in_a_row(actions[name], n_now)
            if is_warm_up:
                on_first(name, result)
            else:
                seconds[name] += times
            watch(what, number, n_rounds, name)
    return seconds


def _run_in_a_row(action: TimedAction, n_runs: int) -> tuple[list[float], object]:
    """The seconds of each warm run, and the result of the last one."""
    times, result = [], None
    for _ in range(n_runs):
        prepared = action.prepare()
        start = time.perf_counter()
        result = action.act(prepared)
        times.append(time.perf_counter() - start)
    return times[N_COLD:] or times, result
