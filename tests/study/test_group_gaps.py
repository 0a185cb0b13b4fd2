"""A study's gaps between groups and its areas under risk-coverage curves: those of one model where
there is one, honest over seeds, and in the report.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from made_study import LABELS, results_of, score_table, study_of

from litotes.core.values import Answer, Example, Task
from litotes.evaluation import gaps
from litotes.evaluation.evaluate import TaskPredictions
from litotes.evaluation.gaps import find_gaps
from litotes.evaluation.reliability import risk_coverage
from litotes.study.confidence import ALL_COLUMNS, find_risks, pooled_curves
from litotes.study.group_gaps import ALL_ROWS, find_group_gaps, leading_rows
from litotes.study.report import Timing, make_report, report_html
from litotes.study.runs import CellAnswers
from litotes.study.tables import ScoreTable

MADE = '[[experiment]]\nname = "Made"\ngrid = { "data.where.variety" = ["a", "b"] }\n'
TASK = Task("sentiment", LABELS)


def cell(
    rate: float, n: int, generator: np.random.Generator, *, n_seeds: int = 3, gold: int = 0
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
            cells[row, column] = cell(rate, n, generator, n_seeds=n_seeds, gold=10 * seed + place)
    return score_table(cells, tested_on="Reddit")


def one_model(row: str, made: ScoreTable) -> TaskPredictions:
    """The first seed of a row's models as `evaluate` sees it."""
    examples, answers = [], []
    for column in made.matrix.columns:
        own = made.answers[row, column]
        for gold, given, sure in zip(own.gold, own.answers[0], own.probability[0], strict=True):
            examples.append(Example("a", {"sentiment": LABELS[gold]}, variety=column))
            answers.append(Answer(LABELS[given], float(sure)))
    flags = (False,) * len(examples)
    return TaskPredictions(TASK, tuple(examples), tuple(answers), flags, flags)


def test_one_seed_has_the_gaps_of_evaluate() -> None:
    made = table({"x": 0.6, "y": 0.8, "z": 0.8}, n_seeds=1)
    row = next(one for one in find_group_gaps([made]) if one.row == "a")
    expected = find_gaps({"sentiment": one_model("a", made)}, ["variety"])
    for own, theirs in zip(row.groups, expected.groups, strict=True):
        assert own.name == theirs.name
        numbers = (own.macro_f1, own.accuracy, own.ece, own.kappa, own.ece_by_chance)
        others = (theirs.macro_f1, theirs.accuracy, theirs.ece, theirs.kappa, theirs.ece_by_chance)
        assert numbers == pytest.approx(others)
        assert dict(own.recall) == pytest.approx(dict(theirs.recall))
        assert own.interval == pytest.approx(theirs.interval)
    assert [gap.measure for gap in row.gaps] == [gap.measure for gap in expected.gaps]
    for mine, other in zip(row.gaps, expected.gaps, strict=True):
        own_numbers = (*mine.n, mine.difference, mine.p, mine.power, *mine.interval)
        assert own_numbers == pytest.approx(
            (*other.n, other.difference, other.p, other.power, *other.interval)
        )
    assert row.spread == expected.spreads[0]


def test_a_planted_gap_is_found_and_corrected_for_all_tests() -> None:
    found = find_group_gaps([table({"x": 0.55, "y": 0.8, "z": 0.8})])
    assert [row.row for row in found] == [ALL_ROWS, "a", "b"]
    gaps = [gap for row in found for gap in row.gaps]
    assert len(gaps) == 3 * 3 * 4  # rows, groups, measures
    (whole,) = leading_rows(found)
    by_measure = {gap.measure: gap for gap in whole.gaps if gap.name == "x"}
    assert set(by_measure) == {"macro_f1", "accuracy", "recall negative", "recall positive"}
    for gap in by_measure.values():
        assert gap.is_significant
        assert gap.difference == pytest.approx(-0.25, abs=0.1)
        assert gap.interval[0] < gap.difference < gap.interval[1] < 0
    assert by_measure["accuracy"].n == (200, 400)
    smallest = min(whole.gaps, key=lambda gap: gap.p)
    assert smallest.adjusted_p == pytest.approx(smallest.p * len(whole.gaps))
    single = [gap for row in found[1:] for gap in row.gaps]
    smallest = min(single, key=lambda gap: gap.p)
    assert smallest.adjusted_p == pytest.approx(smallest.p * len(single))
    assert whole.spread is not None
    assert (whole.spread.worst, whole.spread.spread_p < 0.01) == ("x", True)


