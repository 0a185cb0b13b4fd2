"""Attention maps of a known pattern, made by chance: what the network learns from.

A map is a mixture of four ways of attending to a made text, every row a distribution:

    A = Σ_part gate(part, query) · part(query, key)        part ∈ columns, diagonal, blocks, content

The class is what the shares of the parts were drawn for. One map in two is made effective, A⊥ = A V
V⁺ with made values V (Brunner et al. 2020, arXiv 1908.04211, §3): signed, its rows no longer sum to
1, and what V cannot see is gone. So a map is kept only where its pattern is still to be seen and no
other; the gap between the bounds keeps out maps whose class is a matter of taste.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from litotes.core.numbers import Floats
from litotes.explanation.analyses.patterns.classes import (
    BLOCK,
    BOTH,
    CLASSES,
    DIAGONAL,
    HETEROGENEOUS,
    VERTICAL,
)
from litotes.explanation.analyses.patterns.rules import evidence
from reproduction.patterns.parts import PARTS
from reproduction.patterns.random_texts import RandomText, random_text

Bounds = dict[str, tuple[float, float]]

SHARES: dict[str, Bounds] = {
    VERTICAL: {"columns": (0.2, 0.95), "diagonal": (0.0, 0.04), "blocks": (0.0, 0.15)},
    DIAGONAL: {"columns": (0.0, 0.12), "diagonal": (0.3, 0.95), "blocks": (0.0, 0.15)},
    BOTH: {"columns": (0.2, 0.7), "diagonal": (0.12, 0.65), "blocks": (0.0, 0.1)},
    BLOCK: {"columns": (0.0, 0.3), "diagonal": (0.0, 0.08), "blocks": (0.5, 0.95)},
    HETEROGENEOUS: {"columns": (0.0, 0.05), "diagonal": (0.0, 0.1), "blocks": (0.0, 0.15)},
}
"""Of every class, how much weight each part may have; content gets what is left."""

SEEN: dict[str, Bounds] = {
    VERTICAL: {"columns": (0.2, 1.0), "diagonal": (-1.0, 0.08)},
    DIAGONAL: {"columns": (-1.0, 0.18), "diagonal": (0.16, 1.0)},
    BOTH: {"columns": (0.22, 1.0), "diagonal": (0.12, 1.0)},
    BLOCK: {"columns": (-1.0, 0.35), "diagonal": (-1.0, 0.28), "blocks": (0.3, 1.0)},
    HETEROGENEOUS: {"columns": (-1.0, 0.17), "diagonal": (-1.0, 0.13), "blocks": (-1.0, 0.15)},
}
"""Of every class, the evidence (rules.py) a finished map must have, its sentences taken for the
texts of a pair.
"""

LENGTHS = (8, 128)
"""The lengths nearly all maps have; one in a hundred is longer."""

_LONGEST = 512
_WIDEST_VALUES = 64


def generate(
    n_maps: int, *, seed: int, lengths: tuple[int, int] = LENGTHS
) -> Iterator[tuple[Tensor, int]]:
    """Maps (query, key) with the number of their class, the classes in turn."""
    names = tuple(CLASSES)
    for number in range(n_maps):
        rng = np.random.default_rng([seed, number])
        yield (
            torch.from_numpy(
                random_map(names[number % len(names)], rng, lengths).astype(np.float32)
            ),
            number % len(names),
        )


def random_map(name: str, rng: np.random.Generator, lengths: tuple[int, int] = LENGTHS) -> Floats:
    """One map of a class, drawn again until it shows its pattern. (query, key)"""
    is_effective = rng.random() < 0.5
    while True:
        text = random_text(_length(rng, lengths), rng)
        if is_effective:
            # A column whose value is nothing leaves an effective map in which no pattern is left.
            meant = str(rng.choice([name, VERTICAL])) if name == HETEROGENEOUS else name
            weights = effective(mixture(meant, text, rng), text, rng)
        else:
            weights = mixture(name, text, rng)
        if shows(weights, name, text):
            return weights


def mixture(name: str, text: RandomText, rng: np.random.Generator) -> Floats:
    """The parts in the shares of a class, which differ a little from query to query.

    (query, key)
    """
    shares = {part: rng.uniform(*bounds) for part, bounds in SHARES[name].items()}
    total = sum(shares.values())
    shares["content"] = max(0.05, 1 - total)
    gates = np.array([*shares.values()])[:, None] * np.exp(
        rng.normal(scale=rng.uniform(0.0, 0.8), size=(len(shares), len(text)))
    )
    gates /= gates.sum(0)  # (part, query)
    return np.asarray(
        sum(
            gate[:, None] * PARTS[part](text, rng) for part, gate in zip(shares, gates, strict=True)
        )
    )


def effective(weights: Floats, text: RandomText, rng: np.random.Generator) -> Floats:
    """What of a map made values let through, A V V⁺ = A Q Qᵀ with V = Q R. (query, key)"""
    n = len(text)
    width = max(1, min(_WIDEST_VALUES, int(n * rng.uniform(0.25, 1.0))))
    by_word = rng.normal(size=(text.words.max() + 1, width))[text.words]
    # a word has much the same value wherever it stands
    values = by_word + rng.normal(scale=rng.uniform(0.05, 1.0), size=(n, width))
    values *= np.exp(rng.normal(scale=rng.uniform(0.0, 0.6), size=(n, 1)))
    values[text.delimiters] *= rng.uniform(0.02, 1.5)  # delimiters often have next to none
    basis, _ = np.linalg.qr(values)  # (piece, width)
    return np.asarray(weights @ basis @ basis.T)


def shows(weights: Floats, name: str, text: RandomText) -> bool:
    """Whether a map has the evidence its class asks for."""
    found = evidence(torch.from_numpy(weights), torch.from_numpy(text.sentences))
    return all(low <= getattr(found, what) <= high for what, (low, high) in SEEN[name].items())


def _length(rng: np.random.Generator, lengths: tuple[int, int]) -> int:
    low, high = lengths
    if lengths == LENGTHS and rng.random() < 0.01:
        low, high = high, _LONGEST
    return int(np.exp(rng.uniform(np.log(low), np.log(high + 1))))
