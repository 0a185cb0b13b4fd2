"""The parts of the texts that teach, fit, test and measure exits."""

from __future__ import annotations

import random

import pytest

from litotes.core.values import Example
from litotes.pruning.exits import ExitTexts, _divide


def parts_of(found: ExitTexts) -> list[tuple[Example, ...]]:
    return [found.taught, found.fitted, found.tested, found.measured]


@pytest.mark.parametrize("n_a_group", [1, 4])
def test_no_group_is_in_two_parts(n_a_group: int) -> None:
    """Or an exit is tested on sentences of a review whose others have taught it."""
    examples = [Example(f"t{n}", {}, group=f"g{n // n_a_group}") for n in range(200)]
    random.Random(0).shuffle(examples)
    found = _divide({"old": [], "new": examples, "test": []}, [], "made", 20)
    groups = [{example.group for example in part} for part in parts_of(found)]
    assert sum(map(len, groups)) == len(set().union(*groups)) == 200 / n_a_group
    for part, n in zip(parts_of(found), (45, 30, 75, 50), strict=True):
        assert len(part) == pytest.approx(n, abs=0 if n_a_group == 1 else 6)
