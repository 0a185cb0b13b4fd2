"""The tables of an experiment: scores by row and column, and the answers behind them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from litotes.evaluation.cross_matrix import CrossMatrix, make_cell
from litotes.study.corpora import load_once
from litotes.study.plan import Experiment, Setting, Study, TestedOn, format_value, label_values
from litotes.study.run_files import CellAnswers, RunFiles

Place = tuple[str, str]
"""Row and column."""


@dataclass(frozen=True)
class ScoreTable:
    """One table of an experiment, the answers behind it, and published scores for it.

    values: the grid's values that all of its models share; tested_on: the test's name; failed:
    {row: sentence}; corpus: the name of what it was tested on.
    """

    values: Mapping[str, Any]
    tested_on: str
    matrix: CrossMatrix
    answers: Mapping[Place, CellAnswers]
    published: Mapping[Place, float]
    failed: Mapping[str, str] = field(default_factory=dict)
    corpus: str = ""

    @property
    def title(self) -> str:
        return ", ".join(filter(None, self._title_parts))

    @property
    def setting(self) -> str:
        """What its models share, in words; empty where the experiment has nothing but rows."""
        return label_values(self.values)

    @property
    def _title_parts(self) -> tuple[str, str, str]:
        return self.setting, self.tested_on, self.matrix.task

    def title_among(self, tables: Sequence[ScoreTable]) -> str:
        """What distinguishes it from the others of its experiment.

        Parts of the title that all of them share are left out.
        """
        distinct = []
        for place, part in enumerate(self._title_parts):
            different = {table._title_parts[place] for table in tables}
            if part and len(different) > 1:
                distinct.append(part)
        return ", ".join(distinct) or self.title

    def name_within(self, experiment: str) -> str:
        """Its models among those of other experiments."""
        return f"{experiment} ({self.setting})" if self.setting else experiment


def make_tables(experiment: Experiment, study: Study, files: RunFiles) -> Iterator[ScoreTable]:
    """A table for every test, every combination of the grid beside the rows, and every task."""
    groups: dict[str, list[Setting]] = {}
    for setting in experiment.grid:
        groups.setdefault(json.dumps(dict(setting.shared)), []).append(setting)
    for test in experiment.tests:
        for settings in groups.values():
            yield from _tables_of(experiment, settings, test, study, files)


def _tables_of(
    experiment: Experiment,
    settings: Sequence[Setting],
    test: TestedOn,
    study: Study,
    files: RunFiles,
) -> Iterator[ScoreTable]:
    """One per task, of settings that differ in their rows alone."""
    reasons = {setting.row: files.failure(setting) for setting in settings}
    failed = {row: reason for row, reason in reasons.items() if reason is not None}
    answers: dict[str, dict[Place, CellAnswers]] = {}
    for setting in settings:
        if setting.row not in failed:
            for task, column, cell in files.cells(setting, test):
                answers.setdefault(task, {})[setting.row, column] = cell
    for task, cells in answers.items():
        matrix = _matrix(task, test, cells, list(reasons), seed=study.bootstrap_seed)
        published = _published(experiment, settings, test, task, study)
        corpus = load_once(test.data or settings[0].recipe.data.source).name
        yield ScoreTable(settings[0].shared, test.label(), matrix, cells, published, failed, corpus)


def _published(
    experiment: Experiment, settings: Sequence[Setting], test: TestedOn, task: str, study: Study
) -> Mapping[Place, float]:
    """The published scores for a table."""
    figure = experiment.settings.figure
    if study.published is None or figure is None:
        return {}
    first = settings[0]
    labels = [*map(format_value, first.shared.values()), test.label(), first.recipe.model.head]
    rows = [setting.row for setting in settings]
    return study.published.scores_for(figure, task, labels=labels, rows=rows)


def _matrix(
    task: str,
    test: TestedOn,
    answers: Mapping[Place, CellAnswers],
    rows: Sequence[str],
    *,
    seed: int,
) -> CrossMatrix:
    columns = sorted({column for _, column in answers})
    cells = []
    for (row, column), one in answers.items():
        cells.append(make_cell(row, column, one.gold, one.answers, one.n_classes, seed=seed))
    return CrossMatrix(task, test.by_name or test.by, tuple(rows), tuple(columns), tuple(cells))
