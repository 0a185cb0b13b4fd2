"""The other parts of a study's report: shared vocabulary, published numbers, confidence before
calibration, times, recipes without paths.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_study import LABELS, PUBLISHED, answers, results_of, score_table, square, study_of

from litotes.core.errors import UserError
from litotes.data.coverage import Coverage
from litotes.model.calibration import Calibration
from litotes.study.abstract import confidence_summary
from litotes.study.confidence import check_confidence, confidence_sentences, uncalibrate
from litotes.study.plan import CoverageSettings, read_study
from litotes.study.runs import CellAnswers
from litotes.study.setup import describe_corpora, shareable
from litotes.study.timing import time_steps
from litotes.study.vocabulary import (
    Vocabulary,
    count_vocabularies,
    deviations,
    exchanges,
    vocabulary_sentences,
)
from litotes.training.recipe import Recipe

MADE = '[[experiment]]\nname = "Made"\ngrid = { "data.where.variety" = ["en-AU", "en-UK"] }\n'
NAMES = (
    "en-AU Google sentiment",
    "en-UK Google sentiment",
    "en-AU Reddit sentiment",
    "en-UK Reddit sentiment",
    "Twitter sentiment",
)
GROUPS = (*["Google sentiment"] * 2, *["Reddit sentiment"] * 2, "Twitter sentiment")


def vocabulary(*of_twitter: float, printed: tuple[float, ...]) -> Vocabulary:
    """Ours and the paper's shares of Twitter in the other four."""
    ones = (1,) * len(NAMES)
    matrix = tuple(
        (*of_twitter, 1.0) if name.startswith("Twitter") else (1.0,) * len(NAMES) for name in NAMES
    )
    result = Coverage("pieces", 1, NAMES, GROUPS, ones, ones, matrix)
    paper = {
        ("Twitter sentiment", among): share for among, share in zip(NAMES, printed, strict=False)
    }
    return Vocabulary(CoverageSettings(name="Shared", data=[], figure="1"), result, paper)


def test_rows_that_look_exchanged_are_called_so() -> None:
    found = vocabulary(0.4, 0.42, 0.6, 0.58, printed=(0.61, 0.58, 0.41, 0.42))
    (row,) = exchanges(found)
    assert row.of == "Twitter sentiment"
    assert row.groups == ("Google sentiment", "Reddit sentiment")
    assert row.as_printed == pytest.approx(0.21)
    assert row.exchanged == pytest.approx(0.01)
    text = " ".join(vocabulary_sentences(found))
    assert "0 of 2 groups of shares agree to within 0.03" in text
    assert (
        "Twitter sentiment in Google sentiment 0.210, Twitter sentiment in Reddit sentiment 0.190"
        in text
    )
    assert (
        "look exchanged: as printed they deviate from ours by up to 0.210, with the two groups"
        " exchanged by up to 0.010." in text
    )


def test_rows_that_agree_are_not() -> None:
    found = vocabulary(0.4, 0.42, 0.6, 0.58, printed=(0.41, 0.42, 0.61, 0.58))
    assert list(exchanges(found)) == []
    assert deviations(found) == pytest.approx(
        {
            ("Twitter sentiment", "Google sentiment"): 0.01,
            ("Twitter sentiment", "Reddit sentiment"): 0.01,
        }
    )
    assert "2 of 2 groups of shares agree" in " ".join(vocabulary_sentences(found))


def test_rows_that_fit_neither_way_are_not() -> None:
    assert list(exchanges(vocabulary(0.4, 0.42, 0.6, 0.58, printed=(0.9, 0.9, 0.9, 0.9)))) == []


def test_coverage_of_a_study_file(tmp_path: Path) -> None:
    (tmp_path / "published.json").write_text(json.dumps(PUBLISHED))
    file = tmp_path / "coverage.toml"
    file.write_text(
        'name = "x"\npublished = "published.json"\n[sources]\nown = "sampler"\n'
        '[[coverage]]\nname = "Shared"\ndata = ["own"]\nfigure = "1"\n'
    )
    (found,) = count_vocabularies(read_study(file))
    assert found.coverage.names[0] == "en-AU forum sentiment"
    assert found.published == {}  # the paper knows no such parts
    assert len(list(vocabulary_sentences(found))) == 1


