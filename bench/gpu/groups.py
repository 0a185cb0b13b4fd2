"""All groups of the GPU's bench, and a run of them: what is measured is handed on after every
group, so that a run that is cut off leaves its figures.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from bench.gpu.classify import buckets, classify, minilm, precision, strings
from bench.gpu.context import GpuBench
from bench.gpu.csv import csv
from bench.gpu.selection import importance, launches
from bench.gpu.training import training, training_minilm
from bench.gpu.training_heads import training_heads
from bench.gpu.turns import GpuGroup
from bench.gpu.weightings import weightings
from bench.gpu_facts import gpu_facts
from bench.lines import BenchResult
from bench.measure import BenchReport
from litotes.core.errors import UserError
from litotes.core.machine import machine_now
from litotes.core.progress import Milestone
from litotes.core.registry import pick

GROUPS: dict[str, Callable[[GpuBench], GpuGroup]] = {
    "classify": classify,
    "training": training,
    "weightings": weightings,
    "importance": importance,
    "launches": launches,
    "minilm": minilm,
    "training-minilm": training_minilm,
    "training-heads": training_heads,
    "precision": precision,
    "strings": strings,
    "csv": csv,
    "buckets": buckets,
}
"""In this order, what takes longest last: where time is up, the last lines are missing."""

WHOLE = "whole group"


@dataclass(frozen=True)
class GpuReport:
    """What was measured so far, and on which machine."""

    machine: Mapping[str, Any]
    n_texts: int
    subject: Mapping[str, Any]
    groups: Mapping[str, GpuGroup]

    @property
    def failed(self) -> dict[str, str]:
        """Lines that could not be measured, as `GROUP: LINE`, and why."""
        found = {}
        for group, measured in self.groups.items():
            for name, error in measured.failed.items():
                found[f"{group}: {name}"] = error
        return found

    def as_report(self) -> BenchReport:
        """Its lines as those of any bench."""
        results = {name: group.result for name, group in self.groups.items()}
        return BenchReport(self.machine, self.n_texts, results, self.subject)

    def as_json(self) -> dict[str, Any]:
        content = self.as_report().as_json()
        for name, group in self.groups.items():
            own: dict[str, Any] = content["groups"][name]
            own["failed"] = dict(group.failed)
            own["facts"] = {line: dict(facts) for line, facts in group.facts.items()}
        return content


def require_gpu() -> torch.device:
    if not torch.cuda.is_available():
        raise UserError(
            "`python -m bench gpu` needs a CUDA device, and a torch that was built for it; this"
            " machine has none. Run it where there is one."
        )
    return torch.device("cuda")


def measure_gpu(
    bench: GpuBench,
    names: Sequence[str] = (),
    *,
    on_group: Callable[[GpuReport], None] = lambda report: None,
) -> GpuReport:
    """The groups of these names, all of them where none is given; `on_group` is given what there is
    after each.
    """
    for name in names:
        pick(GROUPS, name, "group of the GPU's bench")
    machine = machine_now() | gpu_facts(bench.device)
    report = GpuReport(machine, len(bench.texts), bench.as_json(), {})
    wanted = [name for name in names or GROUPS if name != "csv" or bench.n_rows]
    for number, name in enumerate(wanted):
        group = _guarded(bench, name)
        report = GpuReport(machine, report.n_texts, report.subject, {**report.groups, name: group})
        on_group(report)
        words = f"{name}: {len(group.result.lines)} lines, {len(group.failed)} failed"
        bench.watch("groups", number + 1, len(wanted), Milestone(words))
        gc.collect()
        torch.cuda.empty_cache()
    return report


def _guarded(bench: GpuBench, name: str) -> GpuGroup:
    """A group that fails as a whole is reported like a line."""
    attempts = bench.attempts()
    group = attempts.attempt(WHOLE, lambda: GROUPS[name](bench))
    if group is None:
        group = GpuGroup(BenchResult("", (), attempts.left_out), attempts.failed)
    return group
