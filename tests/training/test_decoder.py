"""The decoder against whole passes, the search against all texts there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from made_pairs import WEIGHTINGS, make_network
from torch import Tensor

from litotes.core.errors import UserError
from litotes.encoder.operations import Encoding
from litotes.training.translation.model import (
    AttentionTrace,
    Cache,
    EncoderDecoder,
    draw_weights,
    sinusoids,
)
from litotes.training.translation.pairs import PairSet, pack_sources
from litotes.training.translation.translator import (
    Frame,
    length_divisor,
    search,
)

KINDS = {
    **WEIGHTINGS,
    "post_norm": {"norm_first": False},
    "learned_positions": {"positions": "learned"},
    "untied": {"tied": "none"},
    "target_tied": {"tied": "target"},
}
CPU = torch.device("cpu")


@pytest.fixture(params=KINDS)
def network(request: pytest.FixtureRequest) -> EncoderDecoder:
    return make_network(**KINDS[request.param])


def make_pairs() -> PairSet:
    chance = np.random.default_rng(0)
    sources = [chance.integers(11, size=n) for n in (3, 7, 1, 5)]
    targets = [chance.integers(11, size=n) for n in (6, 2, 4, 9)]
    return PairSet(sources, targets, 0)


def logits(network: EncoderDecoder, pairs: PairSet, places: list[int]) -> Tensor:
    batch = pairs.pack(places, CPU)
    return network(batch.sources, batch.pieces, batch.layout)


def test_packed_equals_one_by_one(network: EncoderDecoder) -> None:
    pairs = make_pairs()
    together = logits(network, pairs, [0, 1, 2, 3])
    alone = torch.cat([logits(network, pairs, [place]) for place in range(4)])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)


def test_gradients_of_packed_equal_those_of_one_by_one(network: EncoderDecoder) -> None:
    network.double()
    pairs = make_pairs()
    logits(network, pairs, [0, 1, 2, 3]).square().sum().backward()
    together = [one.grad.clone() for one in network.parameters() if one.grad is not None]
    network.zero_grad()
    for place in range(4):
        logits(network, pairs, [place]).square().sum().backward()
    alone = [one.grad for one in network.parameters() if one.grad is not None]
    assert len(together) == len(alone) > 40
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-7)


@pytest.mark.parametrize("kind", ["softmax", "entmax", "learned"])
def test_gradients_are_those_of_differences(kind: str) -> None:
    """Of the decoder's attention, by the definition of a derivative, in float64."""
    network = make_network(**WEIGHTINGS[kind]).double()
    pairs = make_pairs()
    batch = pairs.pack([0, 2], CPU)
    hidden = network.read(batch.sources).hidden.detach().requires_grad_()
    encoding = network.read(batch.sources)
    block = network.decoder.layers[0]
    parameters = [block.across.query.weight, block.self_attention.key_value.weight]

    def loss(read: Tensor, *_: Tensor) -> Tensor:
        source = type(encoding)(read, encoding.layout, encoding.origin)
        return network.decoder(batch.pieces, batch.layout, source).square().sum()

    assert torch.autograd.gradcheck(loss, (hidden, *parameters), fast_mode=True)


def test_cached_steps_equal_the_whole_pass(network: EncoderDecoder) -> None:
    """Each text twice, as two hypotheses that share their source."""
    pairs = make_pairs()
    source = pairs.pack([1, 3], CPU).sources
    targets = torch.tensor([[2, 5, 7, 1, 4], [2, 9, 9, 3, 0], [2, 1, 8, 6, 6], [2, 5, 5, 5, 1]])
    encoding = network.read(source)
    cache = network.decoder.begin(encoding, 2)
    for place in range(targets.shape[1]):
        found, cache = network.step(targets[:, place], cache)
        for row in range(4):
            whole = PairSet([pairs.sources[1 if row < 2 else 3]], [targets[row].numpy()], 0)
            wanted = logits_after(network, whole, targets[row, : place + 1])
            torch.testing.assert_close(found[row], wanted, atol=1e-5, rtol=0)


