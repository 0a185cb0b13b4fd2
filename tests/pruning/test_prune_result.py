"""Which setting is chosen, and what is said where none is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from litotes.pruning import PruneResult, PruneSettings
from litotes.pruning.choice import TextCounts, best_within
from litotes.pruning.frontier import NO_LOSS, Kind, Loss, Point


def made(ratio: float, loss: float, *, chance: float = 0.5, kind: Kind = "pruned") -> Point:
    """A setting that texts showed to lose nothing, and that is expected to lose `loss`."""
    expected = Loss(loss, (loss - 1.0, loss + 1.0), chance)
    return Point(ratio, (0.5,), 8, ratio, ratio, NO_LOSS, None, 0.01, kind=kind, expected=expected)


FRONTIER = (
    made(1.0, 0.0, chance=1.0, kind="dense"),
    made(1.0, -0.4, chance=0.95, kind="control"),
    made(1.5, 0.1, chance=0.85),
    made(2.0, 0.4, chance=0.55),
    made(2.5, 0.7, chance=0.4),
)


@pytest.mark.parametrize(
    ("budget", "sure", "target"),
    [(0.5, None, 2.0), (1.0, None, 2.5), (0.5, 0.8, 1.5), (0.5, 0.5, 2.0)],
)
def test_the_fastest_within_the_budget(budget: float, sure: float | None, target: float) -> None:
    best = best_within(FRONTIER, budget, sure)
    assert best is not None
    assert best.target == target


@pytest.mark.parametrize(("budget", "sure"), [(0.05, None), (0.5, 0.9)])
def test_dense_and_its_control_are_no_pruning(budget: float, sure: float | None) -> None:
    assert best_within(FRONTIER, budget, sure) is None


def refusal(*, loss: float, sure: float | None = None, n: int = 300, n_folds: int = 0) -> str:
    texts = TextCounts(kept_apart=n, n_folds=n_folds)
    settings = PruneSettings(loss=loss, sure=sure)
    return PruneResult(settings, FRONTIER, None, (), texts=texts).refusal()


def test_a_refusal_says_how_many_texts_are_missing() -> None:
    told = refusal(loss=0.5, sure=0.95)
    assert "1.5 times fewer" in told
    assert "certainty of 0.95" in told
    assert "0.85" in told
    # an interval of ± 1 around 0.1 has to shrink to where 0.5 lies outside of it
    assert "about 1,050 more labelled texts" in told
    assert "--cross-fit 4" in told
    assert "--cross-fit" not in refusal(loss=0.5, sure=0.95, n_folds=4)


def test_a_refusal_says_where_texts_do_not_help() -> None:
    assert "more would not change it" in refusal(loss=-3.0)
    assert "times the 300 labelled texts" in refusal(loss=0.0)
    assert "no number of texts" in refusal(loss=0.099)
    assert "--confidence" not in refusal(loss=0.0)


def test_texts_in_words() -> None:
    counts = TextCounts(kept_apart=200, in_folds=1800, n_folds=4, unlabelled=5000, test=600)
    words = counts.in_words()
    for shown in ("200", "1800", "4 folds", "5000", "600 texts of the test split"):
        assert shown in words
    assert "--held-out" in replace(counts, test=0).in_words()
