"""growth: how cost grows with the batch and with the cores, tokenizing included.

`…-bN`: batches of N as texts come, each call with all cores. `…-cN`: N workers of one thread each,
as our files are always run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

from litotes.bench.batching import LogitFunction, in_batches
from litotes.bench.benchmark import OWN, PACKED, SHORT, Benchmark
from litotes.bench.lines import BenchResult, Candidate, time_lines
from litotes.core.progress import Watch, unwatched

SIZES = (1, 4, 16, 64)


def growth(
    benchmark: Benchmark,
    *,
    sizes: Sequence[int] = SIZES,
    n_rounds: int = 5,
    watch: Watch = unwatched,
) -> BenchResult:
    """As many texts as the largest batch has."""
    texts = benchmark.texts[: max(sizes)]
    candidates, left_out = benchmark.present(
        _by_batch(benchmark, texts, sizes) | _by_cores(benchmark, texts)
    )
    lines = time_lines("growth", candidates, n_texts=len(texts), n_rounds=n_rounds, watch=watch)
    return BenchResult(
        f"{PACKED}-b1", lines, left_out, ms_of=f"{len(texts)} texts", notes=benchmark.subject.notes
    )


def _by_batch(
    benchmark: Benchmark, texts: tuple[str, ...], sizes: Sequence[int]
) -> dict[str, Callable[[], Candidate]]:
    who: dict[str, Callable[[], LogitFunction]] = {"hf": benchmark.transformers}
    who |= {
        f"ort-{short}": partial(benchmark.onnx_runtime, precision, n_threads=benchmark.n_cores)
        for precision, short in SHORT.items()
    }
    who[PACKED] = benchmark.packed
    shared = {name: cache(make) for name, make in who.items()}  # one session for all sizes
    return {
        f"{name}-b{size}": partial(_batches, make, size, texts, f"{name}-b1")
        for name, make in shared.items()
        for size in sizes
    }


def _batches(
    make: Callable[[], LogitFunction], size: int, texts: tuple[str, ...], alone: str
) -> Candidate:
    ask = in_batches(make(), size)
    return Candidate(lambda _: ask(texts), against=(alone,) if size > 1 else ())


def _by_cores(benchmark: Benchmark, texts: tuple[str, ...]) -> dict[str, Callable[[], Candidate]]:
    who: dict[str, Callable[[int], LogitFunction]] = {}
    who |= {
        f"ort-{short}": partial(benchmark.onnx_runtime_workers, precision)
        for precision, short in SHORT.items()
    }
    who |= {name: partial(benchmark.own_workers, name) for name in OWN}
    counts = sorted(
        {
            *(
                2**power
                for power in range(benchmark.n_cores.bit_length())
                if 2**power <= benchmark.n_cores
            ),
            benchmark.n_cores,
        }
    )
    return {
        f"{name}-c{n}": partial(_workers, make, n, texts, f"{name}-c1")
        for name, make in who.items()
        for n in counts
    }


def _workers(
    make: Callable[[int], LogitFunction], n_workers: int, texts: tuple[str, ...], alone: str
) -> Candidate:
    ask = make(n_workers)
    return Candidate(lambda _: ask(texts), against=(alone,) if n_workers > 1 else ())
