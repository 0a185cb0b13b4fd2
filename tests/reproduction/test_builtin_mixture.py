"""reproduction/builtin_mixture.py: where the line is drawn, which share is taken, what is told."""

from __future__ import annotations

import numpy as np
import pytest

from reproduction.builtin_mixture import Leads, _facts, choose, draw_line


def test_the_line_lies_where_the_mean_over_sets_is_best() -> None:
    generator = np.random.default_rng(1)
    gold = np.arange(400) % 2
    lead = np.where(gold == 1, 2.0, -1.0) + generator.normal(0, 0.3, 400)
    assert draw_line({"one": Leads(lead, gold)}) == pytest.approx(0.5, abs=0.3)


def test_a_large_set_counts_no_more_than_a_small_one() -> None:
    """Ten times the same texts draw the line where they do once."""
    generator = np.random.default_rng(2)
    gold = np.arange(300) % 2
    one = Leads(np.where(gold == 1, 1.0, -1.0) + generator.normal(0, 1, 300), gold)
    other = Leads(np.where(gold == 1, 2.0, 0.0) + generator.normal(0, 1, 300), gold)
    many = Leads(np.tile(other.lead, 10), np.tile(other.gold, 10))
    assert draw_line({"a": one, "b": many}) == pytest.approx(
        draw_line({"a": one, "b": other}), abs=0.25
    )


def found(reserved: float, elsewhere: float) -> dict[str, object]:
    scores = {"reserved, sarcasm": reserved, "other tweets, sarcasm": elsewhere}
    return {"scores": scores, "mean": (reserved + elsewhere) / 2}


def test_the_best_is_taken_of_those_that_lose_nothing_elsewhere() -> None:
    tried = {
        "first edition": found(0.6, 0.60),
        "1": found(0.9, 0.58),
        "0.75": found(0.8, 0.596),
        "0.5": found(0.7, 0.61),
    }
    assert choose(tried) == "0.75"
    with pytest.raises(SystemExit, match="Every share loses"):
        choose({"first edition": found(0.6, 0.6), "1": found(0.9, 0.5)})


def test_facts_do_not_tell_where_data_lay() -> None:
    facts = {
        "recipe": {"data": {"source": "vader:/a/b/vader + sampler", "avoid": ["x:/a/b/glue"]}},
        "history": [1, 2],
        "notes": ["kept", "Distilled from 6 teachers (/a/b/mpnet)."],
    }
    clean = _facts(facts, "a mixture")
    assert clean == {
        "recipe": {"data": {"source": "vader:data/vader + sampler", "avoid": ["x:data/glue"]}},
        "notes": ["kept", "a mixture"],
    }
