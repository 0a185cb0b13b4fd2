"""latency: what one text has to wait, of 12, 50 and 200 pieces: median and 99th percentile of warm
calls, tokenizing included.

`…-n50`: one thread, as each of several workers has it; `…-n50-all-cores`: one call that uses them
all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import cycle

from litotes.bench.asking import Asked
from litotes.bench.contest import OWN, PACKED, SHORT, Contest
from litotes.bench.sized_texts import texts_of_length
from litotes.core.progress import Watch, unwatched
from litotes.core.timing import N_COLD, Bench, Way, take_turns

LENGTHS = (12, 50, 200)
N_DIFFERENT = 4
"""Texts of each length, asked in turn: one alone would be warmer than any text ever is."""
N_RUNS = 40
"""Calls in a row: threads of other sessions, which spin for a while after their work, have gone to
rest by then.
"""
ALL_CORES = "-all-cores"


def latency(
    contest: Contest,
    *,
    lengths: Sequence[int] = LENGTHS,
    n_runs: int = N_RUNS,
    n_rounds: int = 5,
    watch: Watch = unwatched,
) -> Bench:
    """n_runs: warm calls a round."""
    # a session for all lengths of a file
    own, theirs = cache(contest.own), cache(contest.onnx_runtime)
    makers: dict[str, Callable[[], Way]] = {}
    for length in lengths:
        texts = texts_of_length(
            contest.texts, contest.subject.dense.tokenizer, length, n_texts=N_DIFFERENT
        )
        makers |= _in_torch(contest, texts, f"-n{length}{ALL_CORES}")
        for n_threads, ending in {
            contest.n_cores: f"-n{length}{ALL_CORES}",
            1: f"-n{length}",
        }.items():
            for precision, short in SHORT.items():
                makers[f"ort-{short}{ending}"] = partial(
                    _way, partial(theirs, precision, n_threads=n_threads), texts
                )
            for name, (_, precision) in OWN.items():
                rival = f"ort-{SHORT[precision]}{ending}"
                makers[f"{name}{ending}"] = partial(
                    _way, partial(own, name, n_threads=n_threads), texts, rival
                )
    ways, left_out = contest.present(makers)
    lines = take_turns(
        "latency", ways, n_texts=1, n_rounds=n_rounds, n_runs=n_runs + N_COLD, watch=watch
    )
    return Bench(lines[0].name, lines, left_out, ms_of="one text", notes=contest.subject.notes)


def _in_torch(contest: Contest, texts: list[str], ending: str) -> dict[str, Callable[[], Way]]:
    return {
        f"hf{ending}": partial(_way, contest.transformers, texts),
        f"{PACKED}{ending}": partial(_way, contest.packed, texts, f"hf{ending}"),
    }


def _way(make: Callable[[], Asked], texts: list[str], *rivals: str) -> Way:
    ask, turn = make(), cycle(texts)
    return Way(lambda _: ask([next(turn)]), against=rivals)
