"""classify: texts to logits of the same weights, tokenizing included, by every library that can.

Scheduling is never credited to a graph. `ort-…-1` is what people write: one session with a thread
per core, one text at a time. `ort-…-1-workers` is the same file with our scheduling
(runtime/workers.py): a worker of one thread per core, texts of equal length together, still without
padding. Our lines are compared with both, and pruned lines with our own dense ones too. CTranslate2
and OpenVINO (rivals.py) get the batches that suit them best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bench.agreement import agreement, refusal
from bench.batching import (
    LogitFunction,
    Logits,
    in_batches,
    longest_first,
    sort_by_length,
    split,
)
from bench.benchmark import OWN, PACKED, SHORT, Benchmark, Makers
from bench.limits import LIMIT_OF, limits
from bench.lines import BenchResult, Candidate, Line, time_lines
from bench.rivals import RIVALS, TunedRival, tune
from litotes.core.errors import reason_of
from litotes.core.progress import Watch, ignore_progress
from litotes.core.values import Task
from litotes.pruning.cost import flops

BATCH = 32
PADDED = "hf-padded-32"


def classify(
    benchmark: Benchmark, *, n_rounds: int = 5, watch: Watch = ignore_progress
) -> BenchResult:
    """All texts of the benchmark, in their order."""
    candidates, left_out = benchmark.make_candidates(_their_makers(benchmark))
    rivals = make_rivals(benchmark)
    own, own_left_out = benchmark.make_candidates(_own_makers(benchmark, tuple(rivals.candidates)))
    logits: dict[str, Logits] = {}
    lines = time_lines(
        "classify",
        candidates | rivals.candidates | own,
        n_texts=len(benchmark.texts),
        n_rounds=n_rounds,
        watch=watch,
        on_first=logits.__setitem__,
    )
    kept, refused = check_answers(lines, logits, benchmark.subject.dense.classifier.tasks)
    if benchmark.missing_for("limit") is None:
        kept += limits("classify", n_threads=benchmark.n_cores, watch=watch)
    return BenchResult(
        PADDED,
        tuple(kept),
        left_out | rivals.left_out | own_left_out,
        notes=(*benchmark.subject.notes, *rivals.notes),
        refused=rivals.refused | refused,
    )


def check_answers(
    lines: Sequence[Line], logits: Mapping[str, Logits], tasks: Mapping[str, Task]
) -> tuple[list[Line], dict[str, str]]:
    """The lines with their agreement, less rivals that answer something else than our packed
    encoder, and why these are refused.
    """
    kept, refused = [], {}
    for line in lines:
        reason = None
        if line.name in RIVALS:
            _, precision = RIVALS[line.name]
            reason = refusal(logits[line.name], logits[PACKED], tasks, precision)
        if reason is not None:
            refused[line.name] = reason
            continue
        share = agreement(logits[line.name], logits[PACKED], tasks)
        kept.append(replace(line, agreement=share))
    return kept, refused


def _their_makers(benchmark: Benchmark) -> Makers:
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
    return makers


def _own_makers(benchmark: Benchmark, rivals: Sequence[str]) -> Makers:
    """rivals: those that can be measured."""
    makers: Makers = {PACKED: partial(_packed, benchmark)}
    for name in OWN:
        makers[name] = partial(_own_workers, benchmark, name, rivals)
    return makers


@dataclass(frozen=True)
class MadeRivals:
    """Opponents with an engine of their own: those that can be measured, and of all others the
    missing library or the reason. notes: the settings that suit them best.
    """

    candidates: dict[str, Candidate]
    left_out: dict[str, str]
    refused: dict[str, str]
    notes: tuple[str, ...]


def make_rivals(benchmark: Benchmark) -> MadeRivals:
    """Converts and tunes all whose library is installed."""
    candidates, left_out, refused, notes = {}, {}, {}, []
    for name in RIVALS:
        library = benchmark.missing_for(name)
        if library is not None:
            left_out[name] = library
            continue
        try:
            tuned = tune(
                partial(benchmark.rival, name), benchmark.pieces, n_cores=benchmark.n_cores
            )
        # not every encoder can be converted, and the libraries' errors have no common class
        except Exception as error:
            refused[name] = f"it cannot run this model ({reason_of(error)})"
            continue
        candidates[name] = _rival(benchmark, name, tuned)
        notes.append(f"{name} is fastest with {tuned.setting}.")
    return MadeRivals(candidates, left_out, refused, tuple(notes))


def _rival(benchmark: Benchmark, name: str, tuned: TunedRival) -> Candidate:
    library, precision = RIVALS[name]
    lengths = benchmark.lengths
    if library == "openvino":  # CTranslate2 leaves padding out of its products
        lengths = tuned.setting.padded(lengths)
    return _candidate(
        benchmark,
        benchmark.from_pieces(tuned.logits),
        against=(PADDED, f"ort-{SHORT[precision]}-1-workers"),
        cost=flops(benchmark.subject.dense.classifier.encoder, lengths).total,
        precision=precision,
    )


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


def _own_workers(benchmark: Benchmark, name: str, rivals: Sequence[str]) -> Candidate:
    logits_of = benchmark.own_workers(name, benchmark.n_cores)
    return _own(benchmark, logits_of, name, against=compared_with(name, rivals))


def compared_with(name: str, rivals: Sequence[str] = ()) -> tuple[str, ...]:
    """The lines one of our files is compared with: those of ONNX Runtime, the nearest first, our
    own dense one, and rivals of the same precision.
    """
    kind, precision = OWN[name]
    theirs = f"ort-{SHORT[precision]}-1"
    dense = (name.replace("pruned", "dense"),) if kind == "pruned" else ()
    others = [rival for rival in rivals if RIVALS[rival][1] == precision]
    return (f"{theirs}-workers", theirs, PADDED, *dense, *others)


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
