"""What a study's tables say: every sentence is checked against systems whose scores are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_study import answers, results_of, score_table, square, study_of

from litotes.evaluation.significance import Difference
from litotes.study.abstract import study_summary
from litotes.study.sentences import (
    Sentences,
    comparison_sentences,
    describe,
    higher_or_lower,
    published_sentences,
    table_sentences,
)
from litotes.study.setup import setup_sentences
from litotes.study.tables import (
    Comparison,
    Estimate,
    ExperimentResults,
    difference_of,
    home_less_elsewhere,
    less_published,
    mean_of,
    overall_differences,
)

HEADS = """
[[experiment]]
name = "Heads"
grid = { "model.head" = ["linear", "mean"], "data.where.variety" = ["en-AU", "en-UK"] }
compare = "model.head"
"""

LEAK = """
[[experiment]]
name = "Single"
figure = "3"
grid = { "data.where.variety" = ["en-AU", "en-UK"] }
[[experiment]]
name = "Crossed"
figure = "5"
grid = { "data.leaks" = ["drop", "keep"], "data.where.variety" = ["en-AU", "en-UK"] }
compare = "data.leaks"
against = ["Single"]
"""


def sentences_of(found: ExperimentResults, *all_findings: ExperimentResults) -> Sentences:
    tables = {one.experiment.settings.name: one.tables for one in (found, *all_findings)}
    return describe(found, overall_differences(found.experiment, tables))


def compared(
    difference: float, interval: tuple[float, float], adjusted_p: float, **options: str
) -> Comparison:
    places = {
        "system": "mean",
        "baseline": "linear",
        "task": "sentiment",
        "tested_on": "",
        "row": "a",
        "column": "b",
    } | options
    elsewhere = places.pop("elsewhere", None)
    return Comparison(
        **places,
        difference=Difference(difference, interval, adjusted_p / 9, 200, (3, 3)),
        adjusted_p=adjusted_p,
        elsewhere=elsewhere,
    )


def test_a_mean_over_cells_is_the_mean_of_the_cells() -> None:
    one = square(0.9, 0.6)
    assert [mean_of(one).value, one.matrix.mean] == pytest.approx([0.75, 0.75])
    low, high = mean_of(one).interval
    assert low < 0.75 < high
    # the whole table knows more
    assert high - low < min(cell.interval[1] - cell.interval[0] for cell in one.matrix.cells)
    gap = home_less_elsewhere(one)
    assert gap is not None
    assert gap.value == pytest.approx(0.3)
    assert gap.is_clear


def test_what_is_hard_for_both_cancels() -> None:
    """The same texts are resampled together: a difference is known far better than either score."""
    better, worse = answers(0.8, "x"), answers(0.7, "x")
    together = difference_of([(better, worse)])
    apart = difference_of([(better, replace(worse, texts="y"))])
    assert [together.value, apart.value] == pytest.approx([0.1, 0.1])
    width, width_apart = (one.interval[1] - one.interval[0] for one in (together, apart))
    assert width < 0.75 * width_apart
    same = difference_of([(better, better)])
    assert (same.value, same.interval) == (0, (0, 0))


def test_seeds_that_differ_widen_the_interval() -> None:
    calm, wild = answers(0.8, "x"), answers(0.8, "x", by_seed=(-0.1, 0, 0.1))
    other = answers(0.7, "x")
    assert difference_of([(calm, other)]).is_clear
    assert not difference_of([(wild, other)]).is_clear


def test_words_about_a_table() -> None:
    (sentence,) = table_sentences(square(0.9, 0.6))
    low, high = mean_of(square(0.9, 0.6)).interval
    assert sentence.startswith(
        f"0.750 ({low:.3f} to {high:.3f}) macro-F1 on average over 4 cells; 0.900 at home, 0.600"
        " elsewhere, a gap of +0.3"
    )
    assert "chance" not in sentence
    (sentence,) = table_sentences(square(0.7, 0.7))
    assert "a gap of +0.000" in sentence
    assert sentence.endswith("which may be chance.")


def test_words_about_cells_that_are_worth_nothing() -> None:
    constant = answers(0.5, "x")
    constant = replace(constant, answers=np.ones_like(constant.answers))
    one_class = replace(answers(0.9, "y"), gold=np.zeros(200, dtype=np.int64))
    one = score_table({("a", "x"): constant, ("b", "x"): answers(0.8, "x"), ("b", "y"): one_class})
    text = " ".join(table_sentences(one))
    assert "Not clearly above the majority line: a on x." in text
    assert "All sentiment texts of y carry the same label" in text
    assert "COLLAPSED: a, tested on x, sentiment: 3 of 3 models" in text


def test_words_beside_the_paper() -> None:
    paper = {("en-AU", "en-AU"): 0.9, ("en-AU", "en-UK"): 0.95, ("en-UK", "en-AU"): 0.6}
    one = square(0.9, 0.6, published=paper)
    inside, outside, average = published_sentences(one)
    assert inside == "The paper's figure lies inside our interval in 2 of 3 cells."
    low, high = one.matrix.cell("en-AU", "en-UK").interval
    assert (
        outside
        == f"Outside: en-AU → en-UK by +0.350 (paper 0.950, ours 0.600, {low:.3f} to {high:.3f})."
    )
    assert "0.117 lower than the paper's" in average  # (0.9 + 0.6 + 0.6 − 0.9 − 0.95 − 0.6) / 3
    overall = less_published(one)
    assert overall is not None
    assert overall.value == pytest.approx(-0.35 / 3)
    assert list(published_sentences(square(0.9, 0.6))) == []


def test_higher_and_lower() -> None:
    assert (
        higher_or_lower(Estimate(-0.1, (-0.2, -0.05)))
        == "0.100 lower than the paper's (0.050 to 0.200)"
    )
    assert (
        higher_or_lower(Estimate(0.1, (0.05, 0.2)), "theirs")
        == "0.100 higher than theirs (0.050 to 0.200)"
    )
    assert (
        higher_or_lower(Estimate(0.1, (-0.05, 0.2)))
        == "not clearly higher or lower than the paper's: +0.100 (−0.050 to +0.200)"
    )


def test_words_when_nothing_is_significant(tmp_path: Path) -> None:
    study = study_of(tmp_path, HEADS)
    (found,) = results_of(
        study,
        {"Heads": [square(0.71, 0.7, values={"model.head": head}) for head in ("linear", "mean")]},
    )
    (none,), (overall,) = sentences_of(found).comparisons, sentences_of(found).overall
    assert none.startswith(
        "None of the 4 differences between heads is significant after Holm's correction; the"
        " largest is mean less linear"
    )
    assert overall.startswith(
        "Over 4 cells (Reddit, sentiment) mean less linear is +0.000 (+0.000 to +0.000), which may"
        " be chance."
    )


def test_words_when_something_is(tmp_path: Path) -> None:
    study = study_of(tmp_path, HEADS)
    made = [
        square(0.6, 0.6, values={"model.head": "linear"}),
        square(0.9, 0.6, values={"model.head": "mean"}),
    ]
    (found,) = results_of(study, {"Heads": made})
    (told,), (overall,) = sentences_of(found).comparisons, sentences_of(found).overall
    assert told.startswith(
        "2 of 4 differences between heads are significant after Holm's correction: mean less"
        " linear, en-AU → en-AU"
    )
    assert "holds 0" not in told
    assert "+0.150" in overall
    assert "chance" not in overall


def test_words_separate_the_experiments_compared_with(tmp_path: Path) -> None:
    (found,) = results_of(study_of(tmp_path, HEADS), {"Heads": []})
    comparisons = (
        compared(0.02, (-0.1, 0.2), 0.9),
        compared(-0.05, (-0.2, 0.1), 1.0, row="c"),
        compared(
            0.2,
            (-0.1, 0.5),
            0.01,
            system="Heads (mean)",
            baseline="Other (linear)",
            elsewhere="Other",
        ),
    )
    within, against = comparison_sentences(replace(found, comparisons=comparisons))
    assert within.startswith(
        "None of the 2 differences between heads is significant after Holm's correction over all 3"
        " comparisons here;"
    )
    assert "c → b, sentiment: −0.050 (−0.200 to +0.100)" in within
    assert against.startswith(
        "1 of 1 difference from 'Other' is significant after Holm's correction over all 3"
        " comparisons here: Heads"
    )
    assert "an interval that holds 0: other seeds may disagree" in against


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    study = study_of(tmp_path, HEADS)
    (found,) = results_of(study, {"Heads": []}, failed={"linear, en-AU": "There is no tea."})
    assert sentences_of(found) == Sentences(
        ("No run of this experiment has finished.", "linear, en-AU is missing: There is no tea.")
    )


def test_why_the_paper_may_differ(tmp_path: Path) -> None:
    study = study_of(tmp_path, LEAK)
    text = "\n".join(setup_sentences(study.experiments[1], study))
    assert (
        "What we did otherwise: the encoder: minilm (the paper: bert-base-uncased); the optimizer:"
        " adamw (the paper: adam)" in text
    )
    assert (
        "Only with leaks dropped: training texts that also sit in the test split: dropped (the"
        " paper: kept)." in text
    )
    assert "figure 5 on splits that leak" in text
    assert not any("leak" in one for one in setup_sentences(study.experiments[0], study))
    assert list(setup_sentences(study_of(tmp_path, HEADS).experiments[0], study)) == []


def test_the_abstract_counts(tmp_path: Path) -> None:
    study = study_of(tmp_path, HEADS)
    paper = {("en-AU", "en-AU"): 0.9, ("en-AU", "en-UK"): 0.95}
    made = [
        square(0.6, 0.6, values={"model.head": "linear"}),
        square(0.9, 0.6, values={"model.head": "mean"}, published=paper),
    ]
    runs, beside, travel, tests = study_summary(
        study, results_of(study, {"Heads": made}), n_runs=12, n_failed=1
    )
    assert (
        runs == "12 runs, of which 1 failed: 1 experiment, 3 seeds each, encoder minilm, corpora"
        " sampler."
    )
    assert beside.startswith(
        "The paper's figure lies inside our 95 % interval in 1 of 2 cells; clearly apart from it"
    )
    assert "Heads −0.175 (" in beside
    assert travel.startswith(
        "Away from where it was trained a model loses, in macro-F1 on average: sentiment 0.150 ("
    )
    assert tests == "Significant after Holm's correction: 2 of 4 between heads."
