"""What removal itself costs: importance on top of attention, selection within a pruned pass, and
launches and waits of a batch before and after.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from bench.gpu.classify import KINDS
from bench.gpu.context import GpuBench
from bench.gpu.inputs import Inputs, n_slots
from bench.gpu.models import copy_to
from bench.gpu.turns import GpuGroup, time_in_guarded_turns, wait_for_device
from bench.lines import BenchResult, Candidate
from litotes.encoder.packing import batches_by_budget
from litotes.encoder.tokenizer import Pieces
from litotes.model.checkpoint import Model
from litotes.model.runtime import compute_logits

N_CALLS = 20
MOST_PIECES = 16384
"""Of the bucket that attention with importance is measured with."""
IMPORTANCES = ("none", "received", "value")
PARTS = {
    "attention": r"attend|flash|fmha|softmax",
    "products": r"gemm|gemv|nvjet|cutlass|xmma|splitK|triton_tem",
    "selection": r"select|gather|keep_heads|add_received|put_back|fuse_kernel|sort|topk|scatter",
    "norms": r"norm",
}
"""Parts of a pass, and what the names of their kernels look like; the first that fits counts."""
OTHER = "other"
_LAUNCH = re.compile(r"cu(da)?(LaunchKernel|GraphLaunch)")
_WAIT = re.compile(r"cuda(StreamSynchronize|EventSynchronize|Memcpy)(_|$)")
"""The host waits for the device; the profiler's own wait for the whole device does not count."""
_COPY = re.compile(r"cudaMemcpy(Async)?(_|$)")


def importance(bench: GpuBench) -> GpuGroup:
    """Softmax attention over a bucket of texts of real lengths, with and without what each key
    received.
    """
    makers: dict[str, Callable[[], Candidate]] = {}
    for name in IMPORTANCES:
        makers[f"attention-{name}"] = partial(_attention, bench, name)
    attempts = bench.attempts()
    lengths = _lengths_of_a_bucket(bench)
    lines = time_in_guarded_turns(
        "importance",
        makers,
        attempts,
        n_texts=N_CALLS * len(lengths),
        n_batches=N_CALLS,
        n_rounds=bench.n_rounds,
        watch=bench.watch,
        clock=bench.clock,
    )
    ms = {line.name: line.ms for line in lines}
    alone = ms.get("attention-none")
    facts = {}
    for name in IMPORTANCES[1:]:
        line = f"attention-{name}"
        if alone is not None and line in ms:
            facts[line] = {"extra_share": round(ms[line] / alone - 1, 3)}
    ms_of = f"{len(lengths)} texts of {sum(lengths)} pieces, by the GPU's clock"
    result = BenchResult("attention-none", lines, attempts.left_out, ms_of=ms_of)
    return GpuGroup(result, attempts.failed, facts)


def _attention(bench: GpuBench, name: str) -> Candidate:
    from litotes.encoder.attention.weighting import RowRule
    from litotes.kernels.attention import Wanted, packed_attention

    lengths = _lengths_of_a_bucket(bench)
    draw = partial(Inputs.draw, lengths, device=bench.device, dtype=bench.dtype)
    packs = [draw(seed=seed).packed() for seed in range(4)]  # more than the cache holds
    wanted = Wanted(name, n_slots=n_slots(packs[0].tiles))
    attend = partial(
        packed_attention, rule=RowRule("softmax"), wanted=wanted, dropout=0.0, seed=None
    )

    def act(_: object) -> None:
        with torch.no_grad():
            for number in range(N_CALLS):
                attend(packs[number % len(packs)])

    return Candidate(act, against=() if name == "none" else ("attention-none",))


def _lengths_of_a_bucket(bench: GpuBench) -> list[int]:
    """Of the first texts that fill it."""
    lengths: list[int] = []
    for length in bench.lengths:
        if sum(lengths) + length > MOST_PIECES:
            break
        lengths.append(length)
    return lengths


def launches(bench: GpuBench) -> GpuGroup:
    """One batch, torch alone (before) and ours (after), as torch's profiler sees it; and the parts
    of one full bucket.
    """
    calls: dict[str, Callable[[], Callable[[], Any]]] = {}
    # what torch alone computes as one batch
    few = bench.pieces[: len(next(batches_by_budget(bench.lengths)))]
    many = bench.pieces[: len(_lengths_of_a_bucket(bench))]
    for kind in KINDS:
        model = bench.large[kind]
        calls[f"before-{kind}"] = partial(_plain_call, bench, model, few)
        calls[f"after-{kind}"] = partial(_own_call, bench, model, few)
        calls[f"bucket-{kind}"] = partial(_own_call, bench, model, many)
    attempts, facts = bench.attempts(), {}
    for number, (name, make) in enumerate(calls.items()):
        bench.watch("launches: profiles", number, len(calls), name)
        found = attempts.attempt(name, partial(_profile, make))
        if found is not None:
            facts[name] = found
    notes = (
        f"before and after: a batch of {len(few)} texts,"
        f" {sum(len(text.ids) for text in few)} pieces; bucket: {len(many)} texts,"
        f" {sum(len(text.ids) for text in many)} pieces.",
    )
    return GpuGroup(
        BenchResult("before-dense", (), attempts.left_out, notes=notes), attempts.failed, facts
    )


def _plain_call(bench: GpuBench, model: Model, texts: list[Pieces]) -> Callable[[], Any]:
    own = copy_to(model, bench.device, bench.dtype)
    return lambda: compute_logits(own, texts)


def _own_call(bench: GpuBench, model: Model, texts: list[Pieces]) -> Callable[[], Any]:
    runtime = bench.runtime(model)
    return lambda: runtime.logits(texts)


@dataclass(frozen=True)
class Event:
    """What a profile recorded: a call on the host, or work on the device."""

    name: str
    on_device: bool
    microseconds: float


def _profile(make: Callable[[], Callable[[], Any]]) -> dict[str, float]:
    from torch.profiler import ProfilerActivity, profile

    act = make()
    for _ in range(3):
        act()
    wait_for_device()
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities) as profiled:
        act()
    events = []
    for event in profiled.events() or ():
        on_device = event.device_type.name != "CPU"
        events.append(Event(event.name, on_device, event.time_range.elapsed_us()))
    return summarize(events)


def summarize(events: Iterable[Event]) -> dict[str, float]:
    """Launches, waits and copies by the host; kernels on the device, their milliseconds, and the
    share of each part.
    """
    counts: Counter[str] = Counter()
    times: dict[str, float] = defaultdict(float)
    for event in events:
        if not event.on_device:
            counts["launches"] += bool(_LAUNCH.match(event.name))
            counts["waits"] += bool(_WAIT.match(event.name))
            counts["copies"] += bool(_COPY.match(event.name))
        elif not event.name.startswith(("Memcpy", "Memset")):
            counts["kernels"] += 1
            times[part_of(event.name)] += event.microseconds
    total = sum(times.values())
    shares = {f"{part}_share": round(times[part] / total, 4) for part in times} if total else {}
    found = {name: counts[name] for name in ("launches", "waits", "copies", "kernels")}
    return found | {"device_ms": round(total / 1000, 4)} | shares


def part_of(kernel: str) -> str:
    """The part of a pass that a kernel belongs to, by its name."""
    for part, pattern in PARTS.items():
        if re.search(pattern, kernel, re.IGNORECASE):
            return part
    return OTHER
