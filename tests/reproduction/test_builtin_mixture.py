"""reproduction/builtin_mixture.py: where the line is drawn, what is mixed, what is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from litotes.core.numbers import confusion, macro_f1
from reproduction.builtin_mixture import (
    FIRST,
    N_MOST,
    Leads,
    Parts,
    _facts,
    choose_temperature,
    draw_line,
    in_order,
    is_harmless,
    mix_greedily,
)


def test_scores_of_many_lines_are_those_of_each() -> None:
    generator = np.random.default_rng(0)
    gold = generator.integers(0, 2, 50)
    lead = generator.normal(0, 1, 50)
    lines = np.array([-9.0, -0.4, lead[7], 0.0, 9.0])  # one that a text lies on
    found = Leads(lead, gold).scores(lines)
    for line, score in zip(lines, found, strict=True):
        assert score == pytest.approx(macro_f1(confusion(gold, lead > line, 2)))


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


def test_the_temperature_is_that_of_the_sets_together() -> None:
    """Answers that are twice as sure as they may be, in a large set and a small one."""
    generator = np.random.default_rng(3)

    def drawn(n: int, sure: float) -> Leads:
        true = generator.normal(0, 2, n)
        gold = (generator.random(n) < 1 / (1 + np.exp(-true))).astype(np.int64)
        return Leads(sure * true + 0.5, gold)

    both = {"one": drawn(20_000, 2.0), "other": drawn(4000, 2.0)}
    assert choose_temperature(both, 0.5) == pytest.approx(2, rel=0.1)
    assert both["one"].calibration_error(0.5, 2.0) < 0.01 < both["one"].calibration_error(0.5, 1.0)
    apart = {"one": drawn(20_000, 2.0), "other": drawn(20_000, 1.0)}
    assert 1 < choose_temperature(apart, 0.5) < 2


def test_the_area_is_how_often_the_second_class_leads() -> None:
    lead, gold = np.array([0.0, 1.0, 1.0, 2.0]), np.array([0, 0, 1, 1])
    assert Leads(lead, gold).area() == pytest.approx(3.5 / 4)  # of four pairs one is even
    assert Leads(-lead, gold).area() == pytest.approx(0.5 / 4)


def found(reserved: float, elsewhere: float) -> dict[str, Any]:
    scores = {"reserved, sarcasm": reserved, "other tweets, sarcasm": elsewhere}
    return {"scores": scores, "mean": (reserved + elsewhere) / 2}


def test_only_sets_of_another_kind_must_not_lose() -> None:
    first = found(0.9, 0.6)["scores"]
    assert is_harmless(found(0.1, 0.596)["scores"], first)
    assert not is_harmless(found(0.95, 0.594)["scores"], first)


def look_at_shares(parts: Parts) -> dict[str, Any]:
    """At home students are better, elsewhere the first edition; three to one is best."""
    share = sum(name != FIRST for name in parts) / len(parts)
    return found(0.6 + 0.2 * share, 0.60 - 0.1 * (share - 0.5) ** 2 * (share > 0.75))


def test_what_improves_most_is_taken_in_until_nothing_does() -> None:
    looked: list[Parts] = []

    def look_at(parts: Parts) -> dict[str, Any]:
        looked.append(parts)
        return look_at_shares(parts)

    chosen = mix_greedily(["one", "other", FIRST], look_at)
    assert len(looked) == len(set(looked))
    # alone a student does harm; of the harmless ones three quarters of students is best
    assert chosen.count(FIRST) / len(chosen) == pytest.approx(0.25)
    assert len(chosen) <= N_MOST


def test_a_student_that_nothing_improves_stays_alone() -> None:
    def look_at(parts: Parts) -> dict[str, Any]:
        return found(0.9, 0.9) if parts == ("one",) else found(0.7, 0.7)

    assert mix_greedily(["one", "other", FIRST], look_at) == ("one",)


def test_facts_and_pruning_are_never_those_of_the_first_edition() -> None:
    assert in_order((FIRST, "ratings", "dressed")) == ("dressed", "ratings", FIRST)


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
