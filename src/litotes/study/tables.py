"""The answers of all runs become tables, and tables become comparisons.

A single cell holds one or two hundred texts, so its interval is wide; a whole table knows more:

    Σ over cells of weight · macro-F1        mean over seeds

Cells of one column hold the same texts and are resampled jointly: what is hard for all of them
cancels in a difference. Seed s of all cells makes one value of the sum, and the seeds' part is
Student's margin of these (`evaluation/significance.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from litotes.core.errors import UserError
from litotes.core.numbers import Floats
from litotes.core.registry import grouped
from litotes.evaluation.cross_matrix import CrossMatrix, MatrixCell, Place, make_cell
from litotes.evaluation.scores import Json, interval
from litotes.evaluation.significance import (
    Difference,
    Estimate,
    Tested,
    correct,
    difference,
    estimate_mean,
    find_patterns,
    scores_of,
    text_bootstrap,
)
from litotes.study.plan import (
    Experiment,
    Setting,
    Study,
    TestedOn,
    format_value,
    label_value,
    label_values,
)
from litotes.study.runs import CellAnswers, RunFiles, StudyRuns, load_once


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
    def test(self) -> tuple[str, str]:
        """Its task, and what it was tested on."""
        return self.matrix.task, self.tested_on

    @property
    def _title_parts(self) -> tuple[str, str, str]:
        return label_values(self.values), self.tested_on, self.matrix.task

    def title_among(self, tables: Sequence[ScoreTable]) -> str:
        """Names what distinguishes it from the others of its experiment."""
        parts = zip(self._title_parts, *(table._title_parts for table in tables), strict=True)
        distinct = [own for own, *all_of_them in parts if own and len(set(all_of_them)) > 1]
        return ", ".join(distinct) or self.title

    def name_within(self, experiment: str) -> str:
        """Names its models among those of other experiments."""
        return f"{experiment} ({label_values(self.values)})" if self.values else experiment

    def arrow(self, cell: MatrixCell) -> str:
        """Words a cell: one variety to another; a head or the like is rather *on* a variety."""
        return f"{cell.trained_on} {'on' if self.matrix.at_home is None else '→'} {cell.tested_on}"

    def published_cells(self) -> list[tuple[MatrixCell, float, bool]]:
        """The cells that have a published score, the score, and whether our interval holds it."""
        known = [(cell, self.published.get(cell.place)) for cell in self.matrix.cells]
        return [(cell, score, cell.holds(score)) for cell, score in known if score is not None]


Tables = Mapping[str, Sequence[ScoreTable]]
"""The tables of every experiment, by its name."""


def make_tables(experiment: Experiment, study: Study, files: RunFiles) -> Iterator[ScoreTable]:
    """Makes a table for every test, every combination of the grid besides the rows, and task."""
    groups = grouped(experiment.grid, lambda setting: json.dumps(dict(setting.shared)))
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
    """Makes one table per task, of settings that differ in their rows alone."""
    first, figure = settings[0], experiment.settings.figure
    rows = tuple(setting.row for setting in settings)
    failed: dict[str, str] = {}
    answers: dict[str, dict[Place, CellAnswers]] = {}
    for setting in settings:
        if (reason := files.failure(setting)) is not None:
            failed[setting.row] = reason
            continue
        for task, column, cell in files.cells(setting, test):
            answers.setdefault(task, {})[setting.row, column] = cell
    for task, by_place in answers.items():
        cells = [
            make_cell(*place, own.gold, own.answers, own.n_classes, seed=study.bootstrap_seed)
            for place, own in by_place.items()
        ]
        columns = tuple(sorted({column for _, column in by_place}))
        matrix = CrossMatrix(task, test.by_name or test.by, rows, columns, tuple(cells))
        published: Mapping[Place, float] = {}
        if study.published is not None and figure is not None:
            values = map(format_value, first.shared.values())
            labels = [*values, test.label(), first.recipe.model.head]
            published = study.published.scores_for(figure, task, labels=labels, rows=rows)
        corpus = load_once(test.data or first.recipe.data.source).name
        yield ScoreTable(first.shared, test.label(), matrix, by_place, published, failed, corpus)


@dataclass(frozen=True)
class ExperimentResults:
    """An experiment with its tables, comparisons and notes.

    seconds_per_step: by kind of the setting, one value per run; machines: those the runs were timed
    on, each once; failed: for each setting without results, why; held_out: by setting, the held-out
    score of each model, None where nothing was held out.
    """

    experiment: Experiment
    tables: tuple[ScoreTable, ...]
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]
    seconds_per_step: Mapping[str, tuple[float, ...]]
    machines: tuple[Json, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    held_out: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.experiment.settings.name


def read_results(study: Study, runs: StudyRuns) -> tuple[ExperimentResults, ...]:
    """The results of all experiments, from what their runs have written."""
    files = RunFiles(study, runs)
    tables = {one.settings.name: tuple(make_tables(one, study, files)) for one in study.experiments}
    return tuple(
        ExperimentResults(one, tables[one.settings.name], compare(one, tables), **files.gather(one))
        for one in study.experiments
    )


# Two systems on the same texts


@dataclass(frozen=True)
class CellPair:
    """Two systems' answers in the same cell of a table.

    elsewhere: the other experiment that the baseline is from; None for a system of the same one.
    """

    system: str
    baseline: str
    table: ScoreTable
    place: Place
    theirs: CellAnswers
    elsewhere: str | None = None

    @property
    def own(self) -> CellAnswers:
        return self.table.answers[self.place]

    def difference(self) -> Difference:
        own, theirs = self.own, self.theirs
        if own.texts != theirs.texts:
            raise UserError(
                f"{self.system} and {self.baseline} were not tested on the same texts; they cannot"
                " be compared."
            )
        return difference(own.gold, own.answers, theirs.answers, own.n_classes)


@dataclass(frozen=True)
class Comparison(Tested):
    """Two systems on the same texts. elsewhere: as in CellPair."""

    system: str
    baseline: str
    task: str
    tested_on: str
    row: str
    column: str
    difference: Difference
    adjusted_p: float
    elsewhere: str | None = None

    @property
    def estimate(self) -> Estimate:
        return Estimate(self.difference.difference, self.difference.interval)

    @property
    def test(self) -> tuple[str, str]:
        return self.tested_on, self.task


def compare(experiment: Experiment, tables: Tables) -> tuple[Comparison, ...]:
    """Compares the pairs that the experiment asks for, with Holm's correction over all of them."""
    found = []
    for one in find_pairs(experiment, tables):
        places = (one.system, one.baseline, *one.table.test, *one.place)
        found.append(Comparison(*places, one.difference(), 1.0, one.elsewhere))
    return tuple(correct(found, p_of=lambda one: one.difference.p))


