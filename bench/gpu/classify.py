"""Pieces to labels: ours against padding and against the least one can do packed; by bucket, by
precision, and from strings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bench.agreement import agreement
from bench.batching import Logits
from bench.classify import padded_to
from bench.gpu import opponents
from bench.gpu.context import GpuBench, repeat_to, side_by_side
from bench.gpu.turns import Attempts, GpuGroup, Makers, time_in_guarded_turns
from bench.lines import BenchResult, Candidate, Line
from litotes.model.checkpoint import Model
from litotes.pruning.cost import flops

BATCHES = (64, 256)
PADDED = "hf-sdpa-padded"
NAIVE = "naive-packed"
KINDS = ("dense", "pruned", "cascade")
PRECISIONS = ("float32", "bfloat16", "float16")
N_STRINGS = 8192
"""Texts from strings to labels in a round: several chunks, so that one is cut into pieces while
another is computed.
"""
TOKENIZED = (
    "Texts are tokenized beforehand. Opponents find their batches on the device already; ours begin"
    " with lists of piece numbers and end with logits on the host."
)
SAME = (
    "Labels are compared with those that torch alone gives in float32 to the same model; its random"
    " head is set so that each label wins somewhere, which makes it easier to change one than a"
    " trained head would."
)


def classify(bench: GpuBench) -> GpuGroup:
    """The large encoder: all opponents, and ours with the bucket it chooses by itself."""
    makers: dict[str, Callable[[], Candidate]] = {}
    dense = bench.large["dense"]
    for size in BATCHES:
        makers[f"{PADDED}-b{size}"] = partial(_padded, bench, dense, size)
    for size in () if bench.is_quick else BATCHES:
        makers[f"{PADDED}-compiled-b{size}"] = partial(_padded, bench, dense, size, compiled=True)
    makers[f"{NAIVE}-b256"] = partial(_naive, bench, dense)
    makers |= _own_makers(bench, bench.large, KINDS)
    return _timed(bench, "classify", makers, bench.large)


def minilm(bench: GpuBench) -> GpuGroup:
    """The small encoder, with the stronger batch of the opponents."""
    dense = bench.small["dense"]
    makers: dict[str, Callable[[], Candidate]] = {
        f"{PADDED}-b256": partial(_padded, bench, dense, 256),
        f"{NAIVE}-b256": partial(_naive, bench, dense),
    }
    makers |= _own_makers(bench, bench.small, KINDS)
    return _timed(bench, "minilm", makers, bench.small)


def _own_makers(bench: GpuBench, models: Mapping[str, Model], kinds: tuple[str, ...]) -> Any:
    return {f"litotes-{kind}": partial(_own, bench, models[kind], kind) for kind in kinds}


def _timed(bench: GpuBench, group: str, makers: Makers, models: Mapping[str, Model]) -> GpuGroup:
    """With the share of labels that equal those of float32."""
    attempts = bench.attempts()
    logits: dict[str, Logits] = {}
    lines = time_in_guarded_turns(
        group,
        makers,
        attempts,
        n_texts=len(bench.texts),
        n_rounds=bench.n_rounds,
        watch=bench.watch,
        on_first=logits.__setitem__,
    )
    references = _references(bench, models, attempts)
    tasks = models["dense"].classifier.tasks
    compared = []
    for line in lines:
        reference = references.get(_kind_of(line.name))
        if reference is not None:
            line = replace(line, agreement=agreement(logits[line.name], reference, tasks))
        compared.append(line)
    result = BenchResult(
        f"{PADDED}-b256", tuple(compared), attempts.left_out, notes=(TOKENIZED, SAME)
    )
    return GpuGroup(result, attempts.failed)


def _references(
    bench: GpuBench, models: Mapping[str, Model], attempts: Attempts
) -> dict[str, Logits]:
    """What torch alone answers; times are kept where it cannot."""
    found = {}
    for name, model in models.items():
        reference = attempts.attempt(f"reference-{name}", partial(bench.reference, model))
        if reference is not None:
            found[name] = reference
    return found


def _kind_of(name: str) -> str:
    """The model a line computes with; opponents prune nothing."""
    return next((kind for kind in KINDS if name.startswith(f"litotes-{kind}")), "dense")


def _padded(bench: GpuBench, model: Model, size: int, *, compiled: bool = False) -> Candidate:
    act = opponents.padded(
        model,
        bench.pieces,
        size=size,
        device=bench.device,
        dtype=bench.dtype,
        is_compiled=compiled,
    )
    step = opponents.COMPILED_STEP if compiled else 1
    lengths = [length + -length % step for length in padded_to(bench.lengths, size)]
    return Candidate(act, against=(), flops=flops(model.classifier.encoder, lengths).total)


def _naive(bench: GpuBench, model: Model) -> Candidate:
    act = opponents.naive_packed(
        model, bench.pieces, size=256, device=bench.device, dtype=bench.dtype
    )
    cost = flops(model.classifier.encoder, bench.lengths).total
    return Candidate(act, against=(f"{PADDED}-b256",), flops=cost)


def _own(bench: GpuBench, model: Model, kind: str) -> Candidate:
    against = [f"{PADDED}-b256", f"{PADDED}-compiled-b256", f"{NAIVE}-b256"]
    if kind != "dense":
        against.append("litotes-dense")
    return Candidate(bench.ours(model), against=tuple(against), flops=bench.operations(model))


def buckets(bench: GpuBench) -> GpuGroup:
    """Ours by the largest bucket of pieces; pruned lines are compared with the dense one of the
    same bucket.
    """
    makers: dict[str, Callable[[], Candidate]] = {}
    for size in bench.buckets:
        for kind in KINDS:
            makers[f"litotes-{kind}-p{size}"] = partial(_own_bucket, bench, kind, size)
    attempts = bench.attempts()
    lines = time_in_guarded_turns(
        "buckets",
        makers,
        attempts,
        n_texts=len(bench.texts),
        n_rounds=bench.n_rounds,
        watch=bench.watch,
    )
    result = BenchResult(f"litotes-dense-p{bench.buckets[0]}", lines, attempts.left_out)
    return GpuGroup(result, attempts.failed)


def _own_bucket(bench: GpuBench, kind: str, size: int) -> Candidate:
    model = bench.large[kind]
    against = () if kind == "dense" else (f"litotes-dense-p{size}",)
    act = bench.ours(model, bucket=size)
    return Candidate(act, against=against, flops=bench.operations(model))


def precision(bench: GpuBench) -> GpuGroup:
    """Labels that change with the precision, of the large dense encoder and of a trained model."""
    models = {"large": bench.large["dense"], "trained": bench.trained_model}
    makers: dict[str, Callable[[], Candidate]] = {}
    for who, model in models.items():
        for name in PRECISIONS:
            makers[f"{who}-{name}"] = partial(_own_precision, bench, who, model, name)
    attempts = bench.attempts()
    references = _references(bench, models, attempts)
    facts: dict[str, dict[str, float]] = {}

    def compare(name: str, logits: Logits) -> None:
        who = name.partition("-")[0]
        if who in references:
            tasks = models[who].classifier.tasks
            facts[name] = differences(logits, references[who], tasks)

    lines = time_in_guarded_turns(
        "precision",
        makers,
        attempts,
        n_texts=len(bench.texts),
        n_rounds=bench.n_rounds,
        watch=bench.watch,
        on_first=compare,
    )
    return GpuGroup(
        BenchResult("large-float32", lines, attempts.left_out, notes=(SAME,)),
        attempts.failed,
        facts,
    )


def _own_precision(bench: GpuBench, who: str, model: Model, name: str) -> Candidate:
    against = () if name == "float32" else (f"{who}-float32",)
    return Candidate(bench.ours(model, precision=name), against=against)


def differences(logits: Logits, reference: Logits, tasks: Mapping[str, Any]) -> dict[str, float]:
    """Labels of 1,000 that differ, and how far logits lie apart at most; spread: the standard
    deviation of the reference's logits over the texts, to judge that by.
    """
    return {
        "differing_per_1000": round(1000 * (1 - agreement(logits, reference, tasks)), 1),
        "largest_difference": float(f"{np.abs(logits - reference).max():.3g}"),
        "spread": float(f"{reference.std(axis=0).mean():.3g}"),
    }


def strings(bench: GpuBench) -> GpuGroup:
    """From strings to answers, as `Predictor` gives them, beside the tokenizer alone and the
    encoder alone.
    """
    texts = repeat_to(bench.texts, len(bench.texts) if bench.is_quick else N_STRINGS)
    tokenizer = bench.loaded.tokenizer
    makers: dict[str, Callable[[], Candidate]] = {
        "tokenizing": lambda: Candidate(lambda _: tokenizer.encode(texts), against=()),
    }
    for who, models in {"large": bench.large, "minilm": bench.small}.items():
        makers[f"{who}-pieces"] = partial(_from_pieces, bench, models["dense"], texts)
        makers[f"{who}-strings"] = partial(_from_strings, bench, models["dense"], texts, who)
    attempts = bench.attempts()
    lines = time_in_guarded_turns(
        "strings",
        makers,
        attempts,
        n_texts=len(texts),
        n_rounds=min(bench.n_rounds, 3),
        watch=bench.watch,
    )
    result = BenchResult("tokenizing", lines, attempts.left_out, ms_of=f"{len(texts)} texts")
    return GpuGroup(result, attempts.failed, _shares_of_strings(lines))


def _from_pieces(bench: GpuBench, model: Model, texts: tuple[str, ...]) -> Candidate:
    runtime, pieces = bench.runtime(model), bench.loaded.tokenizer.encode(texts)
    return Candidate(lambda _: side_by_side(runtime.logits(pieces)), against=())


def _from_strings(bench: GpuBench, model: Model, texts: tuple[str, ...], who: str) -> Candidate:
    from litotes.prediction.predictor import Predictor

    predictor = Predictor(bench.runtime(model))
    return Candidate(lambda _: list(predictor.stream(texts)), against=(f"{who}-pieces",))


def _shares_of_strings(lines: tuple[Line, ...]) -> dict[str, dict[str, float]]:
    """What the parts would take alone, as shares of the whole; they overlap, so that the shares
    may add up to more than 1.
    """
    ms = {line.name: line.ms for line in lines}
    facts = {}
    for name, whole in ms.items():
        who, _, end = name.partition("-")
        if end == "strings":
            parts = {"tokenizing_share": "tokenizing", "encoder_share": f"{who}-pieces"}
            found = {fact: round(ms[part] / whole, 3) for fact, part in parts.items() if part in ms}
            facts[name] = found
    return facts
