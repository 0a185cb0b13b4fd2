"""classify: texts to logits of the same weights, tokenizing included, by every library that can.

Scheduling is never credited to a graph. `ort-…-1` is what people write: one session with a thread
per core, one text at a time. `ort-…-1-workers` is the same file with our scheduling
(runtime/workers.py): a worker of one thread per core, texts of equal length together, still without
padding. Our lines are compared with both, and pruned lines with our own dense ones too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from litotes.bench.batching import LogitFunction, Logits, in_batches, longest_first, sort_by_length
from litotes.bench.benchmark import OWN, PACKED, SHORT, Benchmark
from litotes.bench.limits import OF, limits
from litotes.bench.lines import BenchResult, Candidate, time_lines
from litotes.core.progress import Watch, unwatched
from litotes.core.values import Task
from litotes.prune.cost import flops

BATCH = 32
PADDED = "hf-padded-32"


def classify(benchmark: Benchmark, *, n_rounds: int = 5, watch: Watch = unwatched) -> BenchResult:
    """All texts of the benchmark, in the order they come."""
    made: dict[str, Logits] = {}
    candidates, left_out = benchmark.present(_makers(benchmark))
    lines = time_lines(
        "classify",
        candidates,
        n_texts=len(benchmark.texts),
        n_rounds=n_rounds,
        watch=watch,
        on_first=made.__setitem__,
    )
    tasks = benchmark.subject.dense.classifier.tasks
    lines = tuple(
        replace(line, agreement=agreement(made[line.name], made[PACKED], tasks)) for line in lines
    )
    if benchmark.missing_for("limit") is None:
        lines += limits("classify", n_threads=benchmark.n_cores, watch=watch)
    return BenchResult(PADDED, lines, left_out, notes=benchmark.subject.notes)


def agreement(logits: Logits, reference: Logits, tasks: Mapping[str, Task]) -> float:
    """The share of answers that are the same, over texts and tasks. logits: (text, class of all
    tasks)
    """
    ends = np.cumsum([task.n_outputs for task in tasks.values()])[:-1]
    pairs = zip(np.split(logits, ends, axis=1), np.split(reference, ends, axis=1), strict=True)
    return round(float(np.mean([ours.argmax(1) == theirs.argmax(1) for ours, theirs in pairs])), 4)


def _makers(benchmark: Benchmark) -> dict[str, Callable[[], Candidate]]:
    """By name; a candidate is made only where its library is there."""
    makers: dict[str, Callable[[], Candidate]] = {
        PADDED: lambda: _padded(
            benchmark, in_batches(benchmark.transformers(), BATCH), BATCH, against=()
        ),
        "hf-1": lambda: _padded(benchmark, in_batches(benchmark.transformers(), 1), 1),
        "hf-sorted-32": lambda: _padded(
            benchmark,
            sort_by_length(in_batches(benchmark.transformers(), BATCH)),
            BATCH,
            is_sorted=True,
        ),
    }
    for precision, short in SHORT.items():
        for size in (BATCH, 1):
            makers[f"ort-{short}-{size}"] = partial(_onnx_runtime, benchmark, precision, size)
        makers[f"ort-{short}-1-workers"] = partial(_onnx_runtime_workers, benchmark, precision)
    makers[PACKED] = lambda: _own(
        benchmark, benchmark.packed(), "litotes-dense", against=(PADDED, "hf-1", "hf-sorted-32")
    )
    return makers | {name: partial(_own_workers, benchmark, name) for name in OWN}


def _onnx_runtime(benchmark: Benchmark, precision: str, size: int) -> Candidate:
    ask = benchmark.onnx_runtime(precision, n_threads=benchmark.n_cores)
    return _padded(benchmark, in_batches(ask, size), size, precision=precision)


def _onnx_runtime_workers(benchmark: Benchmark, precision: str) -> Candidate:
    return _padded(
        benchmark,
        benchmark.onnx_runtime_workers(precision, benchmark.n_cores),
        1,
        precision=precision,
    )


def _own_workers(benchmark: Benchmark, name: str) -> Candidate:
    return _own(
        benchmark, benchmark.own_workers(name, benchmark.n_cores), name, against=compared_with(name)
    )


def compared_with(name: str) -> tuple[str, ...]:
    """The lines one of our files is compared with, the nearest first."""
    kind, precision = OWN[name]
    theirs = f"ort-{SHORT[precision]}-1"
    dense = (name.replace("pruned", "dense"),) if kind == "pruned" else ()
    return (f"{theirs}-workers", theirs, PADDED, *dense)


def _padded(
    benchmark: Benchmark,
    ask: LogitFunction,
    size: int,
    *,
    precision: str = "float32",
    is_sorted: bool = False,
    against: tuple[str, ...] = (PADDED,),
) -> Candidate:
    order = longest_first(benchmark.texts) if is_sorted else range(len(benchmark.texts))
    cost = flops(
        benchmark.subject.dense.classifier.encoder,
        padded_to([benchmark.lengths[place] for place in order], size),
    ).total
    return Candidate(
        lambda _: ask(benchmark.texts), against=against, flops=cost, limit=OF[precision]
    )


def padded_to(lengths: Sequence[int], size: int) -> list[int]:
    """Every length filled up to the longest of its batch."""
    batches = [lengths[start : start + size] for start in range(0, len(lengths), size)]
    return [max(batch) for batch in batches for _ in batch]


def _own(
    benchmark: Benchmark, ask: LogitFunction, name: str, *, against: tuple[str, ...]
) -> Candidate:
    kind, precision = OWN[name]
    classifier = benchmark.subject.of(kind).classifier
    cost = flops(classifier.encoder, benchmark.lengths, firsts_only=classifier.firsts_only).total
    return Candidate(
        lambda _: ask(benchmark.texts), against=against, flops=cost, limit=OF[precision]
    )
