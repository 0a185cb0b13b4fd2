"""Types of options, named in commands.toml: each parses and checks what stands after an option."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path as Path  # a type of its own
from typing import Any

from litotes.core.text import is_utf8

Type = Callable[[str], Any]


def path(text: str) -> str:
    """A path that is not empty: an empty one, from a variable that is not set, means nothing.

    What we make has a name that every library can open.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty: name a file or a folder.")
    if not Path(os.path.realpath(text)).name:
        raise argparse.ArgumentTypeError("it is the root of all folders: choose one of yours.")
    if not is_utf8(text):
        raise argparse.ArgumentTypeError("it is not UTF-8: choose another name.")
    return text


def word(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("write comma-separated names: id,region")
    return text.strip()


def listed(one: Type) -> Type:
    """A type of several values, comma-separated."""
    return lambda text: tuple(one(part) for part in text.split(","))


def number(low: float, high: float, *, ends: str = "[]", kind: type = float) -> Type:
    """A type of numbers from low to high; a round bracket in `ends` leaves that end out."""
    least = "above" if ends[0] == "(" else "at least"
    most = "below" if ends[1] == ")" else "at most"

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError as error:
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}") from error
        is_out = value in (low, high) and ends[value == high] in "()"
        if is_out or not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text} is not {least} {low} and {most} {high}")
        return value

    return parse


names = listed(word)
count = number(1, 10**9, kind=int)
port = number(0, 65535, kind=int)
seed = number(0, 2**32 - 1, kind=int)  # what every random generator accepts
layers = listed(number(0, 999, kind=int))
beams = number(1, 1000, kind=int)
penalty = number(0, 10)
share = number(0, 1, ends="(]")
part = number(0, 1, ends="()")
chance = number(0, 1)
percent = number(0, 100)
inner_percent = number(0, 100, ends="()")
points = number(-100, 100)  # below 0 where the score has to rise
ratios = listed(number(1, 100, ends="()"))


def excluded(text: str) -> tuple[str, ...]:
    return () if text == "none" else names(text)


def folds(text: str) -> int:
    """Reads how many parts to divide texts into: none, or at least 2."""
    found: int = number(0, 20, kind=int)(text)
    if found == 1:
        raise argparse.ArgumentTypeError("1 fold leaves nothing to train on: give 0, or 2 to 20")
    return found
