"""How long a training step took. Never the same twice, so it has a file of its own.

Seconds depend on the machine, the encoder and the batch; what can be compared between two machines
is how much slower one head is than another on the same one. So every time is also given as a ratio
to the first setting of its experiment, and so are published times where there are some.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from litotes.study.plan import Study
from litotes.study.published import Published, PublishedTimes
from litotes.study.tables import ExperimentResults


@dataclass(frozen=True)
class StepTime:
    """One kind of run: mean seconds per step over n_runs runs and their range.

    paper_seconds: published seconds per batch, where there are some.
    """

    experiment: str
    setting: str
    head: str
    n_runs: int
    batch_texts: int
    seconds: float
    fastest: float
    slowest: float
    ratio: float
    paper_seconds: float | None
    paper_ratio: float | None


@dataclass(frozen=True)
class Timing:
    """All kinds of runs, the machines they ran on, and the published times."""

    rows: tuple[StepTime, ...]
    machines: tuple[dict[str, Any], ...]
    published: PublishedTimes | None = None

    def as_json(self) -> dict[str, Any]:
        published = self.published
        return {
            "rows": [asdict(row) for row in self.rows],
            "machines": list(self.machines),
            "paper_machine": None if published is None else published.hardware,
            "paper": None if published is None else published.model_dump(mode="json"),
        }


def time_steps(study: Study, results: Sequence[ExperimentResults]) -> Timing:
    """The times of all runs that were done."""
    rows: list[StepTime] = []
    machines: dict[str, dict[str, Any]] = {}
    for one in results:
        rows += _rows(one, study.published)
        for machine in one.machines:
            machines[repr(machine)] = dict(machine)
    published = None if study.published is None else study.published.seconds_per_batch
    return Timing(tuple(rows), tuple(machines.values()), published)


def _rows(results: ExperimentResults, published: Published | None) -> Iterator[StepTime]:
    first = first_published = None
    has_figure = results.experiment.settings.figure is not None
    for kind, times in results.seconds_per_step.items():
        recipe = next(one.recipe for one in results.experiment.grid if one.kind == kind)
        seconds = float(np.mean(times))
        theirs = published.seconds_for(recipe) if published is not None and has_figure else None
        first = seconds if first is None else first
        first_published = theirs if first_published is None else first_published
        yield StepTime(
            experiment=results.name,
            setting=kind,
            head=recipe.model.head,
            n_runs=len(times),
            batch_texts=recipe.training.batch_texts,
            seconds=seconds,
            fastest=min(times),
            slowest=max(times),
            ratio=seconds / first,
            paper_seconds=theirs,
            paper_ratio=theirs / first_published if theirs and first_published else None,
        )
