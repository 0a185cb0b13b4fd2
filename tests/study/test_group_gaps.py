"""A study's gaps between groups and its areas under risk-coverage curves: those of one model where
there is one, honest over seeds, and in the report.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_study import LABELS, results_of, score_table, study_of

from litotes.core.values import Answer, Example, Task
from litotes.evaluation.evaluate import TaskPredictions
from litotes.evaluation.gaps import find_gaps
from litotes.evaluation.reliability import risk_coverage
from litotes.evaluation.scores import plain
from litotes.study.confidence import ALL_COLUMNS, find_risks, pooled_curves
from litotes.study.group_gaps import ALL_ROWS, find_group_gaps, leading_rows
from litotes.study.report import Timing, make_report, report_html
from litotes.study.runs import CellAnswers
from litotes.study.tables import ScoreTable

MADE = '[[experiment]]\nname = "Made"\ngrid = { "data.where.variety" = ["a", "b"] }\n'


def cell(
    rate: float, n: int, generator: np.random.Generator, n_seeds: int, gold: int
) -> CellAnswers:
    """Models that are right so often, and mostly right and wrong on the same texts; gold: the seed
    of the texts' labels.
    """
    labels = (np.random.default_rng([7, gold]).random(n) < 0.4).astype(np.int64)
    hard = generator.random(n)  # (text,)
    sure = generator.uniform(0.5, 1, (n_seeds, n)).round(6)
    alone = generator.random((n_seeds, n))
    right = np.where(alone < 0.2, generator.random((n_seeds, n)), hard) < rate
    answers = np.where(right, labels, 1 - labels)
    return CellAnswers(labels, answers, sure, np.ones(n_seeds), LABELS, f"{gold}")


def table(
    rates: dict[str, float], *, n: int = 200, seed: int = 0, n_seeds: int = 3, rows: str = "ab"
) -> ScoreTable:
    """Rows, called by letters, whose models are as good as each other on every column."""
    generator = np.random.default_rng(seed)
    cells = {}
    for row in rows:
        for place, (column, rate) in enumerate(rates.items()):
            cells[row, column] = cell(rate, n, generator, n_seeds, 10 * seed + place)
    return score_table(cells, tested_on="Reddit")


def test_one_seed_has_the_gaps_of_evaluate() -> None:
    made = table({"x": 0.6, "y": 0.8, "z": 0.8}, n_seeds=1)
    examples, answers = [], []
    for column in made.matrix.columns:
        own = made.answers["a", column]
        for gold, given, sure in zip(own.gold, own.answers[0], own.probability[0], strict=True):
            examples.append(Example("a", {"sentiment": LABELS[gold]}, variety=column))
            answers.append(Answer(LABELS[given], float(sure)))
    flags = (False,) * len(examples)
    task = Task("sentiment", LABELS)
    one = TaskPredictions(task, tuple(examples), tuple(answers), flags, flags)
    expected = find_gaps({"sentiment": one}, ["variety"])
    row = next(one for one in find_group_gaps([made]) if one.row == "a")
    uncorrected = [[replace(gap, adjusted_p=1.0) for gap in own.gaps] for own in (row, expected)]
    for own, theirs in zip(*uncorrected, strict=True):
        assert plain(own) == plain(theirs)
    assert list(map(plain, row.groups)) == list(map(plain, expected.groups))
    assert row.spread == expected.spreads[0]


def test_a_planted_gap_is_found_and_corrected_for_all_tests() -> None:
    found = find_group_gaps([table({"x": 0.55, "y": 0.8, "z": 0.8})])
    assert [row.row for row in found] == [ALL_ROWS, "a", "b"]
    (whole,) = leading_rows(found)
    by_measure = {gap.measure: gap for gap in whole.gaps if gap.name == "x"}
    assert set(by_measure) == {"macro_f1", "accuracy", "recall negative", "recall positive"}
    for gap in by_measure.values():
        assert gap.is_significant
        assert gap.difference == pytest.approx(-0.25, abs=0.1)
        assert gap.interval[0] < gap.difference < gap.interval[1] < 0
    assert by_measure["accuracy"].n == (200, 400)
    assert len(whole.gaps) == 3 * 4  # groups, measures
    for family in (whole.gaps, [gap for row in found[1:] for gap in row.gaps]):
        smallest = min(family, key=lambda gap: gap.p)
        assert smallest.adjusted_p == pytest.approx(smallest.p * len(family))
    assert whole.spread is not None
    assert (whole.spread.worst, whole.spread.spread_p < 0.01) == ("x", True)
    assert find_group_gaps([table({"x": 0.7})]) == ()
    assert find_group_gaps([table({"x": 0.7, "y": 0.7}, n=9)]) == ()


def test_areas_are_those_of_the_curve_and_their_interval_is_as_wide_as_the_area_varies() -> None:
    made = table({"x": 0.7, "y": 0.8})
    by_place = {(one.row, one.column): one for one in find_risks([made])}
    own = made.answers["b", "y"]
    pairs = zip(own.probability, own.answers == own.gold, strict=True)
    curves = [risk_coverage(*pair) for pair in pairs]
    found = by_place["b", "y"]
    for name, value in (
        ("error", found.error),
        ("best_area", found.best),
        ("area", found.area.value),
    ):
        assert value == pytest.approx(np.mean([getattr(one, name) for one in curves]))
    assert by_place["b", ALL_COLUMNS].n == 400
    areas, widths = [], []
    for seed in range(30):
        again = find_risks([table({"x": 0.7}, seed=seed, n_seeds=1, rows="a", n=60)])
        areas.append(again[0].area.value)
        widths.append(again[0].area.interval[1] - again[0].area.interval[0])
    assert np.mean(widths) == pytest.approx(2 * 1.96 * np.std(areas), rel=0.3)
    # equal probabilities come in no order
    flat = replace(own, probability=np.full_like(own.probability, 0.8))
    (one,) = find_risks([score_table({("a", "x"): flat})])
    assert one.area.value == pytest.approx(one.error)
    assert one.area.interval[0] < one.error < one.area.interval[1]


def test_the_report_says_gaps_and_areas(tmp_path: Path) -> None:
    made = table({"<x>": 0.55, "y": 0.8, "z": 0.8}, n=60)
    study = study_of(tmp_path, MADE)
    report = make_report(study, results_of(study, {"Made": [made]}), (), n_runs=6, failures={})
    content = json.loads(json.dumps(report.as_json()))["experiments"][0]
    assert content["gaps"][0]["row"] == ALL_ROWS
    assert content["gaps"][0]["gaps"][0]["significant"] is True
    assert len(content["risks"]) == 2 * 4
    for said in ("of 3 gaps in macro-F1", "risk-coverage"):
        assert any(said in one for one in report.abstract)
    assert any("worst <x>" in one for one in content["words"]["gaps"])
    page = report_html(report, Timing((), ()), {})
    assert "&lt;x&gt;" in page
    assert "<x>" not in page
    assert set(pooled_curves([made])) == {"sentiment"}
