"""growth: how cost grows with the batch and with the cores, tokenizing included.

`…-bN`: batches of N as texts come, each call with all cores. `…-cN`: N workers of one thread each,
as our files are always run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

from litotes.bench.asking import Asked, in_batches
from litotes.bench.contest import OWN, PACKED, SHORT, Contest
from litotes.core.progress import Watch, unwatched
from litotes.core.timing import Bench, Way, take_turns

SIZES = (1, 4, 16, 64)


def growth(
    contest: Contest, *, sizes: Sequence[int] = SIZES, n_rounds: int = 5, watch: Watch = unwatched
) -> Bench:
    """As many texts as the largest batch has."""
    texts = contest.texts[: max(sizes)]
    ways, left_out = contest.present(_by_batch(contest, texts, sizes) | _by_cores(contest, texts))
    lines = take_turns("growth", ways, n_texts=len(texts), n_rounds=n_rounds, watch=watch)
    return Bench(
        f"{PACKED}-b1", lines, left_out, ms_of=f"{len(texts)} texts", notes=contest.subject.notes
    )


def _by_batch(
    contest: Contest, texts: tuple[str, ...], sizes: Sequence[int]
) -> dict[str, Callable[[], Way]]:
    who: dict[str, Callable[[], Asked]] = {"hf": contest.transformers}
    who |= {
        f"ort-{short}": partial(contest.onnx_runtime, precision, n_threads=contest.n_cores)
        for precision, short in SHORT.items()
    }
    who[PACKED] = contest.packed
    shared = {name: cache(make) for name, make in who.items()}  # one session for all sizes
    return {
        f"{name}-b{size}": partial(_batches, make, size, texts, f"{name}-b1")
        for name, make in shared.items()
        for size in sizes
    }


def _batches(make: Callable[[], Asked], size: int, texts: tuple[str, ...], alone: str) -> Way:
    ask = in_batches(make(), size)
    return Way(lambda _: ask(texts), against=(alone,) if size > 1 else ())


def _by_cores(contest: Contest, texts: tuple[str, ...]) -> dict[str, Callable[[], Way]]:
    who: dict[str, Callable[[int], Asked]] = {}
    who |= {
        f"ort-{short}": partial(contest.onnx_runtime_workers, precision)
        for precision, short in SHORT.items()
    }
    who |= {name: partial(contest.own_workers, name) for name in OWN}
    counts = sorted(
        {
            *(
                2**power
                for power in range(contest.n_cores.bit_length())
                if 2**power <= contest.n_cores
            ),
            contest.n_cores,
        }
    )
    return {
        f"{name}-c{n}": partial(_workers, make, n, texts, f"{name}-c1")
        for name, make in who.items()
        for n in counts
    }


def _workers(
    make: Callable[[int], Asked], n_workers: int, texts: tuple[str, ...], alone: str
) -> Way:
    ask = make(n_workers)
    return Way(lambda _: ask(texts), against=(alone,) if n_workers > 1 else ())
