"""What the runs of a study have written, read back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from litotes.core.json_text import read_as
from litotes.core.numbers import Counts, Floats
from litotes.model.calibration import Calibration
from litotes.study.corpora import key_of_test, run_key
from litotes.study.job import RunJob
from litotes.study.plan import Experiment, Setting, TestedOn, short_hash

Content = TypeVar("Content")


@dataclass(frozen=True)
class _Part:
    """What one model answered to the texts of one task in one column, as `study/job.py` writes it;
    so are the files below.
    """

    labels: list[str]
    texts: str
    gold: list[int]
    answers: list[int]
    probability: list[float]

    def __post_init__(self) -> None:
        if not len(self.gold) == len(self.answers) == len(self.probability):
            raise ValueError("answers to another number of texts")
        if not all(0 <= place < len(self.labels) for place in (*self.gold, *self.answers)):
            raise ValueError("an answer that is none of the labels")
        if not all(0 <= probability <= 1 for probability in self.probability):
            raise ValueError("a probability that is none")


@dataclass(frozen=True)
class _Answers:
    test: Any
    columns: dict[str, dict[str, _Part]]


@dataclass(frozen=True)
class _Facts:
    recipe: Any
    n_train: list[int]
    best_epoch: list[int | None]
    calibration: dict[str, Calibration]
    notes: list[str]
    held_out: list[float | None] = field(default_factory=list)  # runs of earlier versions: unknown


@dataclass(frozen=True)
class _Timing:
    seconds_per_step: list[float]
    machine: dict[str, Any]


@dataclass(frozen=True)
class CellAnswers:
    """What the models of one cell answered.

    gold (text,); answers and their probability (seed, text); temperature (seed,). labels: the
    names of the classes. texts: a hash; cells with the same one were tested on the same texts.
    """

    gold: Counts
    answers: Counts
    probability: Floats
    temperature: Floats
    labels: tuple[str, ...]
    texts: str

    @property
    def n_classes(self) -> int:
        return len(self.labels)


class RunFiles:
    """The files of all runs; each is read once. reasons: why a run has no result, by its key."""

    def __init__(
        self, jobs: Mapping[str, RunJob], reasons: Mapping[str, str], seeds: Sequence[int]
    ) -> None:
        self.jobs, self.reasons, self.seeds = jobs, reasons, seeds
        self._contents: dict[Path, Any] = {}

    def failure(self, setting: Setting) -> str | None:
        """Why a setting has no result; None when all its seeds are done."""
        for seed in self.seeds:
            key = _key(setting, seed)
            if not self.jobs[key].is_done():
                return self.reasons.get(key, "not run yet")
        return None

    def failures(self, experiment: Experiment) -> dict[str, str]:
        """Of all settings without results, by name."""
        reasons = {setting.name: self.failure(setting) for setting in experiment.grid}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    def cells(self, setting: Setting, test: TestedOn) -> Iterator[tuple[str, str, CellAnswers]]:
        """The answers of a setting's models, (task, column, answers of all seeds)."""
        by_seed = [self._columns(setting, seed, test) for seed in self.seeds]
        calibrations = [self._facts(setting, seed).calibration for seed in self.seeds]
        for column, tasks in by_seed[0].items():
            for task in tasks:
                parts = [columns[column][task] for columns in by_seed]
                temperatures = [one.get(task, Calibration()).temperature for one in calibrations]
                yield task, column, _cell_answers(task, parts, temperatures)

    def notes(self, experiment: Experiment) -> tuple[str, ...]:
        """What the runs noted, each note once."""
        notes: dict[str, None] = {}  # a set that keeps its order
        for setting, seed in self._done(experiment):
            notes |= dict.fromkeys(self._facts(setting, seed).notes)
        return tuple(notes)

    def held_out(self, experiment: Experiment) -> dict[str, tuple[float | None, ...]]:
        """The held-out scores of every setting's models, in the epochs that were kept."""
        found: dict[str, tuple[float | None, ...]] = {}
        for setting, seed in self._done(experiment):
            scores = self._facts(setting, seed).held_out
            found[setting.name] = (*found.get(setting.name, ()), *scores)
        return found

    def seconds(self, experiment: Experiment) -> dict[str, tuple[float, ...]]:
        """Seconds per step of every run, by the kind of its setting."""
        found: dict[str, tuple[float, ...]] = {}
        for setting, seed in self._done(experiment):
            times = self._timing(setting, seed).seconds_per_step
            found[setting.kind] = (*found.get(setting.kind, ()), *times)
        return found

    def machines(self, experiment: Experiment) -> tuple[dict[str, Any], ...]:
        """The machines that the runs were timed on, each once."""
        found = {}
        for setting, seed in self._done(experiment):
            if machine := self._timing(setting, seed).machine:
                found[json.dumps(machine, sort_keys=True)] = machine
        return tuple(found.values())

    def _done(self, experiment: Experiment) -> Iterator[tuple[Setting, int]]:
        for setting in experiment.grid:
            if self.failure(setting) is None:
                for seed in self.seeds:
                    yield setting, seed

    def _columns(self, setting: Setting, seed: int, test: TestedOn) -> dict[str, dict[str, _Part]]:
        job = self.jobs[_key(setting, seed)]
        file = job.answers_file(key_of_test(test, job.recipe))
        return self._read(file, _Answers).columns

    def _facts(self, setting: Setting, seed: int) -> _Facts:
        return self._read(self.jobs[_key(setting, seed)].folder / "facts.json", _Facts)

    def _timing(self, setting: Setting, seed: int) -> _Timing:
        return self._read(self.jobs[_key(setting, seed)].folder / "timing.json", _Timing)

    def _read(self, file: Path, kind: type[Content]) -> Content:
        if file not in self._contents:
            advice = f"Delete {file} and start the command again: what is missing is made again."
            self._contents[file] = read_as(file, kind, advice=advice)
        content: Content = self._contents[file]
        return content


def _key(setting: Setting, seed: int) -> str:
    return run_key(setting.recipe.changed(seed=setting.recipe.seed + seed))


def _cell_answers(task: str, parts: Sequence[_Part], temperatures: Sequence[float]) -> CellAnswers:
    """parts: what each seed's file says about one cell."""
    first = parts[0]
    return CellAnswers(
        gold=np.array(first.gold),
        answers=np.array([part.answers for part in parts]),
        probability=np.array([part.probability for part in parts]),
        temperature=np.array(temperatures),
        labels=tuple(first.labels),
        texts=short_hash(first.texts, task, *first.labels, json.dumps(first.gold)),
    )
