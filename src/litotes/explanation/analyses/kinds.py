"""Standard and effective attention: both are shown, or one where they are the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from litotes.explanation.analyses.means import Number
from litotes.explanation.observation import KINDS

_NOTHING = 1e-6
"""What rounding may leave between two maps that are the same."""


def kinds_shown(numbers: Mapping[str, Iterable[Number]]) -> tuple[str, ...]:
    """Both kinds; the first alone where their numbers are the same, as in texts too short to hide
    any attention.
    """
    pairs = zip(numbers["standard"], numbers["effective"], strict=True)
    are_same = all(_is_same(standard, effective) for standard, effective in pairs)
    return KINDS[:1] if are_same else KINDS


def _is_same(one: Number, other: Number) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) < _NOTHING
