"""growth: how cost grows with the batch and with the cores, tokenizing included.

`…-bN`: batches of N in the order of the texts, each call with all cores. `…-cN`: N workers of one
thread each, as our files are always run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

from bench.batching import LogitFunction, in_batches
from bench.benchmark import OWN, PACKED, SHORT, Benchmark, Makers
from bench.lines import BenchResult, Candidate, time_lines
from litotes.core.progress import Watch, ignore_progress

SIZES = (1, 4, 16, 64)


def growth(
    benchmark: Benchmark,
    *,
    sizes: Sequence[int] = SIZES,
    n_rounds: int = 5,
    watch: Watch = ignore_progress,
) -> BenchResult:
    """As many texts as the largest batch has."""
    texts = benchmark.texts[: max(sizes)]
    makers = _by_batch(benchmark, texts, sizes) | _by_cores(benchmark, texts)
    candidates, left_out = benchmark.make_candidates(makers)
    lines = time_lines("growth", candidates, n_texts=len(texts), n_rounds=n_rounds, watch=watch)
    return BenchResult(
        f"{PACKED}-b1", lines, left_out, ms_of=f"{len(texts)} texts", notes=benchmark.subject.notes
    )


def _by_batch(benchmark: Benchmark, texts: tuple[str, ...], sizes: Sequence[int]) -> Makers:
    models: dict[str, Callable[[], LogitFunction]] = {"hf": benchmark.transformers}
    with_all_cores = partial(benchmark.onnx_runtime, n_threads=benchmark.n_cores)
    for precision, short in SHORT.items():
        models[f"ort-{short}"] = partial(with_all_cores, precision)
    models[PACKED] = benchmark.packed
    makers: Makers = {}
    for name, make in models.items():
        make_once = cache(make)  # one session for all sizes
        for size in sizes:
            against = (f"{name}-b1",) if size > 1 else ()
            makers[f"{name}-b{size}"] = partial(_batches, make_once, size, texts, against)
    return makers


def _batches(
    make: Callable[[], LogitFunction], size: int, texts: tuple[str, ...], against: tuple[str, ...]
) -> Candidate:
    logits_of = in_batches(make(), size)
    return Candidate(lambda _: logits_of(texts), against=against)


def _by_cores(benchmark: Benchmark, texts: tuple[str, ...]) -> Makers:
    models: dict[str, Callable[[int], LogitFunction]] = {}
    for precision, short in SHORT.items():
        models[f"ort-{short}"] = partial(benchmark.onnx_runtime_workers, precision)
    for name in OWN:
        models[name] = partial(benchmark.own_workers, name)
    makers: Makers = {}
    for name, make in models.items():
        for n_workers in _worker_counts(benchmark.n_cores):
            against = (f"{name}-c1",) if n_workers > 1 else ()
            makers[f"{name}-c{n_workers}"] = partial(_workers, make, n_workers, texts, against)
    return makers


def _worker_counts(n_cores: int) -> list[int]:
    """1, 2, 4, … and all cores."""
    powers = [2**power for power in range(n_cores.bit_length())]
    return sorted({*powers, n_cores})


def _workers(
    make: Callable[[int], LogitFunction],
    n_workers: int,
    texts: tuple[str, ...],
    against: tuple[str, ...],
) -> Candidate:
    logits_of = make(n_workers)
    return Candidate(lambda _: logits_of(texts), against=against)