@pytest.mark.slow
def test_without_a_gap_tests_err_no_more_often_than_they_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # neither takes part in a test, and both take long
    monkeypatch.setattr(gaps, "ece_by_chance", lambda sure, seed: 0.0)
    monkeypatch.setattr(gaps, "_N_DEALS", 1)
    wrong: dict[str, int] = {}
    n_tables = 100
    for seed in range(n_tables):
        (row,) = find_group_gaps([table({"x": 0.75, "y": 0.75}, n=60, seed=1000 + seed, rows="a")])
        for gap in row.gaps:
            wrong[gap.measure] = wrong.get(gap.measure, 0) + (gap.p < 0.05)
    assert set(wrong) >= {"macro_f1", "accuracy"}
    for n_wrong in wrong.values():
        assert n_wrong <= 0.05 * n_tables + 3 * np.sqrt(0.05 * 0.95 * n_tables)


def test_a_table_with_one_column_or_few_texts_has_no_gaps() -> None:
    assert find_group_gaps([table({"x": 0.7})]) == ()
    assert find_group_gaps([table({"x": 0.7, "y": 0.7}, n=9)]) == ()


def test_areas_are_those_of_the_curve_and_their_interval_is_as_wide_as_the_area_varies() -> None:
    made = table({"x": 0.7, "y": 0.8})
    by_place = {(one.row, one.column): one for one in find_risks([made])}
    own = made.answers["b", "y"]
    curves = [
        risk_coverage(sure, given == own.gold)
        for sure, given in zip(own.probability, own.answers, strict=True)
    ]
    assert by_place["b", "y"].area.value == pytest.approx(np.mean([one.area for one in curves]))
    assert by_place["b", "y"].error == pytest.approx(np.mean([one.error for one in curves]))
    assert by_place["b", ALL_COLUMNS].n == 400
    areas, widths = [], []
    for seed in range(40):
        again = find_risks([table({"x": 0.7}, seed=seed, n_seeds=1, rows="a", n=100)])
        areas.append(again[0].area.value)
        widths.append(again[0].area.interval[1] - again[0].area.interval[0])
    assert np.mean(widths) == pytest.approx(2 * 1.96 * np.std(areas), rel=0.3)


def test_equal_probabilities_come_in_no_order() -> None:
    own = cell(0.7, 200, np.random.default_rng(0))
    flat = CellAnswers(own.gold, own.answers, np.full_like(own.probability, 0.8), *_rest(own))
    (one,) = find_risks([score_table({("a", "x"): flat})])
    assert one.area.value == pytest.approx(one.error)
    assert one.area.interval[0] < one.error < one.area.interval[1]


def _rest(own: CellAnswers) -> tuple[np.ndarray, tuple[str, ...], str]:
    return own.temperature, own.labels, own.texts


def test_the_report_says_gaps_and_areas(tmp_path: Path) -> None:
    study = study_of(tmp_path, MADE)
    made = table({"<x>": 0.55, "y": 0.8, "z": 0.8})
    results = results_of(study, {"Made": [made]})
    report = make_report(study, results, (), n_runs=6, failures={})
    content = json.loads(json.dumps(report.as_json()))["experiments"][0]
    assert content["gaps"][0]["row"] == ALL_ROWS
    assert content["gaps"][0]["gaps"][0]["significant"] is True
    assert {"power", "adjusted_p", "interval"} <= set(content["gaps"][0]["gaps"][0])
    assert len(content["risks"]) == 2 * 4
    assert any("of 3 gaps in macro-F1" in one for one in report.abstract)
    assert any("risk-coverage" in one for one in report.abstract)
    assert any("worst <x>" in one for one in content["words"]["gaps"])
    page = report_html(report, Timing((), ()), {})
    assert "&lt;x&gt;" in page
    assert "<x>" not in page
    assert set(pooled_curves([made])) == {"sentiment"}
