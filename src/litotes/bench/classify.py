"""classify: texts to logits of the same weights, tokenizing included, by everybody who can.

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

from litotes.bench.asking import Asked, Logits, by_length, in_batches, longest_first
from litotes.bench.contest import OWN, PACKED, SHORT, Contest
from litotes.bench.limits import OF, limits
from litotes.core.progress import Watch, unwatched
from litotes.core.timing import Bench, Way, take_turns
from litotes.core.values import Task
from litotes.prune.cost import flops

BATCH = 32
PADDED = "hf-padded-32"


def classify(contest: Contest, *, n_rounds: int = 5, watch: Watch = unwatched) -> Bench:
    """All texts of the contest, in the order they come."""
    made: dict[str, Logits] = {}
    ways, left_out = contest.present(_makers(contest))
    lines = take_turns(
        "classify",
        ways,
        n_texts=len(contest.texts),
        n_rounds=n_rounds,
        watch=watch,
        first=made.__setitem__,
    )
    tasks = contest.subject.dense.classifier.tasks
    lines = tuple(
        replace(line, agreement=agreement(made[line.name], made[PACKED], tasks)) for line in lines
    )
    if contest.missing_for("limit") is None:
        lines += limits("classify", n_threads=contest.n_cores, watch=watch)
    return Bench(PADDED, lines, left_out, notes=contest.subject.notes)


def agreement(logits: Logits, reference: Logits, tasks: Mapping[str, Task]) -> float:
    """The share of answers that are the same, over texts and tasks. logits: (text, class of all
    tasks)
    """
    ends = np.cumsum([task.n_outputs for task in tasks.values()])[:-1]
    pairs = zip(np.split(logits, ends, axis=1), np.split(reference, ends, axis=1), strict=True)
    return round(float(np.mean([ours.argmax(1) == theirs.argmax(1) for ours, theirs in pairs])), 4)


def _makers(contest: Contest) -> dict[str, Callable[[], Way]]:
    """By name; a way is made only where its library is there."""
    makers: dict[str, Callable[[], Way]] = {
        PADDED: lambda: _padded(
            contest, in_batches(contest.transformers(), BATCH), BATCH, against=()
        ),
        "hf-1": lambda: _padded(contest, in_batches(contest.transformers(), 1), 1),
        "hf-sorted-32": lambda: _padded(
            contest, by_length(in_batches(contest.transformers(), BATCH)), BATCH, is_sorted=True
        ),
    }
    for precision, short in SHORT.items():
        for size in (BATCH, 1):
            makers[f"ort-{short}-{size}"] = partial(_onnx_runtime, contest, precision, size)
        makers[f"ort-{short}-1-workers"] = partial(_onnx_runtime_workers, contest, precision)
    makers[PACKED] = lambda: _own(
        contest, contest.packed(), "litotes-dense", against=(PADDED, "hf-1", "hf-sorted-32")
    )
    return makers | {name: partial(_own_workers, contest, name) for name in OWN}


def _onnx_runtime(contest: Contest, precision: str, size: int) -> Way:
    ask = contest.onnx_runtime(precision, n_threads=contest.n_cores)
    return _padded(contest, in_batches(ask, size), size, precision=precision)


def _onnx_runtime_workers(contest: Contest, precision: str) -> Way:
    return _padded(
        contest, contest.onnx_runtime_workers(precision, contest.n_cores), 1, precision=precision
    )


def _own_workers(contest: Contest, name: str) -> Way:
    return _own(contest, contest.own_workers(name, contest.n_cores), name, against=rivals(name))


def rivals(name: str) -> tuple[str, ...]:
    """The lines one of our files is compared with, the nearest first."""
    kind, precision = OWN[name]
    theirs = f"ort-{SHORT[precision]}-1"
    dense = (name.replace("pruned", "dense"),) if kind == "pruned" else ()
    return (f"{theirs}-workers", theirs, PADDED, *dense)


def _padded(
    contest: Contest,
    ask: Asked,
    size: int,
    *,
    precision: str = "float32",
    is_sorted: bool = False,
    against: tuple[str, ...] = (PADDED,),
) -> Way:
    order = longest_first(contest.texts) if is_sorted else range(len(contest.texts))
    cost = flops(
        contest.subject.dense.classifier.encoder,
        padded_to([contest.lengths[place] for place in order], size),
    ).total
    return Way(lambda _: ask(contest.texts), against=against, flops=cost, limit=OF[precision])


def padded_to(lengths: Sequence[int], size: int) -> list[int]:
    """Every length filled up to the longest of its batch."""
    batches = [lengths[start : start + size] for start in range(0, len(lengths), size)]
    return [max(batch) for batch in batches for _ in batch]


def _own(contest: Contest, ask: Asked, name: str, *, against: tuple[str, ...]) -> Way:
    kind, precision = OWN[name]
    classifier = contest.subject.of(kind).classifier
    cost = flops(classifier.encoder, contest.lengths, firsts_only=classifier.firsts_only).total
    return Way(lambda _: ask(contest.texts), against=against, flops=cost, limit=OF[precision])
