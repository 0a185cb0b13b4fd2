"""profile: where the time of one text goes, by its length, on one thread: tokenizing, the parts of
the graph, and what is around them.

`around` is what is left: Python, the handing over of numbers, and ONNX Runtime between its
operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from litotes.bench.asking import Asked
from litotes.bench.contest import OWN, SHORT, Contest
from litotes.bench.kernels import Call, calls
from litotes.bench.limits import OF, limits
from litotes.bench.sized_texts import texts_of_length
from litotes.core.progress import Watch, unwatched
from litotes.core.timing import N_COLD, Bench, Line, Way, take_turns
from litotes.prune.cost import flops

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
    contest: Contest,
    *,
    lengths: Sequence[int] = LENGTHS,
    n_rounds: int = 5,
    watch: Watch = unwatched,
) -> Bench:
    """A text of each length: whole calls by our files and by ONNX Runtime's of the Hugging Face
    model, and the parts of ours.
    """
    tokenizer = contest.subject.dense.tokenizer
    texts = {
        length: texts_of_length(contest.texts, tokenizer, length, n_texts=1)[0]
        for length in lengths
        if length <= tokenizer.max_pieces
    }
    ways, left_out = contest.present(_makers(contest, texts))
    ways |= {
        f"{TOKENIZING}-n{length}": Way(_encoding(contest, text), against=())
        for length, text in texts.items()
    }
    lines = take_turns(
        "profile", ways, n_texts=1, n_rounds=n_rounds, n_runs=RUNS_A_ROUND, watch=watch
    )
    if contest.missing_for("litotes-dense") is None:
        lines = _with_parts(contest, lines, texts, watch) + limits(
            "profile", n_threads=1, watch=watch
        )
    return Bench(lines[0].name, lines, left_out, ms_of="one text", notes=contest.subject.notes)


def _makers(contest: Contest, texts: Mapping[int, str]) -> dict[str, Callable[[], Way]]:
    """A session for all lengths of a file."""
    own, theirs = (
        cache(partial(contest.own, n_threads=1)),
        cache(partial(contest.onnx_runtime, n_threads=1)),
    )
    makers: dict[str, Callable[[], Way]] = {}
    for length, text in texts.items():
        for precision, short in SHORT.items():
            makers[f"ort-{short}-n{length}"] = partial(
                _their_way, contest, theirs, precision, text, length
            )
        for name in OWN:
            makers[f"{name}-n{length}"] = partial(_own_way, contest, own, name, text, length)
    return makers


def _their_way(
    contest: Contest, session: Callable[[str], Asked], precision: str, text: str, length: int
) -> Way:
    ask, cost = session(precision), flops(contest.subject.dense.classifier.encoder, [length]).total
    return Way(lambda _: ask([text]), against=(), flops=cost, limit=OF[precision])


def _own_way(
    contest: Contest, session: Callable[[str], Asked], name: str, text: str, length: int
) -> Way:
    kind, precision = OWN[name]
    ask, classifier = session(name), contest.subject.of(kind).classifier
    cost = flops(classifier.encoder, [length], firsts_only=classifier.firsts_only).total
    return Way(
        lambda _: ask([text]),
        against=(f"ort-{SHORT[precision]}-n{length}",),
        flops=cost,
        limit=OF[precision],
    )


def _encoding(contest: Contest, text: str) -> Callable[[object], object]:
    return lambda _: contest.subject.dense.tokenizer.encode([text])


def _with_parts(
    contest: Contest, lines: Sequence[Line], texts: Mapping[int, str], watch: Watch
) -> tuple[Line, ...]:
    """Our lines with their parts.

    They are those of the quickest runs, for they are measured one after the other: what a busy
    moment added to one of them would be taken from another.
    """
    pieces = contest.subject.dense.tokenizer.encode(list(texts.values()))
    quickest = {line.name: min(line.ms_all_rounds) for line in lines}
    parts: dict[str, dict[str, float]] = {}
    for number, name in enumerate(OWN):
        watch("profile: files", number, len(OWN), name)
        for length, call in zip(texts, calls(contest.own_file(name), pieces), strict=True):
            parts[f"{name}-n{length}"] = whole(quickest[f"{TOKENIZING}-n{length}"], call)
    return tuple(replace(line, parts=parts.get(line.name)) for line in lines)


def whole(tokenizing: float, call: Call) -> dict[str, float]:
    """All parts in order; what is left of the call stands around the kernels, and is nothing where
    they met a busier moment than it.
    """
    known = {
        TOKENIZING: tokenizing,
        **call.parts,
        "around": max(call.ms - sum(call.parts.values()), 0.0),
    }
    return {name: round(known[name], 4) for name in PARTS if name in known}
