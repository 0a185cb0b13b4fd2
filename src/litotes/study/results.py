"""The answers of all runs become tables, and tables become comparisons."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from litotes.core.counts import Counts, Floats
from litotes.core.errors import UserError
from litotes.evaluation.cross_matrix import CrossMatrix, make_cell
from litotes.evaluation.significance import SIGNIFICANT, Difference, difference, holm
from litotes.study.job import RunJob, key_of_test, run_key
from litotes.study.paper import printed
from litotes.study.plan import Experiment, Setting, Study, TestedOn, hashed, named, shown


@dataclass(frozen=True)
class Answers:
    """What the models of one cell said: gold (text,), answers and their probability (seed, text),
    temperature (seed,).
    """

    gold: Counts
    answers: Counts
    probability: Floats
    temperature: Floats
    n_classes: int
    texts: str


@dataclass(frozen=True)
class Panel:
    """One table of an experiment, the answers behind it, and the paper's numbers for it.

    values: the grid's values that all of its models share; tested_on: the test's name; failed:
    {row: sentence}.
    """

    values: Mapping[str, Any]
    tested_on: str
    table: CrossMatrix
    answers: Mapping[tuple[str, str], Answers]
    paper: Mapping[tuple[str, str], float]
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return ", ".join(filter(None, [self.setting, self.tested_on, self.table.task]))

    @property
    def setting(self) -> str:
        """What its models share, in words; empty where the experiment has nothing but rows."""
        return ", ".join(named(path, value) for path, value in self.values.items())

    def title_among(self, panels: Sequence[Panel]) -> str:
        """What tells it from the others of its experiment: parts of the title that all of them
        share are left out.
        """
        own = (self.setting, self.tested_on, self.table.task)
        others = [(panel.setting, panel.tested_on, panel.table.task) for panel in panels]
        telling = [
            part
            for place, part in enumerate(own)
            if part and len({other[place] for other in others}) > 1
        ]
        return ", ".join(telling) or self.title

    def of(self, experiment: str) -> str:
        """Its models among those of other experiments."""
        return f"{experiment} ({self.setting})" if self.setting else experiment


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
class Findings:
    """An experiment with its tables, comparisons and notes.

    seconds_per_step: by kind of the setting, one value per run; machines: those the runs were timed
    on, each once; failed: for each setting without results, why.
    """

    experiment: Experiment
    panels: tuple[Panel, ...]
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]
    seconds_per_step: Mapping[str, tuple[float, ...]]
    machines: tuple[Mapping[str, Any], ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)


def findings(
    study: Study, jobs: Mapping[str, RunJob], failures: Mapping[str, str]
) -> tuple[Findings, ...]:
    """All experiments; `failures` says for a run's key why it has no answers."""
    reader = _Reader(jobs, failures)
    panels = {
        one.settings.name: tuple(_panels(one, study.seeds, reader)) for one in study.experiments
    }
    return tuple(
        Findings(
            experiment=one,
            panels=panels[one.settings.name],
            comparisons=tuple(_comparisons(one, panels)),
            notes=tuple(reader.notes(one, study.seeds)),
            seconds_per_step=reader.seconds(one, study.seeds),
            machines=reader.machines(one, study.seeds),
            failed=reader.failed(one, study.seeds),
        )
        for one in study.experiments
    )


