"""How fast this machine multiplies at all, in float32 and in int8: the best product that any
library shows in any of several shapes (probes.py).

What an encoder reaches is given as a share of it (`BenchResult.share_of_limit`). No encoder gets
all of it: softmax, norms and activations count no operations but take time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bench.lines import Line, time_lines
from bench.probes import float32_probes, int8_probes
from litotes.core.progress import Watch

N_ROUNDS = 15
"""The best of them is the limit: a busy machine must not make it smaller than it is."""
FLOAT32, INT8 = "limit-float32", "limit-int8"
LIMIT_OF = {"float32": FLOAT32, "int8": INT8}


def limits(group: str, *, n_threads: int, watch: Watch) -> tuple[Line, ...]:
    """Two lines whose operations a second are the limit of all others."""
    lines = []
    for name, make_probes in ((FLOAT32, float32_probes), (INT8, int8_probes)):
        with make_probes(n_threads) as probes:
            tried = time_lines(group, probes, n_texts=1, n_rounds=N_ROUNDS, watch=watch)
        lines.append(best_of(name, tried))
    return tuple(lines)


def best_of(name: str, tried: Sequence[Line]) -> Line:
    """The probe with the most operations a second in its best round, under a new name."""
    best = max(tried, key=lambda line: line.best_rate)
    return replace(best, name=name, shown_by=best.name)
