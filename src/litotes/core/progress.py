"""How long work reports its progress: the core never prints."""

from __future__ import annotations

from collections.abc import Callable

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
