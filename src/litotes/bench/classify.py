"""classify: texts to logits of the same weights, tokenizing included, by every library that can.

Scheduling is never credited to a graph. `ort-…-1` is what people write: one session with a thread
per core, one text at a time. `ort-…-1-workers` is the same file with our scheduling
(runtime/workers.py): a worker of one thread per core, texts of equal length together, still without
padding. Our lines are compared with both, and pruned lines with our own dense ones too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from litotes.bench.batching import (
    LogitFunction,
    Logits,
    in_batches,
    longest_first,
    sort_by_length,
    split,
)
from litotes.bench.benchmark import OWN, PACKED, SHORT, Benchmark, Makers
from litotes.bench.limits import LIMIT_OF, limits
from litotes.bench.lines import BenchResult, Candidate, time_lines
from litotes.core.progress import Watch, ignore_progress
from litotes.core.values import Task
from litotes.pruning.cost import flops

BATCH = 32
PADDED = "hf-padded-32"


def classify(
    benchmark: Benchmark, *, n_rounds: int = 5, watch: Watch = ignore_progress
) -> BenchResult:
    """All texts of the benchmark, in their order."""
    candidates, left_out = benchmark.make_candidates(_makers(benchmark))
    logits: dict[str, Logits] = {}
    lines = time_lines(
        "classify",
        candidates,
        n_texts=len(benchmark.texts),
        n_rounds=n_rounds,
        watch=watch,
        on_first=logits.__setitem__,
    )
    tasks, reference = benchmark.subject.dense.classifier.tasks, logits[PACKED]
    with_agreement = []
    for line in lines:
        share = agreement(logits[line.name], reference, tasks)
        with_agreement.append(replace(line, agreement=share))
    if benchmark.missing_for("limit") is None:
        with_agreement += limits("classify", n_threads=benchmark.n_cores, watch=watch)
    return BenchResult(PADDED, tuple(with_agreement), left_out, notes=benchmark.subject.notes)


def agreement(logits: Logits, reference: Logits, tasks: Mapping[str, Task]) -> float:
    """The share of answers that are the same, over texts and tasks. logits: (text, class of all
    tasks)
    """
    ends = np.cumsum([task.n_outputs for task in tasks.values()])[:-1]
    pairs = zip(np.split(logits, ends, axis=1), np.split(reference, ends, axis=1), strict=True)
    same = [ours.argmax(1) == theirs.argmax(1) for ours, theirs in pairs]
    return round(float(np.mean(same)), 4)


def _makers(benchmark: Benchmark) -> Makers:
    """By the names of the lines; a candidate is made only where its library is installed."""
    makers: Makers = {
        PADDED: partial(_transformers, benchmark, BATCH, against=()),
        "hf-1": partial(_transformers, benchmark, 1),
        "hf-sorted-32": partial(_transformers, benchmark, BATCH, is_sorted=True),
    }
    for precision, short in SHORT.items():
        for size in (BATCH, 1):
            makers[f"ort-{short}-{size}"] = partial(_onnx_runtime, benchmark, precision, size)
        makers[f"ort-{short}-1-workers"] = partial(_onnx_runtime_workers, benchmark, precision)
    makers[PACKED] = partial(_packed, benchmark)
    for name in OWN:
        makers[name] = partial(_own_workers, benchmark, name)
    return makers


def _transformers(
    benchmark: Benchmark,
    size: int,
    *,
    is_sorted: bool = False,
    against: tuple[str, ...] = (PADDED,),
) -> Candidate:
    logits_of = in_batches(benchmark.transformers(), size)
    if is_sorted:
        logits_of = sort_by_length(logits_of)
    return _padded(benchmark, logits_of, size, is_sorted=is_sorted, against=against)


def _onnx_runtime(benchmark: Benchmark, precision: str, size: int) -> Candidate:
    logits_of = benchmark.onnx_runtime(precision, n_threads=benchmark.n_cores)
    return _padded(benchmark, in_batches(logits_of, size), size, precision=precision)


def _onnx_runtime_workers(benchmark: Benchmark, precision: str) -> Candidate:
    logits_of = benchmark.onnx_runtime_workers(precision, benchmark.n_cores)
    return _padded(benchmark, logits_of, 1, precision=precision)


def _padded(
    benchmark: Benchmark,
    logits_of: LogitFunction,
    size: int,
    *,
    precision: str = "float32",
    is_sorted: bool = False,
    against: tuple[str, ...] = (PADDED,),
) -> Candidate:
    """A candidate that pads every batch of `size` texts to its longest."""
    lengths = benchmark.lengths
    if is_sorted:
        lengths = [lengths[place] for place in longest_first(benchmark.texts)]
    encoder = benchmark.subject.dense.classifier.encoder
    cost = flops(encoder, padded_to(lengths, size)).total
    return _candidate(benchmark, logits_of, against=against, cost=cost, precision=precision)


def padded_to(lengths: Sequence[int], size: int) -> list[int]:
    """Every length filled up to the longest of its batch."""
    padded: list[int] = []
    for batch in split(lengths, size):
        padded += [max(batch)] * len(batch)
    return padded


def _packed(benchmark: Benchmark) -> Candidate:
    against = (PADDED, "hf-1", "hf-sorted-32")
    return _own(benchmark, benchmark.packed(), "litotes-dense", against=against)


def _own_workers(benchmark: Benchmark, name: str) -> Candidate:
    logits_of = benchmark.own_workers(name, benchmark.n_cores)
    return _own(benchmark, logits_of, name, against=compared_with(name))


def compared_with(name: str) -> tuple[str, ...]:
    """The lines one of our files is compared with, the nearest first."""
    kind, precision = OWN[name]
    theirs = f"ort-{SHORT[precision]}-1"
    dense = (name.replace("pruned", "dense"),) if kind == "pruned" else ()
    return (f"{theirs}-workers", theirs, PADDED, *dense)


def _own(
    benchmark: Benchmark, logits_of: LogitFunction, name: str, *, against: tuple[str, ...]
) -> Candidate:
    kind, precision = OWN[name]
    classifier = benchmark.subject.of(kind).classifier
    firsts_only = classifier.firsts_only
    cost = flops(classifier.encoder, benchmark.lengths, firsts_only=firsts_only).total
    return _candidate(benchmark, logits_of, against=against, cost=cost, precision=precision)


def _candidate(
    benchmark: Benchmark,
    logits_of: LogitFunction,
    *,
    against: tuple[str, ...],
    cost: int,
    precision: str,
) -> Candidate:
    return Candidate(
        lambda _: logits_of(benchmark.texts),
        against=against,
        flops=cost,
        limit=LIMIT_OF[precision],
    )