class _Reader:
    """Reads what the runs have written; each file once."""

    def __init__(self, jobs: Mapping[str, RunJob], failures: Mapping[str, str]) -> None:
        self.jobs, self.failures = jobs, failures
        self.read: dict[str, Any] = {}

    def job(self, setting: Setting, seed: int) -> tuple[str, RunJob]:
        key = run_key(setting.recipe.changed(seed=setting.recipe.seed + seed))
        return key, self.jobs[key]

    def failure(self, setting: Setting, seeds: Sequence[int]) -> str | None:
        for seed in seeds:
            key, job = self.job(setting, seed)
            if not job.is_done():
                return self.failures.get(key, "not run yet")
        return None

    def failed(self, experiment: Experiment, seeds: Sequence[int]) -> dict[str, str]:
        reasons = ((setting, self.failure(setting, seeds)) for setting in experiment.grid)
        return {setting.name: reason for setting, reason in reasons if reason is not None}

    def columns(self, setting: Setting, seed: int, test: TestedOn) -> dict[str, Any]:
        _, job = self.job(setting, seed)
        return dict(self._json(str(job.answers_file(key_of_test(test, job.recipe))))["columns"])

    def facts(self, setting: Setting, seed: int, file: str = "facts.json") -> dict[str, Any]:
        return dict(self._json(str(self.job(setting, seed)[1].folder / file)))

    def notes(self, experiment: Experiment, seeds: Sequence[int]) -> Iterator[str]:
        done = [setting for setting in experiment.grid if self.failure(setting, seeds) is None]
        yield from dict.fromkeys(
            note
            for setting in done
            for seed in seeds
            for note in self.facts(setting, seed)["notes"]
        )

    def seconds(self, experiment: Experiment, seeds: Sequence[int]) -> dict[str, tuple[float, ...]]:
        found: dict[str, tuple[float, ...]] = {}
        for setting in experiment.grid:
            if self.failure(setting, seeds) is None:
                times = [
                    time
                    for seed in seeds
                    for time in self.facts(setting, seed, "timing.json")["seconds_per_step"]
                ]
                found[setting.kind] = (*found.get(setting.kind, ()), *times)
        return found

    def machines(self, experiment: Experiment, seeds: Sequence[int]) -> tuple[dict[str, Any], ...]:
        done = [setting for setting in experiment.grid if self.failure(setting, seeds) is None]
        found = [
            self.facts(setting, seed, "timing.json").get("machine")
            for setting in done
            for seed in seeds
        ]
        return tuple(
            {json.dumps(machine, sort_keys=True): machine for machine in found if machine}.values()
        )

    def _json(self, path: str) -> Any:
        if path not in self.read:
            with open(path, encoding="utf-8") as stream:
                self.read[path] = json.load(stream)
        return self.read[path]


def _panels(experiment: Experiment, seeds: Sequence[int], reader: _Reader) -> Iterator[Panel]:
    """A table for every test, every combination of the grid beside the rows, and every task."""
    rows_path = experiment.settings.rows
    groups: dict[str, list[Setting]] = {}
    for setting in experiment.grid:
        shared = {path: value for path, value in setting.values.items() if path != rows_path}
        groups.setdefault(json.dumps(shared), []).append(setting)
    for test in experiment.tests:
        for key, settings in groups.items():
            yield from _panels_of(experiment, json.loads(key), settings, test, seeds, reader)


def _panels_of(
    experiment: Experiment,
    shared: dict[str, Any],
    settings: Sequence[Setting],
    test: TestedOn,
    seeds: Sequence[int],
    reader: _Reader,
) -> Iterator[Panel]:
    rows = {shown(setting.values[experiment.settings.rows]): setting for setting in settings}
    failed = {
        row: reason
        for row, setting in rows.items()
        if (reason := reader.failure(setting, seeds)) is not None
    }
    answers: dict[str, dict[tuple[str, str], Answers]] = {}
    for row, setting in rows.items():
        if row not in failed:
            for task, column, cell in _cells(setting, test, seeds, reader):
                answers.setdefault(task, {})[row, column] = cell
    for task, cells in answers.items():
        columns = tuple(sorted({column for _, column in cells}))
        made = tuple(
            make_cell(row, column, one.gold, one.answers, one.n_classes)
            for (row, column), one in cells.items()
        )
        table = CrossMatrix(task, test.by, tuple(rows), columns, made)
        labels = [*map(shown, shared.values()), test.label(), settings[0].recipe.model.head]
        paper = printed(experiment.settings.figure, task, labels, tuple(rows))
        yield Panel(shared, test.label(), table, cells, paper, failed)


