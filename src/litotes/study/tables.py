"""The tables of an experiment: scores by row and column, and the answers behind them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from litotes.core.errors import UserError
from litotes.core.numbers import Floats, format_signed
from litotes.evaluation.cross_matrix import CrossMatrix, make_cell
from litotes.evaluation.scores import interval
from litotes.evaluation.significance import (
    SIGNIFICANT,
    Difference,
    difference,
    find_patterns,
    holm,
    scores_of,
    seed_margin,
    text_bootstrap,
    widen_interval,
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
        published = _published_scores(experiment, settings, test, task, study)
        corpus = load_once(test.data or settings[0].recipe.data.source).name
        yield ScoreTable(settings[0].shared, test.label(), matrix, cells, published, failed, corpus)


def _published_scores(
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


# The answers of all runs become tables, and tables become comparisons.


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
    machines: tuple[Mapping[str, Any], ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    held_out: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.experiment.settings.name


def read_results(study: Study, runs: StudyRuns) -> tuple[ExperimentResults, ...]:
    """The results of all experiments, from what their runs have written."""
    files = RunFiles(runs.jobs, runs.reasons(), study.seeds)
    tables = {}
    for experiment in study.experiments:
        tables[experiment.settings.name] = tuple(make_tables(experiment, study, files))
    return tuple(_results(experiment, tables, files) for experiment in study.experiments)


def _results(experiment: Experiment, tables: Tables, files: RunFiles) -> ExperimentResults:
    return ExperimentResults(
        experiment=experiment,
        tables=tuple(tables[experiment.settings.name]),
        comparisons=compare(experiment, tables),
        notes=files.notes(experiment),
        seconds_per_step=files.seconds(experiment),
        machines=files.machines(experiment),
        failed=files.failures(experiment),
        held_out=files.held_out(experiment),
    )


# Which systems of a study are compared, and how much they differ on the same texts.

Tables = Mapping[str, Sequence[ScoreTable]]
"""The tables of every experiment, by its name."""


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same texts; `adjusted_p` is Holm's over all comparisons of the experiment.

    elsewhere: the other experiment that the baseline is from; None for a system of the same one.
    """

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
    def is_significant(self) -> bool:
        return self.adjusted_p < SIGNIFICANT


@dataclass(frozen=True)
class CellPair:
    """Two systems' answers in the same cell of a table; `elsewhere` as in `Comparison`."""

    system: str
    baseline: str
    table: ScoreTable
    row: str
    column: str
    own: CellAnswers
    theirs: CellAnswers
    elsewhere: str | None = None

    def difference(self) -> Difference:
        if self.own.texts != self.theirs.texts:
            raise UserError(
                f"{self.system} and {self.baseline} were not tested on the same texts; they cannot"
                " be compared."
            )
        return difference(self.own.gold, self.own.answers, self.theirs.answers, self.own.n_classes)


def compare(experiment: Experiment, tables: Tables) -> tuple[Comparison, ...]:
    """Every pair that the experiment asks for, with Holm's correction over all of them together."""
    pairs = find_pairs(experiment, tables)
    differences = [pair.difference() for pair in pairs]
    adjusted = holm([one.p for one in differences])
    tested = zip(pairs, differences, adjusted, strict=True)
    return tuple(_comparison(pair, found, p) for pair, found, p in tested)


def _comparison(pair: CellPair, found: Difference, adjusted_p: float) -> Comparison:
    return Comparison(
        system=pair.system,
        baseline=pair.baseline,
        task=pair.table.matrix.task,
        tested_on=pair.table.tested_on,
        row=pair.row,
        column=pair.column,
        difference=found,
        adjusted_p=adjusted_p,
        elsewhere=pair.elsewhere,
    )


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
            yield from _rows_with_first(table, format_value(first))
        elif table.values[path] != first:
            yield from _tables_with_first(table, tables, path, first)


def _tables_with_first(
    table: ScoreTable, tables: Sequence[ScoreTable], path: str, first: Any
) -> Iterator[CellPair]:
    """A table with the one that has the first value of the path, and is otherwise the same."""
    wanted = {**table.values, path: first}, table.tested_on, table.matrix.task
    others = {key: value for key, value in table.values.items() if key != path}
    rest = f" ({label_values(others)})" if others else ""
    system = label_value(path, table.values[path]) + rest
    baseline = label_value(path, first) + rest
    for other in tables:
        if (dict(other.values), other.tested_on, other.matrix.task) == wanted:
            yield from _cell_by_cell(system, baseline, table, other)


def _rows_with_first(table: ScoreTable, first: str) -> Iterator[CellPair]:
    """Each row of a table with its first one."""
    for (row, column), own in table.answers.items():
        if row != first and (first, column) in table.answers:
            yield CellPair(row, first, table, row, column, own, table.answers[first, column])


def _against(experiment: Experiment, tables: Tables) -> Iterator[CellPair]:
    """Each table with the first of another experiment that has the same task and test."""
    name = experiment.settings.name
    for table in tables[name]:
        for other_name in experiment.settings.against:
            other = find_table(tables[other_name], table.matrix.task, table.tested_on)
            if other is not None:
                system, baseline = table.name_within(name), other.name_within(other_name)
                other = _row_for_all(other, table)
                yield from _cell_by_cell(system, baseline, table, other, elsewhere=other_name)


def _row_for_all(other: ScoreTable, table: ScoreTable) -> ScoreTable:
    """A table of a single row, with that row for each of another table's; others as they are."""
    if len(other.matrix.rows) != 1:
        return other
    (only,) = other.matrix.rows
    answers = {}
    for row, column in table.answers:
        if (only, column) in other.answers:
            answers[row, column] = other.answers[only, column]
    return replace(other, answers=answers)


