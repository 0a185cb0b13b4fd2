"""Results made up by hand: systems whose macro-F1 is known to the last digit, without training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from litotes.evaluation.cross_matrix import CrossMatrix, make_cell
from litotes.study.plan import Experiment, Study, read_study
from litotes.study.runs import CellAnswers
from litotes.study.tables import ExperimentResults, ScoreTable, compare

N = 200
VARIETIES = ("en-AU", "en-UK")
LABELS = ("negative", "positive")

STUDY = """
name = "Made <up>"
seeds = 3
published = "published.json"
[recipe.data]
source = "sampler"
"""

PUBLISHED = {
    "notes": [
        {"text": "Single runs without intervals."},
        {"figures": ["5"], "text": "The paper trained figure 5 on splits that leak."},
    ],
    "recipe": {
        "encoder": "bert-base-uncased",
        "optimizer": "adam",
        "learning_rate": 2e-05,
        "epochs": 30,
        "batch_texts": 8,
        "leaks": "keep",
        "calibration": "none",
    },
    "tables": [
        {
            "figure": "3",
            "task": "sentiment",
            "labels": ["linear"],
            "rows": ["en-AU", "en-UK"],
            "columns": ["en-AU", "en-UK"],
            "macro_f1": [[0.83, 0.766], [0.785, 0.856]],
        }
    ],
    "coverage": [{"of": "en-AU Google sentiment", "among": "Twitter sentiment", "share": 0.6}],
    "seconds_per_batch": {
        "hardware": "T4, batch 8",
        "columns": ["Google sentiment", "Reddit sentiment"],
        "rows": {"linear": [0.2799, 0.2907]},
        "multitask": {"columns": ["BESSTIE"], "rows": {"crosstalk": [0.3163]}},
    },
}


def study_of(folder: Path, experiments: str) -> Study:
    (folder / "published.json").write_text(json.dumps(PUBLISHED))
    file = folder / "made.toml"
    file.write_text(STUDY + experiments)
    return read_study(file)


def answers(
    score: float,
    texts: str,
    *,
    by_seed: Sequence[float] = (0, 0, 0),
    n: int = N,
    probability: float = 0.8,
) -> CellAnswers:
    """Models with the macro-F1 `score` plus what is given by seed.

    Wrong answers come in pairs, one of each class, so all stays even.

    All wrong answers stand at the end: a system with fewer of them is right wherever the other one
    is.
    """
    gold = np.arange(n) % 2
    given = np.stack(
        [np.where(np.arange(n) < round(n * (score + more)), gold, 1 - gold) for more in by_seed]
    )
    shape = given.shape
    ones = np.ones(len(given))
    return CellAnswers(gold, given, np.full(shape, probability), ones, LABELS, texts)


def score_table(
    scores: Mapping[tuple[str, str], CellAnswers],
    *,
    values: Mapping[str, Any] | None = None,
    tested_on: str = "Reddit",
    task: str = "sentiment",
    published: Mapping[tuple[str, str], float] | None = None,
    failed: Mapping[str, str] | None = None,
) -> ScoreTable:
    rows = tuple(dict.fromkeys([*(row for row, _ in scores), *(failed or {})]))
    columns = tuple(dict.fromkeys(column for _, column in scores))
    cells = tuple(
        make_cell(row, column, one.gold, one.answers, one.n_classes)
        for (row, column), one in scores.items()
    )
    matrix = CrossMatrix(task, "variety", rows, columns, cells)
    return ScoreTable(values or {}, tested_on, matrix, scores, published or {}, failed or {})


def square(home: float, elsewhere: float, **options: Any) -> ScoreTable:
    """Two varieties, each trained on and tested on; the texts of a variety are the same for every
    model.
    """
    task = options.get("task", "sentiment")
    cells = {
        (row, column): answers(home if row == column else elsewhere, f"{column} {task}")
        for row in VARIETIES
        for column in VARIETIES
    }
    return score_table(cells, **options)


def results_of(
    study: Study,
    tables: Mapping[str, Sequence[ScoreTable]],
    *,
    failed: Mapping[str, str] | None = None,
) -> list[ExperimentResults]:
    """The results of all experiments of a study that was never run."""
    return [_results(one, tables, failed or {}) for one in study.experiments]


def _results(
    experiment: Experiment, tables: Mapping[str, Sequence[ScoreTable]], failed: Mapping[str, str]
) -> ExperimentResults:
    kinds = dict.fromkeys(setting.kind for setting in experiment.grid)
    seconds = dict(zip(kinds, ((0.1, 0.3), (0.4, 0.4)), strict=False))
    return ExperimentResults(
        experiment,
        tuple(tables[experiment.settings.name]),
        compare(experiment, tables),
        ("A <note>.",),
        seconds,
        failed=failed,
    )
