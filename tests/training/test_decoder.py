"""The decoder against whole passes, the search against all texts there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from made_pairs import WEIGHTINGS, make_network
from torch import Tensor

from litotes.core.errors import UserError
from litotes.encoder.layout import Layout
from litotes.encoder.operations import Encoding
from litotes.encoder.tokenizer import Frame
from litotes.training.translation.model import (
    AttentionTrace,
    Cache,
    EncoderDecoder,
    draw_weights,
    sinusoids,
)
from litotes.training.translation.pairs import PairSet, pack_sources
from litotes.training.translation.translator import length_divisor, search

KINDS = {
    **WEIGHTINGS,
    "post_norm": {"norm_first": False},
    "learned_positions": {"positions": "learned"},
    "untied": {"tied": "none"},
    "target_tied": {"tied": "target"},
}
CPU = torch.device("cpu")
CHANCE = np.random.default_rng(0)
SOURCES = [CHANCE.integers(11, size=n) for n in (3, 7, 1, 5)]
TARGETS = [CHANCE.integers(11, size=n) for n in (6, 2, 4, 9)]
PAIRS = PairSet(SOURCES, TARGETS, 0)


@pytest.fixture(params=KINDS)
def network(request: pytest.FixtureRequest) -> EncoderDecoder:
    return make_network(**KINDS[request.param])


def logits(network: EncoderDecoder, places: list[int], pairs: PairSet = PAIRS) -> Tensor:
    batch = pairs.pack(places, CPU)
    return network(batch.sources, batch.pieces, batch.layout)


def test_packed_equals_one_by_one_with_gradients(network: EncoderDecoder) -> None:
    network.double()
    together = logits(network, [0, 1, 2, 3])
    alone = torch.cat([logits(network, [place]) for place in range(4)])
    torch.testing.assert_close(together, alone, atol=1e-9, rtol=0)
    learned = [one for one in network.parameters() if one.requires_grad]
    wanted = torch.autograd.grad(alone.square().sum(), learned)
    assert len(learned) > 40
    found = torch.autograd.grad(together.square().sum(), learned)
    torch.testing.assert_close(found, wanted, atol=1e-9, rtol=1e-7)


@pytest.mark.parametrize("kind", ["softmax", "entmax", "learned"])
def test_gradients_are_those_of_differences(kind: str) -> None:
    """Of the decoder's attention, by the definition of a derivative, in float64."""
    network = make_network(**WEIGHTINGS[kind]).double()
    batch = PAIRS.pack([0, 2], CPU)
    encoding = network.read(batch.sources)
    hidden = encoding.hidden.detach().requires_grad_()
    block = network.decoder.layers[0]
    parameters = [block.across.query.weight, block.self_attention.key_value.weight]

    def loss(read: Tensor, *_: Tensor) -> Tensor:
        source = Encoding(read, encoding.layout, encoding.origin)
        return network.decoder(batch.pieces, batch.layout, source).square().sum()

    assert torch.autograd.gradcheck(loss, (hidden, *parameters), fast_mode=True)


def whole(network: EncoderDecoder, source: int, begun: Tensor) -> Tensor:
    """Log-probabilities of the piece after the last one, by a pass over all of them."""
    pairs = PairSet([SOURCES[source]], [np.append(begun.numpy(), 0)], 0)
    return logits(network, [0], pairs)[-1].log_softmax(-1)


@torch.no_grad()
def test_cached_steps_equal_the_whole_pass(network: EncoderDecoder) -> None:
    """Each text twice, as two hypotheses that share their source; then those of one text alone, in
    another order.
    """
    targets = torch.tensor([[2, 5, 7, 1, 4], [2, 9, 9, 3, 0], [2, 1, 8, 6, 6], [2, 5, 5, 5, 1]])
    encoding = network.read(PAIRS.pack([1, 3], CPU).sources)
    cache = network.decoder.begin(encoding, 2)
    for place in range(4):
        found, cache = network.step(targets[:, place], cache)
        wanted = [whole(network, (1, 1, 3, 3)[row], targets[row, : place + 1]) for row in range(4)]
        torch.testing.assert_close(found, torch.stack(wanted), atol=1e-5, rtol=0)
    rows, texts = torch.tensor([3, 2]), torch.tensor([1])
    found, _ = network.step(targets[rows, 4], cache.choose(rows, texts))
    wanted = [whole(network, 3, targets[row]) for row in rows]
    torch.testing.assert_close(found, torch.stack(wanted), atol=1e-5, rtol=0)