def find_table(tables: Sequence[ScoreTable], task: str, tested_on: str) -> ScoreTable | None:
    """The first table of a task and test."""
    for table in tables:
        if (table.matrix.task, table.tested_on) == (task, tested_on):
            return table
    return None


def _cell_by_cell(
    system: str,
    baseline: str,
    table: ScoreTable,
    other: ScoreTable,
    *,
    elsewhere: str | None = None,
) -> Iterator[CellPair]:
    for (row, column), own in table.answers.items():
        if (row, column) in other.answers:
            theirs = other.answers[row, column]
            yield CellPair(system, baseline, table, row, column, own, theirs, elsewhere)


# Numbers over a whole table: a mean over cells, and differences between such means, each with its
# interval.
#
#     Σ over cells of weight · macro-F1        mean over seeds
#
# A single cell holds one or two hundred texts, so its interval is wide; the whole table knows
# more.
# Cells of one column hold the same texts and are resampled jointly: what is hard for all of them
# cancels in a difference. Seed s of all cells makes one value of the sum, and the seeds' part is
# Student's margin of these (`intervals.py`).

Weighted = tuple[float, CellAnswers]


def signed(value: float) -> str:
    """A difference, with a minus that is as wide as the plus."""
    return format_signed(value, 3, minus="−")


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval over texts and seeds."""

    value: float
    interval: tuple[float, float]

    @property
    def is_clear(self) -> bool:
        """Of a difference: whether its sign is known."""
        return self.interval[0] > 0 or self.interval[1] < 0

    def less(self, constant: float) -> Estimate:
        low, high = self.interval
        return Estimate(self.value - constant, (low - constant, high - constant))

    def text(self) -> str:
        return f"{self.value:.3f} ({self.interval[0]:.3f} to {self.interval[1]:.3f})"

    def signed(self) -> str:
        low, high = self.interval
        return f"{signed(self.value)} ({signed(low)} to {signed(high)})"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class OverallDifference:
    """Two systems over all cells they share.

    elsewhere: the other experiment that the baseline is from.
    """

    system: str
    baseline: str
    task: str
    tested_on: str
    elsewhere: str | None
    n_cells: int
    difference: Estimate

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def overall_differences(experiment: Experiment, tables: Tables) -> tuple[OverallDifference, ...]:
    """The experiment's comparisons, each over a whole table."""
    groups: dict[tuple[str, str, str, str, str | None], list[CellPair]] = {}
    for pair in find_pairs(experiment, tables):
        test = pair.table.matrix.task, pair.table.tested_on
        groups.setdefault((pair.system, pair.baseline, *test, pair.elsewhere), []).append(pair)
    found = []
    for key, pairs in groups.items():
        difference = difference_of([(pair.own, pair.theirs) for pair in pairs])
        found.append(OverallDifference(*key, n_cells=len(pairs), difference=difference))
    return tuple(found)


def mean_of(*tables: ScoreTable) -> Estimate:
    """Mean macro-F1 over all cells of the tables."""
    cells: list[CellAnswers] = []
    for table in tables:
        cells += table.answers.values()
    return weighted_sum(_evenly(cells, 1.0))


def home_less_elsewhere(*tables: ScoreTable) -> Estimate | None:
    """Mean over the cells tested where they were trained, less the mean over the others.

    None where there are not both.
    """
    home: list[CellAnswers] = []
    elsewhere: list[CellAnswers] = []
    for table in tables:
        if table.matrix.at_home is not None:
            for (row, column), answers in table.answers.items():
                (home if row == column else elsewhere).append(answers)
    if not home or not elsewhere:
        return None
    return weighted_sum([*_evenly(home, 1.0), *_evenly(elsewhere, -1.0)])


def difference_of(pairs: Sequence[tuple[CellAnswers, CellAnswers]]) -> Estimate:
    """First less second of each pair, mean over the pairs."""
    own = _evenly([first for first, _ in pairs], 1.0)
    theirs = _evenly([second for _, second in pairs], -1.0)
    return weighted_sum([*own, *theirs])


def less_published(*tables: ScoreTable) -> Estimate | None:
    """Ours less the published scores, mean over the cells that have both."""
    answers, scores = [], []
    for table in tables:
        for place, own in table.answers.items():
            if place in table.published:
                answers.append(own)
                scores.append(table.published[place])
    if not answers:
        return None
    return weighted_sum(_evenly(answers, 1.0)).less(float(np.mean(scores)))


def weighted_sum(parts: Sequence[Weighted]) -> Estimate:
    """Σ weight · macro-F1 with its interval; parts with the same texts are resampled together."""
    by_texts: dict[str, list[Weighted]] = {}
    for weight, answers in parts:
        by_texts.setdefault(answers.texts, []).append((weight, answers))
    by_seed, resampled = np.zeros(1), np.zeros(1)
    for number, together in enumerate(by_texts.values()):
        scores, draws = _same_texts(together, seed=number)
        by_seed, resampled = by_seed + scores, resampled + draws  # (seed,), (resample,)
    value = float(by_seed.mean())
    margin = seed_margin(by_seed)
    return Estimate(value, widen_interval(value, interval(resampled), margin, within=_range(parts)))


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


def _range(parts: Sequence[Weighted]) -> tuple[float, float]:
    """What Σ weight · macro-F1 can be at all."""
    lowest = sum(weight for weight, _ in parts if weight < 0)
    highest = sum(weight for weight, _ in parts if weight > 0)
    return lowest, highest


def _evenly(answers: Sequence[CellAnswers], total: float) -> list[Weighted]:
    return [(total / len(answers), one) for one in answers]
