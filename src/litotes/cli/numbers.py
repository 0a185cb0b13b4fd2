"""Numbers on the command line, checked where they are read."""

from __future__ import annotations

import argparse


def count(text: str) -> int:
    """A whole number from 1."""
    return _between(text, 1, 10**9)


def seed(text: str) -> int:
    """A whole number that every generator takes."""
    return _between(text, 0, 2**32 - 1)


def _between(text: str, low: int, high: int) -> int:
    try:
        number = int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from error
    if not low <= number <= high:
        raise argparse.ArgumentTypeError(f"{number} is not between {low} and {high}")
    return number
