"""Findings made up by hand: systems whose macro-F1 is known to the last digit, without any
training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from litotes.evaluation.cross_matrix import CrossMatrix, make_cell
from litotes.study.plan import Experiment, Study, read_study
from litotes.study.results import Answers, Comparison, Findings, Panel, _comparisons

N = 200
VARIETIES = ("en-AU", "en-UK")

STUDY = """
name = "Made <up>"
seeds = 3
[recipe.data]
source = "sampler"
"""


def study_of(folder: Path, experiments: str) -> Study:
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
) -> Answers:
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
    return Answers(gold, given, np.full(shape, probability), np.ones(len(given)), 2, texts)


def panel(
    scores: Mapping[tuple[str, str], Answers],
    *,
    values: Mapping[str, Any] | None = None,
    tested_on: str = "Reddit",
    task: str = "sentiment",
    paper: Mapping[tuple[str, str], float] | None = None,
    failed: Mapping[str, str] | None = None,
) -> Panel:
    rows = tuple(dict.fromkeys([*(row for row, _ in scores), *(failed or {})]))
    columns = tuple(dict.fromkeys(column for _, column in scores))
    cells = tuple(
        make_cell(row, column, one.gold, one.answers, one.n_classes)
        for (row, column), one in scores.items()
    )
    table = CrossMatrix(task, "variety", rows, columns, cells)
    return Panel(values or {}, tested_on, table, scores, paper or {}, failed or {})


def square(home: float, elsewhere: float, **options: Any) -> Panel:
    """Two varieties, each trained on and tested on; the texts of a variety are the same for every
    model.
    """
    task = options.get("task", "sentiment")
    cells = {
        (row, column): answers(home if row == column else elsewhere, f"{column} {task}")
        for row in VARIETIES
        for column in VARIETIES
    }
    return panel(cells, **options)


def findings_of(
    study: Study, panels: Mapping[str, Sequence[Panel]], *, failed: Mapping[str, str] | None = None
) -> list[Findings]:
    """The findings of all experiments of a study that was never run."""
    return [_findings(one, panels, failed or {}) for one in study.experiments]


def _findings(
    experiment: Experiment, panels: Mapping[str, Sequence[Panel]], failed: Mapping[str, str]
) -> Findings:
    comparisons: tuple[Comparison, ...] = tuple(_comparisons(experiment, panels))
    kinds = dict.fromkeys(setting.kind for setting in experiment.grid)
    seconds = dict(zip(kinds, ((0.1, 0.3), (0.4, 0.4)), strict=False))
    return Findings(
        experiment,
        tuple(panels[experiment.settings.name]),
        comparisons,
        ("A <note>.",),
        seconds,
        failed=failed,
    )
