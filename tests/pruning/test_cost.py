"""Operations counted from lengths alone equal those torch counts while the encoder computes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from litotes.encoder.encoder import Encoder
from litotes.encoder.families import EncoderSpec
from litotes.encoder.packing import pack
from litotes.encoder.reshaping import keep_heads
from litotes.encoder.tokenizer import Pieces
from litotes.pruning.cost import evaluation_plan, flops

SPEC = EncoderSpec(
    "bert",
    n_vocabulary=60,
    width=32,
    n_layers=4,
    n_attention_heads=4,
    inner_width=40,
    n_positions=64,
)
LENGTHS = (1, 2, 9, 40, 17, 3)
SHARES = [0.9, 0.7, 0.5, 0.3]
KINDS: dict[str, dict[str, Any]] = {
    "dense": {},
    "entmax": {"weighting": "entmax"},
    "projected": {"embedding_width": 16, "has_projection": True},
    "walked again": {"n_layer_groups": 2, "group_size": 1},
    "relative": {"n_relative_buckets": 32},
    "disentangled": {"position_terms": ("c2p", "p2c"), "n_distance_buckets": 16, "farthest": 64},
    "one term of distances, pruned": {
        "position_terms": ("p2c",),
        "shares_projections": True,
        "farthest": 30,
        "pruning": "cascade",
        "pruning_options": {"schedule": SHARES, "final_heads": 0.4},
    },
    "gated and local": {
        "is_gated": True,
        "norm_first": True,
        "rotary_base": 100.0,
        "local_rotary_base": 20.0,
        "window": 8,
        "global_every": 2,
    },
    "authors": {"pruning": "cascade"},
    "shares and heads": {
        "pruning": "cascade",
        "pruning_options": {"schedule": SHARES, "final_heads": 0.4},
    },
    "restored": {"pruning": "cascade", "pruning_options": {"schedule": SHARES, "restore": True}},
    "fused": {"pruning": "cascade", "pruning_options": {"schedule": SHARES, "fuse": True}},
    "fused once": {
        "pruning": "cascade",
        "pruning_options": {"schedule": [1.0, 0.5, 0.5, 0.5], "fuse": True},
    },
    "learned": {"pruning": "learned"},
}


def counted(encoder: Encoder, lengths: tuple[int, ...], *, firsts_only: bool) -> int:
    """What torch sees go by; its fused attention kernel is taken apart into the products it stands
    for.
    """
    batch = pack([Pieces([1] * length, [0] * length, False) for length in lengths])
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        encoder(batch, firsts_only=firsts_only)
    return int(counter.get_total_flops())


@pytest.mark.slow
@pytest.mark.parametrize("firsts_only", [False, True])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_operations_are_those_torch_counts(kind: str, firsts_only: bool) -> None:
    torch.manual_seed(0)
    encoder = Encoder(replace(SPEC, **KINDS[kind])).eval()
    assert flops(encoder, LENGTHS, firsts_only=firsts_only).total == counted(
        encoder, LENGTHS, firsts_only=firsts_only
    )


@pytest.mark.slow
def test_attention_heads_gone_for_good_save_projections_too() -> None:
    encoder = keep_heads(Encoder(SPEC).eval(), [[0, 1, 2, 3], [1, 3], [0], [2]])
    cost = flops(encoder, LENGTHS)
    assert cost.total == counted(encoder, LENGTHS, firsts_only=False)
    assert [layer.qkv for layer in cost.layers] == [
        cost.layers[0].qkv // part for part in (1, 2, 4, 4)
    ]


def test_parts_of_a_text_worked_out_by_hand() -> None:
    encoder = Encoder(
        replace(
            SPEC,
            pruning="cascade",
            pruning_options={"schedule": [0.5, 0.5, 0.5, 0.2], "final_heads": 0.5},
        )
    )
    first, second, *_, last = flops(encoder, [10]).layers
    assert (first.n_pieces, second.n_pieces, last.n_pieces) == (10, 5, 5)
    assert first.qkv == 2 * 10 * 32 * 96
    assert first.output == 2 * 5 * 32 * 32
    assert last.feed_forward == 2 * 2 * 2 * 32 * 40
    assert first.attention == 2 * 2 * 10 * 10 * 32
    assert last.attention == 2 * 2 * 5 * 5 * 2 * 8  # two of four attention heads


def test_nothing_is_drawn_to_count() -> None:
    encoder = Encoder(replace(SPEC, pruning="learned", pruning_options={"explore": 1.0})).train()
    torch.manual_seed(0)
    state = torch.get_rng_state()
    assert evaluation_plan(encoder.pruning).pieces == encoder.pruning.shares  # type: ignore[union-attr]
    assert torch.equal(torch.get_rng_state(), state)
    assert encoder.pruning.training
    assert flops(encoder, LENGTHS) == flops(encoder.eval(), LENGTHS)
