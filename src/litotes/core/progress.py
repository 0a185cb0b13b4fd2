"""How long work tells the outside how far it is: the core never prints."""

from __future__ import annotations

from collections.abc import Callable

Watch = Callable[[str, int, int, str], None]
"""watch(what, done, total, note): called often, by whoever works; drawn by the command line."""


def ignore_progress(what: str, done: int, total: int, note: str = "") -> None:
    """Nobody looks."""


def prefix_watch(watch: Watch, label: str) -> Watch:
    """The same watch with a name before everything it is told."""

    def watch_part(what: str, done: int, total: int, note: str) -> None:
        watch(f"{label}: {what}", done, total, note)

    return watch_part
