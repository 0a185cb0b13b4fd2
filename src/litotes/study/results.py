"""The answers of all runs become tables, and tables become comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from litotes.study.comparisons import Comparison, Tables, compare
from litotes.study.execute import StudyRuns
from litotes.study.plan import Experiment, Study
from litotes.study.run_files import RunFiles
from litotes.study.tables import ScoreTable, make_tables


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
