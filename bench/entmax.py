"""entmax: affinities to sparse weights, α = 1.5.

The `entmax` package, exact by sorting and by bisection, against ours.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bench.lines import BenchResult, Candidate, time_lines
from litotes.core.progress import Watch, ignore_progress
from litotes.encoder.simplex import entmax as ours

LENGTHS = (128, 512)
N_ATTENTION_HEADS = 12
MOST_TEXTS = 4
SPREAD = 2.0
"""The affinities' standard deviation; those of fine-tuned encoders lie between 1 and 3."""


def entmax(
    texts: Sequence[str],
    *,
    most_texts: int = MOST_TEXTS,
    n_rounds: int = 5,
    watch: Watch = ignore_progress,
) -> BenchResult:
    """Normal affinities of 12 attention heads for up to 4 texts of 128 and of 512 pieces; what the
    texts say does not matter here.
    """
    n_texts = min(len(texts), most_texts)
    candidates: dict[str, Candidate] = {}
    left_out: dict[str, str] = {}
    for length in LENGTHS:
        generator = torch.Generator().manual_seed(0)
        shape = (n_texts, N_ATTENTION_HEADS, length, length)  # (text, attention_head, query, key)
        affinity = torch.randn(shape, generator=generator) * SPREAD
        candidates |= _ours(affinity)
        try:
            candidates |= _package(affinity)
        except ImportError:
            left_out |= dict.fromkeys(_package_lines(length), "entmax")
    lines = time_lines("entmax", candidates, n_texts=n_texts, n_rounds=n_rounds, watch=watch)
    return BenchResult(_package_lines(LENGTHS[0])[0], lines, left_out)


def _ours(affinity: Tensor) -> dict[str, Candidate]:
    length = affinity.shape[-1]
    sorting, bisection, backward = _package_lines(length)
    return {
        f"litotes-1.5-n{length}": Candidate(lambda _: ours(affinity), against=(sorting, bisection)),
        f"litotes-1.5-backward-n{length}": Candidate(
            _backward, lambda: ours(affinity.clone().requires_grad_()), against=(backward,)
        ),
    }


def _package(affinity: Tensor) -> dict[str, Candidate]:
    from entmax import entmax15, entmax_bisect

    sorting, bisection, backward = _package_lines(affinity.shape[-1])
    return {
        sorting: Candidate(lambda _: entmax15(affinity, dim=-1), against=()),
        bisection: Candidate(lambda _: entmax_bisect(affinity, alpha=1.5, n_iter=24), against=()),
        backward: Candidate(
            _backward, lambda: entmax15(affinity.clone().requires_grad_(), dim=-1), against=()
        ),
    }


def _package_lines(length: int) -> tuple[str, str, str]:
    return f"package-1.5-n{length}", f"package-bisect-n{length}", f"package-1.5-backward-n{length}"


def _backward(weights: Tensor) -> None:
    weights.backward(weights.detach())  # any gradient will do