def test_uncalibrated_answers_are_those_of_the_logits() -> None:
    generator = np.random.default_rng(0)
    logits, gold = generator.normal(size=(2, 50, 2)), generator.integers(0, 2, 50)
    calibrations = [Calibration(2.5, threshold=0.3), Calibration(0.4)]
    given = [calibration.apply(one) for calibration, one in zip(calibrations, logits, strict=True)]
    labels = np.stack([labels for labels, _ in given])
    probability = np.stack([shares[np.arange(50), own] for own, shares in given])
    made = CellAnswers(gold, labels, probability.round(6), np.array([2.5, 0.4]), LABELS, "x")
    before = [Calibration().apply(one) for one in logits]
    found_labels, found = uncalibrate(made)
    assert (found_labels == np.stack([labels for labels, _ in before])).all()
    assert found == pytest.approx(np.stack([shares.max(1) for _, shares in before]), abs=1e-3)


def test_confidence_is_pooled_by_task(tmp_path: Path) -> None:
    study = study_of(tmp_path, MADE)
    sure = score_table(
        {
            ("a", "x"): answers(0.7, "x", probability=0.9),
            ("b", "x"): answers(0.6, "x", probability=0.9),
        }
    )
    (found,) = results_of(study, {"Made": [sure, square(0.7, 0.7, task="sarcasm")]})
    sentiment, sarcasm = check_confidence(found)
    assert (sentiment.task, sarcasm.task) == ("sentiment", "sarcasm")
    assert sentiment.after.reliability.n == 2 * 3 * 200
    assert sentiment.after.reliability.ece == pytest.approx(0.25)
    assert sentiment.after.excess.value == pytest.approx(0.25)
    assert sentiment.after.excess.interval[0] < 0.25 < sentiment.after.excess.interval[1]
    assert "calibration error 0.250 before calibration, 0.250 after" in next(
        confidence_sentences(sentiment)
    )
    assert "No temperature was fitted." in list(confidence_sentences(sentiment))
    (said,) = confidence_summary([sentiment])
    assert said == "The calibration error, mean over experiments, is 0.250 in sentiment."


def test_a_temperature_that_makes_it_worse_is_said(tmp_path: Path) -> None:
    study = study_of(tmp_path, MADE)
    # says 0.6 and is right so often; before, 0.52
    good = replace(answers(0.6, "x", probability=0.6), temperature=np.full(3, 0.2))
    (found,) = results_of(study, {"Made": [score_table({("a", "x"): good})]})
    (one,) = check_confidence(found)
    assert (one.before.reliability.ece, one.after.reliability.ece) == (
        pytest.approx(0.08, abs=0.001),
        pytest.approx(0),
    )
    assert len(list(confidence_sentences(one))) == 1
    (said,) = confidence_summary([one])
    assert said.endswith(
        "changes the calibration error, mean over experiments, from 0.080 to 0.000 in sentiment."
    )
    bad = replace(answers(0.6, "x", probability=0.99), temperature=np.full(3, 0.2))
    (found,) = results_of(study, {"Made": [score_table({("a", "x"): bad})]})
    (one,) = check_confidence(found)
    assert one.before.reliability.ece < one.after.reliability.ece
    assert list(confidence_sentences(one))[-1].startswith("Calibration made it worse here")