def find_pairs(experiment: Experiment, tables: Tables) -> list[CellPair]:
    """All cells that the experiment asks to compare."""
    return [*_within(experiment, tables[experiment.settings.name]), *_against(experiment, tables)]


def _within(experiment: Experiment, tables: Sequence[ScoreTable]) -> Iterator[CellPair]:
    """Systems that differ in the compared path alone, each with that of the first value."""
    path = experiment.settings.compare
    if path is None:
        return
    first = experiment.settings.grid[path][0]
    for table in tables:
        if path == experiment.settings.rows:
            baseline = format_value(first)
            for row, column in table.answers:
                theirs = table.answers.get((baseline, column))
                if row != baseline and theirs is not None:
                    yield CellPair(row, baseline, table, (row, column), theirs)
        elif table.values[path] != first:
            others = {key: value for key, value in table.values.items() if key != path}
            rest = f" ({label_values(others)})" if others else ""
            system, baseline = (
                label_value(path, one) + rest for one in (table.values[path], first)
            )
            wanted = {**table.values, path: first}, table.test
            for other in tables:
                if (dict(other.values), other.test) == wanted:
                    yield from _cell_by_cell(system, baseline, table, other.answers)


def _against(experiment: Experiment, tables: Tables) -> Iterator[CellPair]:
    """Pairs each table with the first of another experiment that has the same task and test."""
    name = experiment.settings.name
    for table in tables[name]:
        for other_name in experiment.settings.against:
            same_test = (other for other in tables[other_name] if other.test == table.test)
            other = next(same_test, None)
            if other is not None:
                answers = dict(other.answers)
                if len(other.matrix.rows) == 1:  # that row for each of ours
                    (only,) = other.matrix.rows
                    own = [place for place in table.answers if (only, place[1]) in answers]
                    answers = {place: answers[only, place[1]] for place in own}
                names = table.name_within(name), other.name_within(other_name)
                yield from _cell_by_cell(*names, table, answers, elsewhere=other_name)


