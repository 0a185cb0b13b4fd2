"""The shared task's score, and who chooses: held-out texts, never the validation file."""

from __future__ import annotations

from typing import Any

import pytest

from reproduction import alta
from reproduction.alta import ATTEMPTS, VARIETIES, choose, over_texts, scores_by_variety


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


def test_intervals_over_texts_compare_both_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The large ones make no error; the small ones err in one British text of ten, all alike."""
    monkeypatch.setattr(alta, "N_RESAMPLES", 200)
    varieties = [variety for variety in VARIETIES for _ in range(40)]
    gold = [place % 2 for place in range(80)]
    wrong = [1 - label if place in (40, 51, 62, 73) else label for place, label in enumerate(gold)]
    attempts = {"right": {"predicted": [gold] * 3}, "wrong": {"predicted": [wrong] * 3}}
    own = {"gold": gold, "varieties": varieties, "attempts": attempts}
    chosen: dict[str, dict[str, Any]] = {
        "small": {"attempts": {"sentiment": "wrong", "sarcasm": "right"}},
        "large": {"attempts": {"sentiment": "right", "sarcasm": "right"}},
    }
    over_texts({"sentiment": own, "sarcasm": own}, chosen)
    assert chosen["large"]["over_texts"]["mean"] == [1, 1, 1]
    score, low, high = chosen["small"]["over_texts"]["sentiment en-UK"]
    assert score == pytest.approx(0.9)
    assert low < 0.87 < 0.93 < high
    assert chosen["small"]["over_texts"]["sentiment en-AU"] == [1, 1, 1]
    # the worse variety counts, and one of two tasks
    better, low, high = chosen["large"]["better"]["mean"]
    assert better == pytest.approx(0.05)
    assert 0 <= low < better < high


def test_a_vote_hides_what_one_seed_gets_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alta, "N_RESAMPLES", 2)
    varieties = [variety for variety in VARIETIES for _ in range(8)]
    gold = [place % 2 for place in range(16)]
    none = [1 - label for label in gold]
    own = {
        "gold": gold,
        "varieties": varieties,
        "attempts": {"one of three": {"predicted": [gold, none, gold]}},
    }
    chosen: dict[str, dict[str, Any]] = {
        size: {"attempts": dict.fromkeys(("sentiment", "sarcasm"), "one of three")}
        for size in ("small", "large")
    }
    over_texts({"sentiment": own, "sarcasm": own}, chosen)
    found = chosen["small"]["over_texts"]
    assert found["vote"][0] == 1
    assert found["mean"][0] == pytest.approx(2 / 3, abs=1e-3)
