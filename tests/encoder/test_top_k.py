"""How many keys are kept, which ones, and when."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from litotes.core.errors import UserError
from litotes.encoder.attention.top_k import BlockTopK, SelectiveSoftmax, TopK

HEADS = 2


def affinity_of(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(2))


def n_kept(weights: torch.Tensor) -> set[int]:
    return set((weights > 0).sum(-1).flatten().tolist())


@pytest.mark.parametrize(
    ("sparsity", "kept"), [(0.0, 20), (0.5, 10), (0.79, 5), (0.8, 4), (0.95, 1)]
)
def test_each_query_keeps_its_share_of_the_keys(sparsity: float, kept: int) -> None:
    assert n_kept(TopK(HEADS, sparsity=sparsity)(affinity_of(3, HEADS, 5, 20))) == {kept}


def test_the_share_is_one_of_the_live_keys() -> None:
    live = (torch.arange(10) < torch.tensor([10, 5, 1])[:, None])[:, None, None, :]
    weights = TopK(HEADS, sparsity=0.5)(affinity_of(3, HEADS, 4, 10), live)
    assert [n_kept(text) for text in weights] == [{5}, {3}, {1}]


def test_the_best_keys_are_kept_and_share_as_in_softmax() -> None:
    weights = TopK(1, sparsity=0.5)(torch.tensor([[[[1.0, 4.0, 2.0, 3.0]]]]))
    more, less = torch.tensor([4.0, 3.0]).softmax(0).tolist()
    assert weights.flatten().tolist() == pytest.approx([0.0, more, 0.0, less])


def test_of_equal_keys_the_earlier_ones_are_kept() -> None:
    weights = TopK(1, sparsity=0.5)(torch.ones(1, 1, 1, 40))
    assert (weights > 0).flatten().tolist() == [True] * 20 + [False] * 20


@pytest.mark.parametrize("kind", [TopK, BlockTopK])
def test_the_sparsity_rises_over_the_ramp_in_training_alone(kind: type[SelectiveSoftmax]) -> None:
    weighting = kind(HEADS, sparsity=0.8, ramp=0.5).train()
    risen = []
    for weighting.progress in (0.0, 0.25, 0.5, 1.0):
        risen.append(weighting.sparsity_now)
    assert risen == pytest.approx([0.0, 0.4, 0.8, 0.8])
    weighting.progress = 0.0
    assert n_kept(weighting(affinity_of(1, HEADS, 4, 20))) == {20}
    weighting.eval()
    assert weighting.sparsity_now == 0.8
    assert n_kept(weighting(affinity_of(1, HEADS, 4, 20))) == {4}


def test_blocks_are_kept_or_left_whole() -> None:
    weights = BlockTopK(HEADS, sparsity=0.5, block=4)(affinity_of(2, HEADS, 13, 16))
    kept = weights > 0
    assert n_kept(weights) == {8}
    by_block = kept.unflatten(-1, (4, 4))  # (text, attention_head, query, key_block, key)
    assert (by_block.all(-1) == by_block.any(-1)).all()
    for first in (1, 5, 9):  # the first query is a block of its own
        assert (kept[:, :, first : first + 4] == kept[:, :, first : first + 1]).all()


def test_a_block_is_judged_by_the_weight_of_all_its_queries() -> None:
    affinity = torch.zeros(1, 1, 3, 4)
    affinity[..., 1, 0] = 3.0  # one query is keen on the first two keys
    affinity[..., 1:, 2] = 2.5  # both are fairly keen on the last two
    kept = BlockTopK(1, sparsity=0.5, block=2)(affinity) > 0
    assert kept[0, 0, 1:].tolist() == [[False, False, True, True]] * 2


def test_a_last_block_may_be_short() -> None:
    affinity = torch.zeros(1, 1, 1, 5)
    affinity[..., 4] = 5.0
    weights = BlockTopK(1, sparsity=0.6, block=4)(affinity)
    assert weights.flatten().tolist() == [0.0, 0.0, 0.0, 0.0, 1.0]


def test_padding_has_no_say_in_the_choice() -> None:
    """Rows past a text's end fall into the last block of its queries."""
    weighting = BlockTopK(HEADS, sparsity=0.5, block=4)
    affinity = affinity_of(1, HEADS, 8, 8) * 3
    live = (torch.arange(8) < 6)[None, None, None, :]
    loud = affinity.clone()
    loud[:, :, 6:, :2] += 50
    alone = weighting(affinity[:, :, :6, :6])
    for padded in (affinity, loud):
        torch.testing.assert_close(weighting(padded, live)[:, :, :6, :6], alone)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"sparsity": 0.96}, "0.95"),
        ({"sparsity": -0.1}, "0.95"),
        ({"ramp": 2}, "ramp"),
        ({"block": 0}, "block"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(UserError, match=named):
        BlockTopK(HEADS, **options)
