"""Types for numbers on the command line: they parse and check them."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def count(text: str) -> int:
    """A whole number from 1."""
    return _between(text, 1, 10**9)


def beams(text: str) -> int:
    """How many hypotheses a search keeps."""
    return _between(text, 1, 1000)


def penalty(text: str) -> float:
    """How much a search favours long texts."""
    return _number(text, "between 0 and 10", lambda number: 0 <= number <= 10)


def folds(text: str) -> int:
    """How many parts to divide texts into: none, or at least 2."""
    number = _between(text, 0, 20)
    if number == 1:
        raise argparse.ArgumentTypeError("1 fold leaves nothing to train on: give 0, or 2 to 20")
    return number


def seed(text: str) -> int:
    """A whole number that every random generator accepts."""
    return _between(text, 0, 2**32 - 1)


def share(text: str) -> float:
    """A part of something: above 0, up to 1."""
    return _number(text, "above 0 and up to 1", lambda number: 0 < number <= 1)


def part(text: str) -> float:
    """A part of something that leaves a rest: above 0 and below 1."""
    return _number(text, "above 0 and below 1", lambda number: 0 < number < 1)


def chance(text: str) -> float:
    """A probability."""
    return _number(text, "between 0 and 1", lambda number: 0 <= number <= 1)


def percent(text: str) -> float:
    """A part of something, in hundredths."""
    return _number(text, "between 0 and 100", lambda number: 0 <= number <= 100)


def inner_chance(text: str) -> float:
    """A probability that is neither 0 nor 1."""
    return _number(text, "above 0 and below 1", lambda number: 0 < number < 1)


def inner_percent(text: str) -> float:
    """A part of something, in hundredths, that is neither nothing nor all of it."""
    return _number(text, "above 0 and below 100", lambda number: 0 < number < 100)


def points(text: str) -> float:
    """Points of a score; below 0 where the score has to rise."""
    return _number(text, "between -100 and 100", lambda number: -100 <= number <= 100)


def ratios(text: str) -> tuple[float, ...]:
    """Numbers above 1, with commas between them."""
    return tuple(
        _number(part, "a number above 1", lambda number: 1 < number < 100)
        for part in text.split(",")
    )


def layers(text: str) -> tuple[int, ...]:
    """Whole numbers from 0, with commas between them."""
    return tuple(_between(part, 0, 999) for part in text.split(","))


def _number(text: str, what: str, holds: Callable[[float], bool]) -> float:
    try:
        number = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from error
    if not holds(number):
        raise argparse.ArgumentTypeError(f"{text} is not {what}")
    return number


def _between(text: str, low: int, high: int) -> int:
    try:
        number = int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from error
    if not low <= number <= high:
        raise argparse.ArgumentTypeError(f"{number} is not between {low} and {high}")
    return number
