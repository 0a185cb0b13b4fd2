"""The shared task's score, and who chooses: held-out texts, never the validation file."""

from __future__ import annotations

from typing import Any

import pytest

from reproduction.alta import ATTEMPTS, choose, scores_by_variety


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
    varieties = ["en-AU", "en-UK", "en-AU", "en-UK", "en-AU", "en-UK"]
    found = scores_by_variety([0, 0, 1, 1, 0, 1], [0, 1, 1, 1, 0, 0], varieties)
    assert list(found) == ["en-AU", "en-UK"]
    assert found["en-AU"] == 1
    # of 0 none, of 1 one of two and one wrongly
    assert found["en-UK"] == pytest.approx((0 + 0.5) / 2)