def _cell_by_cell(
    system: str,
    baseline: str,
    table: ScoreTable,
    others: Mapping[Place, CellAnswers],
    *,
    elsewhere: str | None = None,
) -> Iterator[CellPair]:
    for place in table.answers:
        if place in others:
            yield CellPair(system, baseline, table, place, others[place], elsewhere)


# Over whole tables

Weighted = tuple[float, CellAnswers]


@dataclass(frozen=True)
class OverallDifference:
    """Two systems over all cells they share. elsewhere: as in CellPair."""

    system: str
    baseline: str
    task: str
    tested_on: str
    elsewhere: str | None
    n_cells: int
    difference: Estimate


def overall_differences(experiment: Experiment, tables: Tables) -> tuple[OverallDifference, ...]:
    """The experiment's comparisons, each over a whole table."""
    groups = grouped(
        find_pairs(experiment, tables),
        lambda pair: (pair.system, pair.baseline, *pair.table.test, pair.elsewhere),
    )
    found = []
    for key, pairs in groups.items():
        own = _evenly([pair.own for pair in pairs], 1.0)
        theirs = _evenly([pair.theirs for pair in pairs], -1.0)
        found.append(OverallDifference(*key, len(pairs), weighted_sum([*own, *theirs])))
    return tuple(found)


def mean_of(*tables: ScoreTable) -> Estimate:
    """Mean macro-F1 over all cells of the tables."""
    return weighted_sum(_evenly([own for one in tables for own in one.answers.values()], 1.0))


def home_less_elsewhere(*tables: ScoreTable) -> Estimate | None:
    """Mean over the cells tested where they were trained, minus the mean over the others.

    None where there are not both.
    """
    parts: dict[bool, list[CellAnswers]] = {True: [], False: []}
    for table in tables:
        if table.matrix.at_home is not None:
            for (row, column), answers in table.answers.items():
                parts[row == column].append(answers)
    if not parts[True] or not parts[False]:
        return None
    return weighted_sum([*_evenly(parts[True], 1.0), *_evenly(parts[False], -1.0)])


def less_published(*tables: ScoreTable) -> Estimate | None:
    """Ours minus the published scores, mean over the cells that have both."""
    ours, theirs = [], []
    for table in tables:
        for place, own in table.answers.items():
            if place in table.published:
                ours.append(own)
                theirs.append(table.published[place])
    return weighted_sum(_evenly(ours, 1.0)).less(float(np.mean(theirs))) if ours else None


def weighted_sum(parts: Sequence[Weighted]) -> Estimate:
    """Σ weight · macro-F1 with its interval; parts with the same texts are resampled together."""
    by_texts = grouped(parts, lambda part: part[1].texts)
    by_seed, resampled = np.zeros(1), np.zeros(1)
    for number, together in enumerate(by_texts.values()):
        scores, draws = _same_texts(together, seed=number)
        by_seed, resampled = by_seed + scores, resampled + draws  # (seed,), (resample,)
    weights = np.array([weight for weight, _ in parts])
    possible = (float(weights.clip(max=0).sum()), float(weights.clip(min=0).sum()))
    return estimate_mean(by_seed, interval(resampled), within=possible)


def _same_texts(parts: Sequence[Weighted], *, seed: int) -> tuple[Floats, Floats]:
    """The sum over parts with the same texts: by seed, and of resampled texts.

    (seed,), and (resample,) as a mean over seeds
    """
    first = parts[0][1]
    weights = np.array([weight for weight, _ in parts])
    answers = np.vstack([one.answers for _, one in parts])
    found = find_patterns(first.gold, answers, first.n_classes)
    scores = scores_of(found).reshape(len(parts), -1)  # (part, seed)
    draws = text_bootstrap(found, seed=seed).reshape(-1, *scores.shape)  # (resample, part, seed)
    return weights @ scores, draws.mean(2) @ weights


def _evenly(answers: Sequence[CellAnswers], total: float) -> list[Weighted]:
    return [(total / len(answers), one) for one in answers]
