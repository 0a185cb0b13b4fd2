"""The shared task's score, and who chooses: held-out texts, never the validation file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reproduction.alta import ATTEMPTS, by_variety, choose


def attempt(held_out: float, valid: list[list[float]]) -> dict[str, Any]:
    return {"held_out": [held_out, held_out], "valid": valid}


def test_held_out_texts_choose_and_the_worse_variety_counts() -> None:
    small = [name for name, one in ATTEMPTS.items() if not one.is_large]
    poor = {name: attempt(0.1, [[0.99, 0.99], [0.99, 0.99]]) for name in ATTEMPTS}
    better = attempt(0.8, [[0.9, 0.7], [0.6, 0.8]])
    other = attempt(0.7, [[0.5, 0.9], [0.9, 0.4]])
    found = {
        "sentiment": {"attempts": poor | {small[0]: better}},
        "sarcasm": {"attempts": poor | {small[1]: other}},
    }
    chosen = choose(found, is_large=False)
    assert chosen["attempts"] == {"sentiment": small[0], "sarcasm": small[1]}
    assert chosen["scores"] == pytest.approx([0.6, 0.5])
    assert chosen["mean"] == pytest.approx(0.55)
    assert all(
        ATTEMPTS[name].is_large for name in choose(found, is_large=True)["attempts"].values()
    )


def test_each_variety_is_scored_alone() -> None:
    varieties = np.array(["en-AU", "en-UK", "en-AU", "en-UK", "en-AU", "en-UK"])
    gold, predicted = np.array([0, 0, 1, 1, 0, 1]), np.array([0, 1, 1, 1, 0, 0])
    australian, british = by_variety(gold, predicted, varieties)
    assert australian == 1
    assert british == pytest.approx((0 + 0.5) / 2)  # of 0 none, of 1 one of two and one wrongly
