"""profile: where the time of one text goes, by its length, on one thread: tokenizing, the parts of
the graph, and what is around them.

`around` is what is left: Python, the handing over of numbers, and ONNX Runtime between its
operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from bench.batching import LogitFunction
from bench.benchmark import OWN, SHORT, Benchmark, Makers
from bench.kernels import Call, profile_calls
from bench.limits import LIMIT_OF, limits
from bench.lines import BenchResult, Candidate, Line, time_lines
from bench.sized_texts import texts_of_length
from litotes.core.progress import N_COLD, Watch, ignore_progress
from litotes.pruning.cost import flops

LENGTHS = (8, 16, 32, 64, 128, 256, 512)
PARTS = (
    "tokenizing",
    "embeddings",
    "projections",
    "attention",
    "feed_forward",
    "selection",
    "head",
    "other",
    "around",
)
"""In the order a text meets them; a file need not have all."""
TOKENIZING = "tokenizing"
RUNS_A_ROUND = 8 + N_COLD


def profile(
    benchmark: Benchmark,
    *,
    lengths: Sequence[int] = LENGTHS,
    n_rounds: int = 5,
    watch: Watch = ignore_progress,
) -> BenchResult:
    """A text of each length: whole calls by our files and by ONNX Runtime's of the Hugging Face
    model, and the parts of ours.
    """
    tokenizer = benchmark.subject.dense.tokenizer
    texts = {}
    for length in lengths:
        if length <= tokenizer.max_pieces:
            (texts[length],) = texts_of_length(benchmark.texts, tokenizer, length, n_texts=1)
    candidates, left_out = benchmark.make_candidates(_makers(benchmark, texts))
    for length, text in texts.items():
        tokenize = _ignoring_argument(partial(tokenizer.encode, [text]))
        candidates[f"{TOKENIZING}-n{length}"] = Candidate(tokenize, against=())
    lines = time_lines(
        "profile", candidates, n_texts=1, n_rounds=n_rounds, n_runs=RUNS_A_ROUND, watch=watch
    )
    if benchmark.missing_for("litotes-dense") is None:
        lines = _with_parts(benchmark, lines, texts, watch)
        lines += limits("profile", n_threads=1, watch=watch)
    return BenchResult(
        lines[0].name, lines, left_out, ms_of="one text", notes=benchmark.subject.notes
    )


def _makers(benchmark: Benchmark, texts: Mapping[int, str]) -> Makers:
    # one session for all lengths of a file
    own = cache(partial(benchmark.own, n_threads=1))
    theirs = cache(partial(benchmark.onnx_runtime, n_threads=1))
    makers: Makers = {}
    for length, text in texts.items():
        for precision, short in SHORT.items():
            line = f"ort-{short}-n{length}"
            makers[line] = partial(_their_candidate, benchmark, theirs, precision, text, length)
        for name in OWN:
            line = f"{name}-n{length}"
            makers[line] = partial(_own_candidate, benchmark, own, name, text, length)
    return makers


def _their_candidate(
    benchmark: Benchmark,
    session: Callable[[str], LogitFunction],
    precision: str,
    text: str,
    length: int,
) -> Candidate:
    encoder = benchmark.subject.dense.classifier.encoder
    return Candidate(
        _ignoring_argument(partial(session(precision), [text])),
        against=(),
        flops=flops(encoder, [length]).total,
        limit=LIMIT_OF[precision],
    )


def _own_candidate(
    benchmark: Benchmark, session: Callable[[str], LogitFunction], name: str, text: str, length: int
) -> Candidate:
    kind, precision = OWN[name]
    classifier = benchmark.subject.of(kind).classifier
    cost = flops(classifier.encoder, [length], firsts_only=classifier.firsts_only)
    return Candidate(
        _ignoring_argument(partial(session(name), [text])),
        against=(f"ort-{SHORT[precision]}-n{length}",),
        flops=cost.total,
        limit=LIMIT_OF[precision],
    )


def _ignoring_argument(act: Callable[[], object]) -> Callable[[object], object]:
    return lambda _: act()


def _with_parts(
    benchmark: Benchmark, lines: Sequence[Line], texts: Mapping[int, str], watch: Watch
) -> tuple[Line, ...]:
    """Our lines with their parts.

    They are those of the quickest runs, for they are measured one after the other: what a busy
    moment added to one of them would be taken from another.
    """
    pieces = benchmark.subject.dense.tokenizer.encode(list(texts.values()))
    quickest = {line.name: min(line.ms_all_rounds) for line in lines}
    parts: dict[str, dict[str, float]] = {}
    for number, name in enumerate(OWN):
        watch("profile: files", number, len(OWN), name)
        calls = profile_calls(benchmark.own_file(name), pieces)
        for length, call in zip(texts, calls, strict=True):
            parts[f"{name}-n{length}"] = all_parts(quickest[f"{TOKENIZING}-n{length}"], call)
    return tuple(replace(line, parts=parts.get(line.name)) for line in lines)


def all_parts(tokenizing: float, call: Call) -> dict[str, float]:
    """All parts in order; what is left of the call stands around the kernels, and is nothing where
    they met a busier moment than it.
    """
    known = {
        TOKENIZING: tokenizing,
        **call.parts,
        "around": max(call.ms - sum(call.parts.values()), 0.0),
    }
    return {name: round(known[name], 4) for name in PARTS if name in known}