def test_no_piece_reads_what_comes_after(network: EncoderDecoder) -> None:
    before = logits(network, [3])
    changed = TARGETS[3].copy()
    changed[4:] = (changed[4:] + 1) % 11
    after = logits(network, [0], PairSet(SOURCES[3:], [changed], 0))
    torch.testing.assert_close(before[:4], after[:4], atol=1e-6, rtol=0)
    assert not torch.allclose(before[4:], after[4:], atol=1e-4)


def test_an_observer_sees_weights_that_are_distributions(network: EncoderDecoder) -> None:
    with torch.no_grad():
        network.decoder.layers[0].across.query.weight.mul_(20)
    batch = PAIRS.pack([0, 1], CPU)
    seen: list[AttentionTrace] = []
    watched = network(batch.sources, batch.pieces, batch.layout, observer=seen.append)
    torch.testing.assert_close(logits(network, [0, 1]), watched, atol=1e-4, rtol=0)
    kinds = ["decoder self", "across"] * 2
    assert [(one.kind, one.layer) for one in seen] == list(zip(kinds, (0, 0, 1, 1), strict=True))
    for one in seen:
        rows = one.weights[0, :, : batch.layout.lengths[0]]
        torch.testing.assert_close(rows.sum(-1), torch.ones(rows.shape[:-1]))
        if one.kind == "decoder self":
            assert float(one.weights.triu(1).abs().max()) == 0
        else:
            assert float(one.weights[0, :, :, 3:].abs().max()) == 0  # the first source has 3
    is_sparse = type(network.decoder.layers[0].across.weighting).__name__ != "Softmax"
    assert bool((seen[1].weights[1] == 0).any()) is is_sparse


def test_tables_are_tied_as_told() -> None:
    shared, apart = make_network(), make_network(tied="none")
    assert shared.decoder.embeddings.piece is shared.encoder.embeddings.piece
    for network, n_tables in ((shared, 1), (make_network(tied="target"), 2), (apart, 3)):
        assert len({id(one) for one in network.parameters() if one.shape == (11, 16)}) == n_tables
    with pytest.raises(UserError, match="cannot be one"):
        make_network(width=8)
    assert make_network(width=8, tied="target").spec.source_width == 16


def test_waves_are_those_of_the_paper() -> None:
    waves = sinusoids(7, 6) * 6**0.5
    assert float(waves[5, 2]) == pytest.approx(np.sin(5 / 10_000 ** (2 / 6)), abs=1e-6)
    assert float(waves[5, 3]) == pytest.approx(np.cos(5 / 10_000 ** (2 / 6)), abs=1e-6)
    assert not make_network().decoder.embeddings.position.weight.requires_grad


BEGIN, END = 0, 1
FRAME = Frame((BEGIN,), (), (END,))
N_PIECES, LIMITS = 4, [4, 3, 4]


def make_search(kind: str, *, sharp: float) -> tuple[EncoderDecoder, Encoding]:
    """Three sources and a vocabulary of four pieces. sharp: how sure the model is."""
    network = make_network(n_vocabulary=N_PIECES, **WEIGHTINGS[kind])
    with torch.no_grad():
        network.encoder.embeddings.piece.weight.mul_(sharp)
        network.bias[END] = -1.0  # texts of some length
        sources = [np.array(one) for one in ([0, 2, 3, 1], [0, 3, 1], [0, 3, 3, 2, 2, 1])]
        return network, network.read(pack_sources(sources, CPU))


def one_of(encoding: Encoding, text: int) -> Encoding:
    start, end = encoding.layout.bounds[text : text + 2].tolist()
    layout = Layout.of([end - start])
    return Encoding(encoding.hidden[start:end], layout, encoding.origin[start:end])


