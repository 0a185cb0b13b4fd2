"""What became of a job, and how far all of them are."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from litotes.core.errors import Stopped, UserError
from litotes.core.progress import Watch, describe_duration

Job = TypeVar("Job")
Work = Callable[[Job, Watch], None]
"""work(job, watch): a function of a module, so that another process can import it; it writes its
result into a folder of its own.
"""

_N_NAMED = 3  # jobs named as running; more would not fit a line


@dataclass(frozen=True)
class Outcome:
    """How one job ended.

    error: one sentence, None when all went well. trace: the traceback of a bug, as opposed to a
    user's mistake.
    """

    name: str
    seconds: float
    error: str | None = None
    trace: str | None = None


def attempt(name: str, do: Callable[[], None]) -> Outcome:
    """Does a job; an error becomes its outcome, and only a request to stop reaches the caller."""
    started = time.monotonic()
    error, trace = None, None
    try:
        do()
    except Stopped:
        raise
    except UserError as mistake:
        error = str(mistake)
    except Exception as bug:
        error, trace = error_sentence(bug), traceback.format_exc()
    return Outcome(name, time.monotonic() - started, error, trace)


def error_sentence(error: BaseException) -> str:
    """TypeName: the first line of its message."""
    return f"{type(error).__name__}: {str(error).strip()}".splitlines()[0].removesuffix(": ")


class JobProgress:
    """Counts outcomes, and reports what is running and how long the rest will take."""

    def __init__(self, n_total: int, *, n_workers: int, watch: Watch, what: str = "runs") -> None:
        self.n_total, self.n_workers, self.watch, self.what = n_total, n_workers, watch, what
        self.n_done = self.n_failed = 0
        self.seconds: list[float] = []

    def add(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            self.n_done += 1
            if outcome.error is None:
                self.seconds.append(outcome.seconds)
            else:
                self.n_failed += 1  # how soon a job failed says nothing about the others

    def show(self, running: Mapping[str, float]) -> None:
        """running: the jobs being done and when each was begun, by time.monotonic."""
        seconds = self._estimate_seconds_left(running.values())
        parts = [
            f"{self.n_failed} failed" if self.n_failed else "",
            f"running {_list_names(list(running))}" if running else "",
            f"about {describe_duration(seconds)} left" if seconds else "",
        ]
        self.watch(self.what, self.n_done, self.n_total, ", ".join(filter(None, parts)))

    def stopped(self) -> Stopped:
        """The exception for a user who pressed Ctrl-C."""
        return Stopped(
            f"Stopped with {self.n_done} of {self.n_total} {self.what} done. Start the command"
            " again to go on."
        )

    def _estimate_seconds_left(self, begun: Iterable[float]) -> float:
        """(mean × jobs waiting + what is left of those running) / workers; 0 when not known."""
        n_left = self.n_total - self.n_done
        if not self.seconds or not n_left:
            return 0.0
        now, mean = time.monotonic(), sum(self.seconds) / len(self.seconds)
        rests = [max(mean - (now - since), 0.0) for since in begun]
        return (mean * (n_left - len(rests)) + sum(rests)) / min(self.n_workers, n_left)


def _list_names(names: list[str]) -> str:
    n_more = len(names) - _N_NAMED
    return ", ".join(names[:_N_NAMED]) + (f" and {n_more} more" if n_more > 0 else "")
