"""Texts without words: where sentences and phrases end, where delimiters and punctuation stand.

What attention maps are made on.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor
from torch.nn.functional import cross_entropy

from litotes.core.numbers import Counts, Floats, confusion
from litotes.core.storage import sha256_of, write_bytes
from litotes.explanation.analyses.map_patterns import (
    BLOCK,
    BOTH,
    CLASSES,
    DIAGONAL,
    HETEROGENEOUS,
    VERTICAL,
    WEIGHTS,
    MapFeatures,
    PatternNetwork,
    evidence,
    map_features,
)

_MOST_SENTENCES = 4
_SHORTEST_SENTENCE = 4
_LONGEST_PHRASE = 9


@dataclass(frozen=True)
class RandomText:
    """sentences, phrases, words: the number of what each piece belongs to, (piece,); delimiters,
    punctuation: places of pieces.
    """

    sentences: Counts
    phrases: Counts
    words: Counts
    delimiters: Counts
    punctuation: Counts

    def __len__(self) -> int:
        return len(self.sentences)


def random_text(n_pieces: int, rng: np.random.Generator) -> RandomText:
    """[CLS], then one to four sentences (the texts of a pair among them), each closed by [SEP] or a
    full stop.
    """
    most = max(1, min(_MOST_SENTENCES, n_pieces // _SHORTEST_SENTENCE))
    n_sentences = int(rng.choice([1, 2, 2, 3, 4])) if most > 1 else 1
    ends = _ends(n_pieces, min(n_sentences, most), rng)
    is_delimiter = rng.random(len(ends)) < 0.5  # a full stop otherwise
    is_delimiter[-1] = True
    loose = rng.choice(n_pieces, size=1 + n_pieces // 16, replace=False)
    return RandomText(
        sentences=_numbered(n_pieces, ends),
        phrases=_numbered(n_pieces, _phrase_ends(n_pieces, rng)),
        # some come often
        words=(
            n_pieces * rng.uniform(0.5, 3.0) * rng.random(n_pieces) ** rng.uniform(1.0, 4.0)
        ).astype(np.int64),
        delimiters=np.concatenate([[0], ends[is_delimiter]]),
        punctuation=np.concatenate([ends[~is_delimiter], loose]),
    )


def _ends(n_pieces: int, n_parts: int, rng: np.random.Generator) -> Counts:
    """The last pieces of parts that are uneven, but none of them tiny."""
    lengths = rng.dirichlet(np.full(n_parts, 4.0)) * (
        n_pieces - n_parts * min(_SHORTEST_SENTENCE, n_pieces // n_parts)
    )
    ends = (
        np.cumsum(lengths + min(_SHORTEST_SENTENCE, n_pieces // n_parts)).round().astype(np.int64)
        - 1
    )
    ends[-1] = n_pieces - 1
    return ends


def _phrase_ends(n_pieces: int, rng: np.random.Generator) -> Counts:
    longest = int(rng.integers(3, _LONGEST_PHRASE + 1))
    return np.cumsum(rng.integers(1, longest + 1, size=n_pieces)) - 1


def _numbered(n_pieces: int, ends: Counts) -> Counts:
    return np.searchsorted(ends, np.arange(n_pieces))


# Four ways of attending to a made text, each a map whose rows are distributions, (query, key),
# with its nuisances drawn at random.

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


# Attention maps of a known pattern, made by chance: what the network learns from.
#
# A map is a mixture of four ways of attending to a made text, every row a distribution:
#
#     A = Σ_part gate(part, query) · part(query, key)        part ∈ columns, diagonal, blocks,
#     content
#
# The class is what the shares of the parts were drawn for. One map in two is made effective, A⊥ =
# A V
# V⁺ with made values V (Brunner et al. 2020, arXiv 1908.04211, §3): signed, its rows no longer
# sum to
# 1, and what V cannot see is gone. So a map is kept only where its pattern is still to be seen
# and no
# other; the gap between the bounds keeps out maps whose class is a matter of taste.

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


# Trains the pattern network on random maps and writes its weights into the package.
#
#     python -m reproduction.patterns [--out FILE]
#
# Two to three minutes on one core. Prints the accuracy on random maps that it has not seen, the
# confusion matrix and the file's hash, which SHA256 below must state.


SHA256 = "ff9ca91783c39dbe070a7ecc467b78e9f5bf11038a4c6844756e66b201fe8ea2"

SEED = 1
HELD_OUT_SEED = 2
N_MAPS = 10_000
N_HELD_OUT = 2_000
N_EPOCHS = 10

_BATCH_MAPS = 128
_RATE = 3e-3
_DECAY = 1e-2
_SMOOTHING = 0.05  # some of the maps could be given another class with a good conscience


@dataclass(frozen=True)
class LabelledMaps:
    """Random maps as the network sees them, with their classes (map,)."""

    features: MapFeatures
    classes: Tensor

    def __len__(self) -> int:
        return len(self.classes)


def label_maps(n_maps: int, *, seed: int) -> LabelledMaps:
    """Draws so many maps, the classes in turn."""
    grids, shares, classes = [], [], []
    for weights, number in generate(n_maps, seed=seed):
        features = map_features(weights[None])
        grids.append(features.grids)
        shares.append(features.shares)
        classes.append(number)
    return LabelledMaps(MapFeatures(torch.cat(grids), torch.cat(shares)), torch.tensor(classes))


def train(maps: LabelledMaps, *, n_epochs: int = N_EPOCHS, seed: int = SEED) -> PatternNetwork:
    """A network that has learned these maps.

    Half of the batches are turned by 180°, which changes no pattern.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = PatternNetwork().train()
        optimizer = torch.optim.AdamW(network.parameters(), weight_decay=_DECAY)
        n_steps = n_epochs * -(-len(maps) // _BATCH_MAPS)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=n_steps)
        for _ in range(n_epochs):
            for places in torch.randperm(len(maps)).split(_BATCH_MAPS):
                grids = maps.features.grids[places]
                grids = grids.flip(2, 3) if torch.rand(()) < 0.5 else grids
                loss = cross_entropy(
                    network(MapFeatures(grids, maps.features.shares[places])),
                    maps.classes[places],
                    label_smoothing=_SMOOTHING,
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
    return network.eval()


@torch.inference_mode()
def confusion_of(network: PatternNetwork, held_out: LabelledMaps) -> Counts:
    """How often a map of one class is taken for another. (class, predicted)"""
    predicted = network(held_out.features).argmax(1)
    return confusion(held_out.classes.numpy(), predicted.numpy(), len(CLASSES))


def main() -> None:
    """Trains, writes the weights and says how well it went."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=WEIGHTS, help="default: the file in the package"
    )
    file = parser.parse_args().out
    torch.set_num_threads(1)  # several threads add up in another order, and the hash changes
    network = train(label_maps(N_MAPS, seed=SEED))
    weights = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    write_bytes(file, save(weights, metadata={"format": "pt"}))
    counts = confusion_of(network, label_maps(N_HELD_OUT, seed=HELD_OUT_SEED))
    print(f"accuracy on {N_HELD_OUT} random maps: {counts.trace() / counts.sum():.3f}")
    for name, row in zip(CLASSES, counts, strict=True):
        print(f"{name:>18} " + " ".join(f"{count:5d}" for count in row))
    print(f"{file}: sha256 {sha256_of(file)}")


if __name__ == "__main__":
    main()
