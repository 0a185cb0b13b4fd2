"""What the runs of a study have written, read back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from litotes.core.counts import Counts, Floats
from litotes.core.storage import load_json
from litotes.study.corpora import key_of_test, run_key
from litotes.study.job import RunJob
from litotes.study.plan import Experiment, Setting, TestedOn, short_hash


@dataclass(frozen=True)
class CellAnswers:
    """What the models of one cell answered.

    gold (text,); answers and their probability (seed, text); temperature (seed,). texts: a hash;
    cells with the same one were tested on the same texts.
    """

    gold: Counts
    answers: Counts
    probability: Floats
    temperature: Floats
    n_classes: int
    texts: str


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
        calibrations = [self._facts(setting, seed)["calibration"] for seed in self.seeds]
        for column, tasks in by_seed[0].items():
            for task in tasks:
                parts = [columns[column][task] for columns in by_seed]
                temperatures = [
                    one.get(task, {"temperature": 1.0})["temperature"] for one in calibrations
                ]
                yield task, column, _cell_answers(task, parts, temperatures)

    def notes(self, experiment: Experiment) -> tuple[str, ...]:
        """What the runs noted, each note once."""
        notes: dict[str, None] = {}  # a set that keeps its order
        for setting, seed in self._done(experiment):
            notes |= dict.fromkeys(self._facts(setting, seed)["notes"])
        return tuple(notes)

    def seconds(self, experiment: Experiment) -> dict[str, tuple[float, ...]]:
        """Seconds per step of every run, by the kind of its setting."""
        found: dict[str, tuple[float, ...]] = {}
        for setting, seed in self._done(experiment):
            times = self._timing(setting, seed)["seconds_per_step"]
            found[setting.kind] = (*found.get(setting.kind, ()), *times)
        return found

    def machines(self, experiment: Experiment) -> tuple[dict[str, Any], ...]:
        """The machines that the runs were timed on, each once."""
        found = {}
        for setting, seed in self._done(experiment):
            if machine := self._timing(setting, seed).get("machine"):
                found[json.dumps(machine, sort_keys=True)] = machine
        return tuple(found.values())

    def _done(self, experiment: Experiment) -> Iterator[tuple[Setting, int]]:
        for setting in experiment.grid:
            if self.failure(setting) is None:
                for seed in self.seeds:
                    yield setting, seed

    def _columns(self, setting: Setting, seed: int, test: TestedOn) -> dict[str, Any]:
        job = self.jobs[_key(setting, seed)]
        return dict(self._json(job.answers_file(key_of_test(test, job.recipe)))["columns"])

    def _facts(self, setting: Setting, seed: int) -> dict[str, Any]:
        return dict(self._json(self.jobs[_key(setting, seed)].folder / "facts.json"))

    def _timing(self, setting: Setting, seed: int) -> dict[str, Any]:
        return dict(self._json(self.jobs[_key(setting, seed)].folder / "timing.json"))

    def _json(self, file: Path) -> Any:
        if file not in self._contents:
            self._contents[file] = load_json(file)
        return self._contents[file]


def _key(setting: Setting, seed: int) -> str:
    return run_key(setting.recipe.changed(seed=setting.recipe.seed + seed))


def _cell_answers(
    task: str, parts: Sequence[Mapping[str, Any]], temperatures: Sequence[float]
) -> CellAnswers:
    """parts: what each seed's file says about one cell."""
    first = parts[0]
    return CellAnswers(
        gold=np.array(first["gold"]),
        answers=np.array([part["answers"] for part in parts]),
        probability=np.array([part["probability"] for part in parts]),
        temperature=np.array(temperatures),
        n_classes=len(first["labels"]),
        texts=short_hash(first["texts"], task, *first["labels"], json.dumps(first["gold"])),
    )