def _cells(
    setting: Setting, test: TestedOn, seeds: Sequence[int], reader: _Reader
) -> Iterator[tuple[str, str, Answers]]:
    by_seed = [reader.columns(setting, seed, test) for seed in seeds]
    calibrations = [reader.facts(setting, seed)["calibration"] for seed in seeds]
    for column, tasks in by_seed[0].items():
        for task, first in tasks.items():
            parts = [columns[column][task] for columns in by_seed]
            temperatures = [
                one.get(task, {"temperature": 1.0})["temperature"] for one in calibrations
            ]
            yield (
                task,
                column,
                Answers(
                    gold=np.array(first["gold"]),
                    answers=np.array([part["answers"] for part in parts]),
                    probability=np.array([part["probability"] for part in parts]),
                    temperature=np.array(temperatures),
                    n_classes=len(first["labels"]),
                    texts=hashed(first["texts"], task, *first["labels"], json.dumps(first["gold"])),
                ),
            )


@dataclass(frozen=True)
class Pair:
    """Two systems' answers in one place of a table; `elsewhere` as in `Comparison`."""

    system: str
    baseline: str
    panel: Panel
    row: str
    column: str
    own: Answers
    theirs: Answers
    elsewhere: str | None = None

    def difference(self) -> Difference:
        if self.own.texts != self.theirs.texts:
            raise UserError(
                f"{self.system} and {self.baseline} were not tested on the same texts; they cannot"
                " be compared."
            )
        return difference(self.own.gold, self.own.answers, self.theirs.answers, self.own.n_classes)


def _comparisons(
    experiment: Experiment, panels: Mapping[str, Sequence[Panel]]
) -> Iterator[Comparison]:
    """Every pair that the experiment asks for, with Holm's correction over all of them together."""
    pairs = pairs_of(experiment, panels)
    found = [pair.difference() for pair in pairs]
    adjusted = holm([one.p for one in found])
    for pair, one, p in zip(pairs, found, adjusted, strict=True):
        where = (pair.panel.table.task, pair.panel.tested_on, pair.row, pair.column)
        yield Comparison(
            pair.system, pair.baseline, *where, one, adjusted_p=p, elsewhere=pair.elsewhere
        )


def pairs_of(experiment: Experiment, panels: Mapping[str, Sequence[Panel]]) -> list[Pair]:
    """All that the experiment asks to set side by side; `panels`: those of every experiment, by its
    name.
    """
    return [*_within(experiment, panels[experiment.settings.name]), *_against(experiment, panels)]


def _within(experiment: Experiment, panels: Sequence[Panel]) -> Iterator[Pair]:
    """Systems that differ in the compared path alone, each with the one that has its first value."""
    path = experiment.settings.compare
    if path is None:
        return
    first = experiment.settings.grid[path][0]
    for panel in panels:
        if path == experiment.settings.rows:
            for (row, column), own in panel.answers.items():
                if row != shown(first) and (shown(first), column) in panel.answers:
                    yield Pair(
                        row,
                        shown(first),
                        panel,
                        row,
                        column,
                        own,
                        panel.answers[shown(first), column],
                    )
        elif panel.values[path] != first:
            wanted = {**panel.values, path: first}
            for other in panels:
                if (dict(other.values), other.tested_on, other.table.task) == (
                    wanted,
                    panel.tested_on,
                    panel.table.task,
                ):
                    rest = ", ".join(
                        named(key, value) for key, value in panel.values.items() if key != path
                    )
                    system, baseline = (
                        f"{named(path, value)}{f' ({rest})' if rest else ''}"
                        for value in (panel.values[path], first)
                    )
                    yield from _place_by_place(system, baseline, panel, other)


def _against(experiment: Experiment, panels: Mapping[str, Sequence[Panel]]) -> Iterator[Pair]:
    """Each panel with the first one of another experiment that answers the same task on the same
    test.
    """
    for panel in panels[experiment.settings.name]:
        for name in experiment.settings.against:
            others = [
                other
                for other in panels[name]
                if (other.table.task, other.tested_on) == (panel.table.task, panel.tested_on)
            ]
            if others:
                system, baseline = panel.of(experiment.settings.name), others[0].of(name)
                yield from _place_by_place(system, baseline, panel, others[0], elsewhere=name)


def _place_by_place(
    system: str, baseline: str, panel: Panel, other: Panel, *, elsewhere: str | None = None
) -> Iterator[Pair]:
    for (row, column), own in panel.answers.items():
        if (row, column) in other.answers:
            yield Pair(
                system, baseline, panel, row, column, own, other.answers[row, column], elsewhere
            )
