"""A run of benches: the machine first, then group after group, all in one document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from litotes.bench import MODEL_BENCHES, PART_BENCHES
from litotes.bench.benchmark import open_benchmark
from litotes.bench.lines import BenchResult
from litotes.bench.subject import Subject
from litotes.core.machine import machine_now
from litotes.core.processor import n_cores
from litotes.core.progress import Watch, unwatched

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
    """What was measured, by group, and on which machine; its load is that of the start. subject:
    what the models of contests are.
    """

    machine: Mapping[str, Any]
    n_texts: int
    groups: Mapping[str, BenchResult]
    subject: Mapping[str, Any]

    @property
    def left_out(self) -> dict[str, str]:
        """Lines whose library is absent, as `GROUP: LINE`, and which one that is."""
        return {
            f"{group}: {name}": library
            for group, bench in self.groups.items()
            for name, library in bench.left_out.items()
        }

    def as_json(self) -> dict[str, Any]:
        about = {
            name: {
                "baseline": bench.baseline,
                "ms_of": bench.ms_of,
                "notes": list(bench.notes),
                "left_out": dict(bench.left_out),
            }
            for name, bench in self.groups.items()
        }
        lines = [line for bench in self.groups.values() for line in bench.as_json()]
        return {
            "machine": dict(self.machine),
            "n_texts": self.n_texts,
            "subject": dict(self.subject),
            "groups": about,
            "lines": lines,
        }


def measure(
    what: Sequence[str],
    texts: Sequence[str],
    *,
    subject: Subject | None,
    options: Mapping[str, Mapping[str, Any]],
    n_rounds: int = 5,
    watch: Watch = unwatched,
) -> BenchReport:
    """The groups called so. subject: whom contests are about; None where there are none. options:
    those of each group.
    """
    groups: dict[str, BenchResult] = {}
    about: dict[str, Any] = {}
    with all_cores():
        machine = machine_now()
        contests = [name for name in what if name in MODEL_BENCHES]
        if contests:
            assert subject is not None
            with open_benchmark(subject, texts) as benchmark:
                about = benchmark.as_json()
                for name in contests:
                    groups[name] = MODEL_BENCHES[name](
                        benchmark, n_rounds=n_rounds, watch=watch, **options.get(name, {})
                    )
        for name in what:
            if name in PART_BENCHES:
                groups[name] = PART_BENCHES[name](
                    texts, n_rounds=n_rounds, watch=watch, **options.get(name, {})
                )
    return BenchReport(machine, len(texts), {name: groups[name] for name in what}, about)


@contextmanager
def all_cores() -> Iterator[None]:
    """Gives torch a thread per core, as ONNX Runtime has it, whatever the environment says;
    opponents included.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(n_cores())
    try:
        yield
    finally:
        torch.set_num_threads(before)