@torch.no_grad()
def log_probability(
    network: EncoderDecoder, encoding: Encoding, text: int, pieces: tuple[int, ...]
) -> float:
    """By a whole pass, without a cache, of one text alone."""
    given = torch.tensor([BEGIN, *pieces[:-1]])
    hidden = network.decoder(given, Layout.of([len(given)]), one_of(encoding, text))
    guesses = network.guess(hidden).log_softmax(-1)
    return float(guesses[torch.arange(len(pieces)), list(pieces)].sum())


@pytest.mark.parametrize(
    ("kind", "penalty"), [("softmax", 0.0), ("softmax", 1.0), ("learned", 1.0)]
)
def test_beams_find_the_best_of_all_texts(kind: str, penalty: float) -> None:
    network, encoding = make_search(kind, sharp=2.0)
    found = search(network, encoding, FRAME, LIMITS, n_beams=81, penalty=penalty)
    few = search(network, encoding, FRAME, LIMITS, n_beams=2, penalty=penalty)
    if penalty:  # beginnings that differ had to be kept apart
        assert max(len(one.pieces) for one in found) >= 2
    for number, limit in enumerate(LIMITS):
        worth = {}
        texts = (itertools.product((0, 2, 3), repeat=n) for n in range(limit))
        for text in itertools.chain.from_iterable(texts):
            total = log_probability(network, encoding, number, (*text, END))
            worth[text] = total / ((5 + len(text) + 1) / 6) ** penalty
        best = max(worth, key=lambda text: worth[text])
        assert found[number].pieces == best
        assert found[number].score == pytest.approx(worth[best], abs=1e-4)
        assert few[number].score <= worth[best] + 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_hypotheses_keep_their_own_pasts(seed: int) -> None:
    """What a text is worth, computed step by step with beams that overtake one another, is what it
    is worth computed whole; and a text alone is found as in a batch.
    """
    network, encoding = make_search("softmax", sharp=1.0)
    torch.manual_seed(seed)
    draw_weights(network)
    with torch.no_grad():
        network.bias[END] = -1.0
        for block in network.decoder.layers:
            block.self_attention.output.weight.mul_(8)
    found = search(network, encoding, FRAME, [6, 5, 6], n_beams=4, penalty=1.0)
    for number, one in enumerate(found):
        text = (*one.pieces, END)
        wanted = log_probability(network, encoding, number, text) / length_divisor(len(text), 1.0)
        assert one.score == pytest.approx(wanted, abs=1e-4)
        alone = one_of(encoding, number)
        (again,) = search(network, alone, FRAME, [(6, 5, 6)[number]], n_beams=4, penalty=1.0)
        assert again.pieces == one.pieces
        assert again.score == pytest.approx(one.score, abs=1e-5)


def test_a_penalty_lengthens() -> None:
    network, encoding = make_search("softmax", sharp=0.5)
    short, long = (
        search(network, encoding, FRAME, [6, 6, 6], n_beams=200, penalty=penalty)
        for penalty in (0.0, 3.0)
    )
    assert sum(len(one.pieces) for one in short) < sum(len(one.pieces) for one in long)


def test_greedy_takes_the_best_piece_at_every_step() -> None:
    network, encoding = make_search("softmax", sharp=3.0)
    for number, (limit, found) in enumerate(
        zip(LIMITS, search(network, encoding, FRAME, LIMITS), strict=True)
    ):
        begun: tuple[int, ...] = ()
        while not begun or begun[-1] != END:
            choices = range(N_PIECES) if len(begun) + 1 < limit else [END]
            worth = {n: log_probability(network, encoding, number, (*begun, n)) for n in choices}
            begun = (*begun, max(worth, key=lambda piece: worth[piece]))
        assert (*found.pieces, END) == begun
        assert found.score == pytest.approx(max(worth.values()), abs=1e-4)


def test_the_search_ends_with_as_many_texts_as_beams() -> None:
    """One that always ends needs one step for each of the beams it has by then, not six."""
    network, encoding = make_search("softmax", sharp=0.1)
    with torch.no_grad():
        network.bias[END] = 2.0
    steps: list[int] = []
    step = network.step

    def count(pieces: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        steps.append(len(pieces))
        return step(pieces, cache)

    network.step = count  # type: ignore[method-assign]
    search(network, encoding, FRAME, [9, 9, 9], n_beams=3, penalty=5.0)
    assert len(steps) == 2  # one whole text in the first step, at least two in the second
