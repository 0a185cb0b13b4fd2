"""A run of benches: the machine first, then group after group, all in one document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from bench.attention import attention
from bench.benchmark import open_benchmark
from bench.classify import classify
from bench.effective import effective
from bench.entmax import entmax
from bench.growth import growth
from bench.latency import latency
from bench.lines import BenchResult
from bench.pcgrad import pcgrad
from bench.profile import profile
from bench.subject import Subject
from bench.train import train
from litotes.core.machine import machine_now, n_cores
from litotes.core.progress import Watch, ignore_progress

MODEL_BENCHES: dict[str, Callable[..., BenchResult]] = {
    "classify": classify,
    "latency": latency,
    "profile": profile,
    "growth": growth,
}
"""From texts to answers, by all models that are compared (benchmark.py)."""

PART_BENCHES: dict[str, Callable[..., BenchResult]] = {
    "pcgrad": pcgrad,
    "entmax": entmax,
    "effective": effective,
    "attention": attention,
    "train": train,
}
"""Parts of the work, each with baselines of its own, from texts."""

QUICK: dict[str, dict[str, Any]] = {
    "latency": {"lengths": (12, 50), "n_runs": 10},
    "profile": {"lengths": (16, 128)},
    "growth": {"sizes": (1, 8)},
    "entmax": {"most_texts": 1},
    "effective": {"most_texts": 1},
}
"""Options of groups for a first look."""


@dataclass(frozen=True)
class BenchReport:
    """What was measured, by group, and on which machine; its load is that of the start.

    subject: what the models of `MODEL_BENCHES` are.
    """

    machine: Mapping[str, Any]
    n_texts: int
    groups: Mapping[str, BenchResult]
    subject: Mapping[str, Any]

    @property
    def left_out(self) -> dict[str, str]:
        """Lines whose library is absent, as `GROUP: LINE`, and which one that is."""
        missing = {}
        for group, result in self.groups.items():
            for name, library in result.left_out.items():
                missing[f"{group}: {name}"] = library
        return missing

    @property
    def refused(self) -> dict[str, str]:
        """Opponents that are not measured, as `GROUP: LINE`, and why."""
        reasons = {}
        for group, result in self.groups.items():
            for name, reason in result.refused.items():
                reasons[f"{group}: {name}"] = reason
        return reasons

    def as_json(self) -> dict[str, Any]:
        groups: dict[str, Any] = {}
        lines: list[dict[str, Any]] = []
        for name, result in self.groups.items():
            groups[name] = {
                "baseline": result.baseline,
                "ms_of": result.ms_of,
                "notes": list(result.notes),
                "left_out": dict(result.left_out),
                "refused": dict(result.refused),
            }
            lines += result.as_json()
        return {
            "machine": dict(self.machine),
            "n_texts": self.n_texts,
            "subject": dict(self.subject),
            "groups": groups,
            "lines": lines,
        }


def measure(
    what: Sequence[str],
    texts: Sequence[str],
    *,
    subject: Subject | None,
    options: Mapping[str, Mapping[str, Any]],
    n_rounds: int = 5,
    watch: Watch = ignore_progress,
) -> BenchReport:
    """Measures the groups with these names.

    subject: the models for `MODEL_BENCHES`; None where no such group is asked for. options: those
    of each group.
    """
    results: dict[str, BenchResult] = {}
    about: dict[str, Any] = {}
    with all_cores():
        machine = machine_now()
        if any(name in MODEL_BENCHES for name in what):
            assert subject is not None
            with open_benchmark(subject, texts) as benchmark:
                about = benchmark.as_json()
                for name in what:
                    if name in MODEL_BENCHES:
                        bench = partial(MODEL_BENCHES[name], benchmark, **options.get(name, {}))
                        results[name] = bench(n_rounds=n_rounds, watch=watch)
        for name in what:
            if name in PART_BENCHES:
                bench = partial(PART_BENCHES[name], texts, **options.get(name, {}))
                results[name] = bench(n_rounds=n_rounds, watch=watch)
    return BenchReport(machine, len(texts), {name: results[name] for name in what}, about)


@contextmanager
def all_cores() -> Iterator[None]:
    """Gives torch a thread per core, as ONNX Runtime has it, whatever the environment says: the
    baselines' torch too.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(n_cores())
    try:
        yield
    finally:
        torch.set_num_threads(before)