def logits_after(network: EncoderDecoder, pairs: PairSet, begun: Tensor) -> Tensor:
    given = PairSet(pairs.sources, [np.append(begun.numpy(), 0)], 0)
    return logits(network, given, [0])[-1].log_softmax(-1)


def test_a_cache_follows_its_rows_and_texts() -> None:
    network = make_network()
    pairs = make_pairs()
    encoding = network.read(pairs.pack([1, 3], CPU).sources)
    _, cache = network.step(torch.tensor([2, 3, 4, 5]), network.decoder.begin(encoding, 2))
    wanted, _ = network.step(torch.tensor([7, 7, 7, 7]), cache)
    rows, texts = torch.tensor([3, 2]), torch.tensor([1])
    found, _ = network.step(torch.tensor([7, 7]), cache.choose(rows, texts))
    torch.testing.assert_close(found, wanted[rows], atol=1e-6, rtol=0)


def test_no_piece_reads_what_comes_after(network: EncoderDecoder) -> None:
    pairs = make_pairs()
    before = logits(network, pairs, [3])
    changed = pairs.targets[3].copy()
    changed[4:] = (changed[4:] + 1) % 11
    after = logits(network, PairSet(pairs.sources, [*pairs.targets[:3], changed], 0), [3])
    torch.testing.assert_close(before[:4], after[:4], atol=1e-6, rtol=0)
    assert not torch.allclose(before[4:], after[4:], atol=1e-4)


def test_an_observer_sees_weights_that_are_distributions(network: EncoderDecoder) -> None:
    pairs = make_pairs()
    batch = pairs.pack([0, 1], CPU)
    seen: list[AttentionTrace] = []
    unseen = network(batch.sources, batch.pieces, batch.layout)
    watched = network(batch.sources, batch.pieces, batch.layout, observer=seen.append)
    torch.testing.assert_close(unseen, watched, atol=1e-5, rtol=0)
    assert [(one.kind, one.layer) for one in seen] == [
        ("decoder self", 0),
        ("across", 0),
        ("decoder self", 1),
        ("across", 1),
    ]
    for one in seen:
        rows = one.weights[0, :, : batch.layout.lengths[0]]
        torch.testing.assert_close(rows.sum(-1), torch.ones(rows.shape[:-1]))
        if one.kind == "decoder self":
            assert float(one.weights.triu(1).abs().max()) == 0
        else:
            assert float(one.weights[0, :, :, 3:].abs().max()) == 0  # the first source has 3


def test_sparse_attention_has_zeros_and_softmax_none() -> None:
    for kind, has_zeros in (("softmax", False), ("entmax", True)):
        network = make_network(**WEIGHTINGS[kind])
        with torch.no_grad():
            network.decoder.layers[0].across.query.weight.mul_(20)
        batch = make_pairs().pack([1], CPU)
        seen: list[AttentionTrace] = []
        network(batch.sources, batch.pieces, batch.layout, observer=seen.append)
        assert bool((seen[1].weights == 0).any()) == has_zeros


def test_tied_tables_are_one() -> None:
    shared = make_network()
    assert shared.decoder.embeddings.piece is shared.encoder.embeddings.piece
    assert shared.output_table is shared.encoder.embeddings.piece.weight
    apart = make_network(tied="none")
    assert len({id(one) for one in apart.parameters() if one.shape == (11, 16)}) == 3


def test_a_table_of_another_width_cannot_be_shared() -> None:
    with pytest.raises(UserError, match="cannot be one"):
        make_network(width=8)
    assert make_network(width=8, tied="target").spec.source_width == 16


def test_waves_are_those_of_the_paper() -> None:
    waves = sinusoids(7, 6) * 6**0.5
    assert float(waves[5, 2]) == pytest.approx(np.sin(5 / 10_000 ** (2 / 6)), abs=1e-6)
    assert float(waves[5, 3]) == pytest.approx(np.cos(5 / 10_000 ** (2 / 6)), abs=1e-6)
    network = make_network()
    assert not network.decoder.embeddings.position.weight.requires_grad


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
