"""Beam search finds what a search of all texts finds; greedy search the best piece at each step."""

from __future__ import annotations

import itertools

import pytest
import torch
from made_pairs import WEIGHTINGS, make_network

from litotes.encoder.operations import Encoding
from litotes.training.translation.model import Cache, EncoderDecoder, draw_weights
from litotes.training.translation.pairs import pack_sources
from litotes.training.translation.translator import (
    Frame,
    length_divisor,
    search,
)

CPU = torch.device("cpu")
FRAME = Frame(begin=0, end=1)
N_PIECES, LIMITS = 4, [4, 3, 4]


def make_search(kind: str, *, sharp: float) -> tuple[EncoderDecoder, Encoding]:
    """Three sources and a vocabulary of four pieces. sharp: how sure the model is."""
    network = make_network(n_vocabulary=N_PIECES, **WEIGHTINGS[kind])
    with torch.no_grad():
        network.encoder.embeddings.piece.weight.mul_(sharp)
        network.bias[FRAME.end] = -1.0  # texts of some length
    sources = [torch.tensor(one).numpy() for one in ([0, 2, 3, 1], [0, 3, 1], [0, 3, 3, 2, 2, 1])]
    return network, network.read(pack_sources(sources, CPU))


@torch.no_grad()
def log_probability(
    network: EncoderDecoder, encoding: Encoding, text: int, pieces: tuple[int, ...]
) -> float:
    """By whole passes, without a cache, of one text alone."""
    start, end = encoding.layout.bounds[text : text + 2].tolist()
    lengths = type(encoding.layout).of([end - start])
    alone = Encoding(encoding.hidden[start:end], lengths, encoding.origin[start:end])
    given = torch.tensor([FRAME.begin, *pieces[:-1]])
    hidden = network.decoder(given, type(lengths).of([len(given)]), alone)
    guesses = network.guess(hidden).log_softmax(-1)
    return float(guesses[torch.arange(len(pieces)), list(pieces)].sum())


def all_texts(limit: int) -> list[tuple[int, ...]]:
    """Every text that ends, with its end, up to `limit` pieces."""
    others = [piece for piece in range(N_PIECES) if piece != FRAME.end]
    found = []
    for n in range(limit):
        found += [(*text, FRAME.end) for text in itertools.product(others, repeat=n)]
    return found


@pytest.mark.parametrize(
    ("kind", "penalty"), [("softmax", 0.0), ("softmax", 1.0), ("learned", 1.0)]
)
def test_beams_find_the_best_of_all_texts(kind: str, penalty: float) -> None:
    network, encoding = make_search(kind, sharp=2.0)
    found = search(network, encoding, FRAME, LIMITS, n_beams=81, penalty=penalty)
    if penalty:  # beginnings that differ had to be kept apart
        assert max(len(one.pieces) for one in found) >= 2
    for number, limit in enumerate(LIMITS):
        worth = {}
        for text in all_texts(limit):
            divisor = length_divisor(len(text), penalty)
            worth[text] = log_probability(network, encoding, number, text) / divisor
        best = max(worth, key=lambda text: worth[text])
        assert (*found[number].pieces, FRAME.end) == best
        assert found[number].score == pytest.approx(worth[best], abs=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_hypotheses_keep_their_own_pasts(seed: int) -> None:
    """What a text is worth, computed step by step with beams that overtake one another, is what it
    is worth computed whole.
    """
    network, encoding = make_search("softmax", sharp=1.0)
    torch.manual_seed(seed)
    draw_weights(network)
    with torch.no_grad():
        network.bias[FRAME.end] = -1.0
        for block in network.decoder.layers[:2]:
            block.self_attention.output.weight.mul_(8)
    found = search(network, encoding, FRAME, [6, 6, 6], n_beams=4, penalty=1.0)
    for number, one in enumerate(found):
        text = (*one.pieces, FRAME.end)
        wanted = log_probability(network, encoding, number, text) / length_divisor(len(text), 1.0)
        assert one.score == pytest.approx(wanted, abs=1e-4)


def test_a_penalty_lengthens() -> None:
    network, encoding = make_search("softmax", sharp=0.5)
    lengths = []
    for penalty in (0.0, 3.0):
        found = search(network, encoding, FRAME, [6, 6, 6], n_beams=400, penalty=penalty)
        lengths.append(sum(len(one.pieces) for one in found))
    assert lengths[0] < lengths[1]


def test_greedy_takes_the_best_piece_at_every_step() -> None:
    network, encoding = make_search("softmax", sharp=3.0)
    found = search(network, encoding, FRAME, LIMITS)
    for number, limit in enumerate(LIMITS):
        begun: tuple[int, ...] = ()
        total = 0.0
        while not begun or begun[-1] != FRAME.end:
            choices = range(N_PIECES) if len(begun) + 1 < limit else [FRAME.end]
            worth = {}
            for piece in choices:
                worth[piece] = log_probability(network, encoding, number, (*begun, piece))
            begun = (*begun, max(worth, key=lambda piece: worth[piece]))
            total = max(worth.values())
        assert (*found[number].pieces, FRAME.end) == begun
        assert found[number].score == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("n_beams", [1, 3])
def test_a_text_alone_is_found_as_in_a_batch(n_beams: int) -> None:
    network, encoding = make_search("entmax", sharp=2.0)
    together = search(network, encoding, FRAME, LIMITS, n_beams=n_beams, penalty=1.0)
    bounds = encoding.layout.bounds.tolist()
    for number, limit in enumerate(LIMITS):
        start, end = bounds[number], bounds[number + 1]
        layout = type(encoding.layout).of([end - start])
        alone = Encoding(encoding.hidden[start:end], layout, encoding.origin[start:end])
        (found,) = search(network, alone, FRAME, [limit], n_beams=n_beams, penalty=1.0)
        assert found.pieces == together[number].pieces
        assert found.score == pytest.approx(together[number].score, abs=1e-5)


def test_the_search_ends_with_as_many_texts_as_beams() -> None:
    """One that always ends needs one step for each of the beams it has by then, not six."""
    network, encoding = make_search("softmax", sharp=0.1)
    with torch.no_grad():
        network.bias[FRAME.end] = 2.0
    steps: list[int] = []
    step = network.step

    def count(pieces: torch.Tensor, cache: Cache) -> tuple[torch.Tensor, Cache]:
        steps.append(len(pieces))
        return step(pieces, cache)

    network.step = count  # type: ignore[method-assign]
    search(network, encoding, FRAME, [9, 9, 9], n_beams=3, penalty=5.0)
    assert len(steps) == 2  # one whole text in the first step, at least two in the second


def test_more_beams_are_never_worth_less_here() -> None:
    network, encoding = make_search("softmax", sharp=2.0)
    few = search(network, encoding, FRAME, LIMITS, n_beams=2, penalty=0.0)
    many = search(network, encoding, FRAME, LIMITS, n_beams=81, penalty=0.0)
    for one, other in zip(few, many, strict=True):
        assert other.score >= one.score - 1e-6
