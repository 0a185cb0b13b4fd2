"""How long a training step took, beside tables I and II of the paper.

Never the same twice, so it has a file of its own.

Seconds depend on the machine, the encoder and the batch; what can be compared between two machines
is how much slower one head is than another on the same one. So every time also stands as a ratio to
the first setting of its experiment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from litotes.study.paper import facts
from litotes.study.results import Findings
from litotes.training.recipe import Recipe


@dataclass(frozen=True)
class Timed:
    """One kind of run: mean seconds per step over n_runs runs and their range; the paper's seconds
    per batch, where it has them.
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
    """All kinds of runs, the machines they ran on (none where a run did not note its own), and the
    paper's.
    """

    rows: tuple[Timed, ...]
    machines: tuple[dict[str, Any], ...]
    paper_machine: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"paper": facts()["seconds_per_batch"]}


def timing(all_findings: Sequence[Findings]) -> Timing:
    """The times of all runs that were done."""
    machines = {
        repr(machine): dict(machine) for found in all_findings for machine in found.machines
    }
    rows = tuple(row for found in all_findings for row in _rows(found))
    return Timing(rows, tuple(machines.values()), facts()["seconds_per_batch"]["hardware"])


def _rows(found: Findings) -> Iterator[Timed]:
    first, first_paper = None, None
    for kind, times in found.seconds_per_step.items():
        recipe = next(setting.recipe for setting in found.experiment.grid if setting.kind == kind)
        seconds = float(np.mean(times))
        paper = paper_seconds(recipe) if found.experiment.settings.figure else None
        first = seconds if first is None else first
        first_paper = paper if first_paper is None else first_paper
        yield Timed(
            experiment=found.experiment.settings.name,
            setting=kind,
            head=recipe.model.head,
            n_runs=len(times),
            batch_texts=recipe.training.batch_texts,
            seconds=seconds,
            fastest=min(times),
            slowest=max(times),
            ratio=seconds / first,
            paper_seconds=paper,
            paper_ratio=paper / first_paper if paper and first_paper else None,
        )


def paper_seconds(recipe: Recipe) -> float | None:
    """Seconds per batch in table I (one task) or table II (both) for the same head on the same
    texts.
    """
    table, corpus = facts()["seconds_per_batch"], recipe.data.source.partition(":")[0]
    tasks = recipe.data.tasks or []
    if len(tasks) == 1:
        place = recipe.data.where.source if isinstance(recipe.data.where.source, str) else corpus
        return _found(table["columns"], table["rows"].get(recipe.model.head), f"{place} {tasks[0]}")
    return _found(table["multitask"]["columns"], table["multitask"].get(recipe.model.head), corpus)


def _found(columns: Sequence[str], row: Sequence[float] | None, name: str) -> float | None:
    places = [place for place, column in enumerate(columns) if column.casefold() == name.casefold()]
    return row[places[0]] if row and places else None