def test_times_stand_beside_the_papers(tmp_path: Path) -> None:
    study = study_of(
        tmp_path,
        '[[experiment]]\nname = "Made"\nfigure = "3"\n'
        'set = { "data.tasks" = ["sentiment"], "data.where.source" = "Reddit" }\n'
        'grid = { "model.head" = ["linear", "mean"], "data.where.variety" = ["en-AU", "en-UK"] }\n',
    )
    first, second = time_steps(study, results_of(study, {"Made": []})).rows
    assert (first.seconds, first.fastest, first.slowest, first.n_runs) == (
        pytest.approx(0.2),
        0.1,
        0.3,
        2,
    )
    assert (first.ratio, second.ratio) == (1.0, pytest.approx(2.0))
    assert (first.paper_seconds, first.paper_ratio) == (0.2907, 1.0)
    assert second.paper_seconds is None  # the paper has no such head
    both = Recipe().changed(
        data__source="besstie:x", data__tasks=["sentiment", "sarcasm"], model__head="crosstalk"
    )
    assert study.published is not None
    assert study.published.seconds_for(both) == 0.3163


def test_a_recipe_is_told_without_paths(tmp_path: Path, tiny_folder: Path) -> None:
    study = study_of(
        tmp_path,
        '[sources]\nmine = "besstie:/secret/place?x=1"\n[[experiment]]\nname = "Made"\ngrid = {'
        ' "data.where.variety" = ["en-AU"] }\n',
    )
    recipe = Recipe().changed(
        data__source="besstie:/secret/place?x=1", model__encoder=str(tiny_folder)
    )
    told = shareable(recipe, study)
    assert (told.data.source, told.model.encoder) == ("mine", tiny_folder.name)
    assert (
        shareable(recipe.changed(data__source="table:/other/place.csv?label=x"), study).data.source
        == "table:place.csv"
    )
    assert set(describe_corpora(study)) == {"sampler"}


def test_a_figure_without_published_numbers_is_a_mistake(tmp_path: Path) -> None:
    file = tmp_path / "figure.toml"
    file.write_text(f'name = "x"\n{MADE}figure = "3"\n')
    with pytest.raises(UserError, match=r"names figure 3.*Add published"):
        read_study(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "not readable as published numbers"),
        ("{", "not readable as published numbers"),
        ('{"tabels": []}', "Did you mean 'tables'"),
        (
            '{"tables": [{"figure": "1", "task": "x", "rows": ["a"], "columns": ["b"],'
            ' "macro_f1": [[0.5, 0.6]]}]}',
            "a number for every cell",
        ),
        ('{"seconds_per_batch": {"hardware": "T4", "rows": {"mean": [1]}}}', "1 times for 0"),
    ],
)
def test_mistakes_in_published_numbers_are_told(
    content: str | None, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "published.toml"
    file.write_text(f'name = "x"\npublished = "numbers.json"\n{MADE}')
    if content is not None:
        (tmp_path / "numbers.json").write_text(content)
    with pytest.raises(UserError, match=message):
        read_study(file)


SPARSE = """
[[experiment]]
name = "Dense"
grid = { "model.weighting" = [WEIGHTINGS] }
rows = "model.weighting"
[[experiment]]
name = "Sparse"
grid = { "model.head" = ["linear", "mean"] }
rows = "model.head"
against = ["Dense"]
"""


def test_a_single_row_is_compared_with_every_other(tmp_path: Path) -> None:
    study = study_of(tmp_path, SPARSE.replace("WEIGHTINGS", '"softmax"'))
    dense = score_table({("softmax", "all"): answers(0.9, "all")})
    rows = {"linear": 0.8, "mean": 0.7}
    sparse = score_table({(row, "all"): answers(share, "all") for row, share in rows.items()})
    _, found = results_of(study, {"Dense": [dense], "Sparse": [sparse]})
    assert [(one.row, one.baseline) for one in found.comparisons] == [
        ("linear", "Dense"),
        ("mean", "Dense"),
    ]
    assert all(one.difference.difference < 0 for one in found.comparisons)


def test_rows_that_can_never_be_compared_are_an_error(tmp_path: Path) -> None:
    weightings = '"softmax", "entmax"'
    with pytest.raises(UserError, match=r"'Sparse' is compared with 'Dense', but has no row of it"):
        study_of(tmp_path, SPARSE.replace("WEIGHTINGS", weightings))
