"""latency: what one text has to wait, of 12, 50 and 200 pieces: median and 99th percentile of warm
calls, tokenizing included.

`…-n50`: one thread, as each of several workers has it; `…-n50-all-cores`: one call that uses them
all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import cycle

from bench.batching import LogitFunction
from bench.benchmark import OWN, PACKED, SHORT, Benchmark, Makers
from bench.lines import BenchResult, Candidate, time_lines
from bench.sized_texts import texts_of_length
from litotes.core.progress import N_COLD, Watch, ignore_progress

LENGTHS = (12, 50, 200)
N_DIFFERENT = 4
"""Texts of each length, asked in turn: one alone would be warmer than any text ever is."""
N_RUNS = 40
"""Calls in a row: threads of other sessions, which spin for a while after their work, have gone to
rest by then.
"""
ALL_CORES = "-all-cores"


def latency(
    benchmark: Benchmark,
    *,
    lengths: Sequence[int] = LENGTHS,
    n_runs: int = N_RUNS,
    n_rounds: int = 5,
    watch: Watch = ignore_progress,
) -> BenchResult:
    """n_runs: warm calls a round."""
    makers: Makers = {}
    # one session for all lengths of a file
    own, theirs = cache(benchmark.own), cache(benchmark.onnx_runtime)
    tokenizer = benchmark.subject.dense.tokenizer
    for length in lengths:
        texts = texts_of_length(benchmark.texts, tokenizer, length, n_texts=N_DIFFERENT)
        makers |= _in_torch(benchmark, texts, f"-n{length}{ALL_CORES}")
        # on a machine with one core both are the same
        endings = {benchmark.n_cores: f"-n{length}{ALL_CORES}"} | {1: f"-n{length}"}
        for n_threads, ending in endings.items():
            their_session = partial(theirs, n_threads=n_threads)
            own_session = partial(own, n_threads=n_threads)
            makers |= _in_onnx_runtime(their_session, own_session, texts, ending)
    candidates, left_out = benchmark.make_candidates(makers)
    lines = time_lines(
        "latency", candidates, n_texts=1, n_rounds=n_rounds, n_runs=n_runs + N_COLD, watch=watch
    )
    return BenchResult(
        lines[0].name, lines, left_out, ms_of="one text", notes=benchmark.subject.notes
    )


def _in_torch(benchmark: Benchmark, texts: list[str], ending: str) -> Makers:
    return {
        f"hf{ending}": partial(_candidate, benchmark.transformers, texts),
        f"{PACKED}{ending}": partial(_candidate, benchmark.packed, texts, f"hf{ending}"),
    }


def _in_onnx_runtime(
    theirs: Callable[[str], LogitFunction],
    own: Callable[[str], LogitFunction],
    texts: list[str],
    ending: str,
) -> Makers:
    """theirs: by precision; own: by the name of the file."""
    makers: Makers = {}
    for precision, short in SHORT.items():
        makers[f"ort-{short}{ending}"] = partial(_candidate, partial(theirs, precision), texts)
    for name, (_, precision) in OWN.items():
        baseline = f"ort-{SHORT[precision]}{ending}"
        makers[f"{name}{ending}"] = partial(_candidate, partial(own, name), texts, baseline)
    return makers


def _candidate(make: Callable[[], LogitFunction], texts: list[str], *against: str) -> Candidate:
    logits_of, turn = make(), cycle(texts)
    return Candidate(lambda _: logits_of([next(turn)]), against=against)
