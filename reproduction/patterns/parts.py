"""Four ways of attending to a made text, each a map whose rows are distributions, (query, key),
with its nuisances drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from litotes.core.numbers import Floats
from reproduction.patterns.random_texts import RandomText

Generator = np.random.Generator
Part = Callable[[RandomText, Generator], Floats]

_NEVER = -30.0  # as an affinity: e^-30


def columns(text: RandomText, rng: Generator) -> Floats:
    """Every query looks at the same few keys: delimiters, punctuation, a word wherever it comes;
    how much differs from query to query.
    """
    n = len(text)
    keys = [
        rng.choice(text.delimiters, size=rng.integers(1, len(text.delimiters) + 1), replace=False)
    ]
    if rng.random() < 0.4:
        keys.append(
            rng.choice(
                text.punctuation,
                size=rng.integers(1, min(3, len(text.punctuation)) + 1),
                replace=False,
            )
        )
    if rng.random() < 0.2:
        keys = [rng.integers(0, n, size=rng.integers(1, 7))]
    if rng.random() < 0.3:
        keys.append(np.flatnonzero(text.words == rng.choice(text.words)))
    places = rng.permutation(np.unique(np.concatenate(keys)))[: max(2, n // 10)]
    affinity = np.full((n, n), _NEVER)
    affinity[:, places] = rng.normal(scale=0.7, size=len(places)) + _noise(
        rng, (n, len(places)), 0.0, 1.6
    )
    return softmax(affinity)


def diagonal(text: RandomText, rng: Generator) -> Floats:
    """A line beside or on the diagonal, a soft band, or the phrase a piece belongs to; often two of
    them at once.
    """
    drawn = rng.permutation(3)[: rng.integers(1, 3)]
    near = sum((np.exp(_near(int(kind), text, rng)) for kind in drawn), np.zeros(1))
    return softmax(np.log(near + 1e-13) + _noise(rng, near.shape, 0.0, 0.8))


def _near(kind: int, text: RandomText, rng: Generator) -> Floats:
    n = len(text)
    place = np.arange(n)
    if kind == 0:  # a line: the previous, the same or the next piece
        ahead = place[None, :] - place[:, None] - rng.integers(-1, 2)
        return -np.abs(ahead) / rng.uniform(0.1, 1.0)
    if kind == 1:  # a band
        width = rng.uniform(0.8, max(1.2, n / 25))
        return -(((place[None, :] - place[:, None]) / width) ** 2) / 2
    same = text.phrases[:, None] == text.phrases[None, :]
    return np.where(same, rng.normal(scale=0.7, size=n)[None, :], _NEVER)


def blocks(text: RandomText, rng: Generator) -> Floats:
    """Every query looks at its own sentence, some of whose words may stand out; a little leaks into
    the others.
    """
    n = len(text)
    same = text.sentences[:, None] == text.sentences[None, :]
    salience = _noise(rng, (1, n), 0.0, 1.0)
    if rng.random() < 0.4:  # each sentence has a favourite: columns that end with the block
        for sentence in np.unique(text.sentences):
            salience[0, rng.choice(np.flatnonzero(text.sentences == sentence))] += rng.uniform(
                1.0, 2.5
            )
    return softmax(salience + _noise(rng, (n, n), 0.0, 0.9) - rng.uniform(2.5, 6.0) * ~same)


def content(text: RandomText, rng: Generator) -> Floats:
    """Whatever words mean to each other: salient words, hidden traits of queries and keys (or one
    that like pieces share), words that come again, what stands before or behind alone, noise.
    """
    n = len(text)
    rank = int(rng.integers(1, 7))
    asking, answering = (_smooth(rng.normal(size=(n, rank)), rng) for _ in range(2))
    answering = asking if rng.random() < 0.2 else answering
    affinity = (
        rng.uniform(0.0, 1.5) * asking @ answering.T / np.sqrt(rank)
        + _noise(rng, (1, n), 0.0, 1.2)
        + _noise(rng, (n, n), 0.1, 1.2)
    )
    if rng.random() < 0.3:
        again = (text.words[:, None] == text.words[None, :]) & ~np.eye(n, dtype=bool)
        affinity += rng.uniform(1.0, 3.0) * again
    if rng.random() < 0.15:
        before = np.tril(np.ones((n, n), dtype=bool))
        affinity -= rng.uniform(2.0, 5.0) * (before if rng.random() < 0.3 else ~before)
    return softmax(affinity)


PARTS: dict[str, Part] = {
    "columns": columns,
    "diagonal": diagonal,
    "blocks": blocks,
    "content": content,
}


def softmax(affinity: Floats) -> Floats:
    weights = np.exp(affinity - affinity.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True))


def _noise(rng: Generator, shape: tuple[int, ...], low: float, high: float) -> Floats:
    """Normal noise whose strength is itself drawn."""
    return rng.normal(scale=rng.uniform(low, high), size=shape)


def _smooth(traits: Floats, rng: Generator) -> Floats:
    """Neighbouring pieces are often alike: a running mean over some of them, of the same size as
    before. (piece, trait)
    """
    width = int(rng.integers(1, 6))
    padded = np.pad(traits, ((width - 1, 0), (0, 0)), mode="wrap").cumsum(0)
    running = padded[width - 1 :] - np.concatenate(
        [np.zeros((1, traits.shape[1])), padded[: len(traits) - 1]]
    )
    return np.asarray(running / np.sqrt(width))
