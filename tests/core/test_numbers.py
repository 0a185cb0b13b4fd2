"""Scores from counts, by hand; correlation as numpy has it."""

from __future__ import annotations

import numpy as np
import pytest

from litotes.core.numbers import classes_of, confusion, macro_f1, pearson, ranks


def test_macro_f1_by_hand() -> None:
    counts = confusion([0, 0, 1, 2], [0, 1, 1, 1], 4)
    assert counts.tolist() == [[1, 1, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert classes_of(counts).tolist() == [True, True, True, False]
    # 2/3, 1/2 and 0; the last class neither occurs nor is predicted
    assert macro_f1(counts) == pytest.approx(7 / 18)
    assert macro_f1(counts, np.array([True, True, False, False])) == pytest.approx(7 / 12)
    assert macro_f1(counts, np.array([True] * 4)) == pytest.approx(7 / 24)
    assert macro_f1(np.stack([counts, counts.T])) == pytest.approx([7 / 18, 7 / 18])
    assert macro_f1(np.zeros((2, 2))) == 0


def test_correlation_and_ranks() -> None:
    one, other = np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 7.0])
    assert pearson(one, other) == pytest.approx(np.corrcoef(one, other)[0, 1])
    assert pearson(one, np.full(3, 0.1)) == 0
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1, 3.5, 2]
