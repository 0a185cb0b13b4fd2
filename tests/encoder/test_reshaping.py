"""The same weights in another encoder: other seams, or fewer attention heads for good."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from litotes.core.errors import UserError
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import EncoderSpec
from litotes.encoder.layout import Batch
from litotes.encoder.packing import pack
from litotes.encoder.pretrained import (
    extra_tensors,
    load_extra_tensors,
    load_family_tensors,
    to_family_tensors,
)
from litotes.encoder.reshaping import keep_heads, rebuild_encoder
from litotes.encoder.tokenizer import Pieces

SIZES = {
    "n_vocabulary": 40,
    "width": 32,
    "n_layers": 3,
    "n_attention_heads": 4,
    "inner_width": 40,
    "n_positions": 64,
}
KEPT = ((0, 1, 2, 3), (2,), (0, 3))
FAMILIES: dict[str, dict[str, object]] = {
    "bert": {"n_segments": 2},
    "mpnet": {"n_relative_buckets": 8, "first_position": 2},
    "deberta-v2": {"position_terms": ("c2p", "p2c"), "farthest": 6},
    "modernbert": {
        "has_positions": False,
        "rotary_base": 100.0,
        "local_rotary_base": 20.0,
        "window": 4,
        "global_every": 2,
        "norm_first": True,
        "is_gated": True,
        "attention_bias": False,
    },
}


def encoder_of(family: str = "bert", **choices: object) -> Encoder:
    torch.manual_seed(0)
    encoder = Encoder(replace(EncoderSpec(family, **SIZES, **FAMILIES[family]), **choices))
    for parameter in encoder.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return encoder.eval()


def some_texts() -> Batch:
    generator = torch.Generator().manual_seed(1)
    texts = [torch.randint(0, 40, (n,), generator=generator).tolist() for n in (5, 1, 12)]
    return pack([Pieces(text, [0] * len(text), False) for text in texts])


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize(
    "choices", [{}, {"weighting": "entmax", "weighting_options": {"alpha": "learned"}}]
)
def test_compacted_equals_the_other_heads_set_to_zero(
    family: str, choices: dict[str, object]
) -> None:
    encoder, batch = encoder_of(family, **choices), some_texts()
    if choices:
        # heads that differ show whether each kept its own α
        for number, attention in enumerate(encoder.attentions):
            torch.nn.init.uniform_(attention.weighting.a, -2 + number, 2)
    small = keep_heads(encoder, KEPT)
    for block, kept in zip(encoder.blocks, KEPT, strict=True):
        weight = block.attention.output.weight.data.view(32, 4, 8)
        weight[:, [head for head in range(4) if head not in kept]] = 0
    torch.testing.assert_close(small(batch).hidden, encoder(batch).hidden, atol=1e-5, rtol=0)
    assert [block.attention.qkv.weight.shape[0] for block in small.blocks] == [96, 24, 48]


def test_more_heads_can_be_removed_later() -> None:
    encoder, batch = encoder_of(), some_texts()
    at_once = keep_heads(encoder, [[1], [2], [3]])
    in_turn = keep_heads(keep_heads(encoder, [[0, 1], [2, 3], [1, 3]]), [[1], [2], [3]])
    torch.testing.assert_close(in_turn(batch).hidden, at_once(batch).hidden)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_compacted_weights_are_saved_and_loaded_under_the_familys_names(family: str) -> None:
    small, batch = keep_heads(encoder_of(family), KEPT), some_texts()
    again = Encoder(EncoderSpec(**small.spec.as_json()))
    load_family_tensors(again, to_family_tensors(small), "test")
    torch.testing.assert_close(again.eval()(batch).hidden, small(batch).hidden)
    assert not small.spec.is_plain


@pytest.mark.parametrize(
    ("kept", "words"),
    [([[0], [1], [9]], "cannot keep"), ([[0], [], [1]], "cannot keep"), ([[0]], "3")],
)
def test_unknown_heads_are_refused(kept: list[list[int]], words: str) -> None:
    with pytest.raises(UserError, match=words):
        keep_heads(encoder_of(), kept)


def test_a_pruning_by_text_does_not_go_with_heads_gone_for_good() -> None:
    with pytest.raises(UserError, match="for good"):
        rebuild_encoder(
            keep_heads(encoder_of(), KEPT),
            pruning="cascade",
            pruning_options={"schedule": "linear", "final_heads": 0.5},
        )


def test_rebuilt_keeps_the_weights_and_changes_the_seam() -> None:
    encoder, batch = encoder_of(), some_texts()
    pruned = rebuild_encoder(
        encoder,
        pruning="learned",
        pruning_options={"shares": [0.5, 0.5, 0.5], "importance": "scorer", "restore": False},
    )
    assert pruned(batch).layout.n_pieces < encoder(batch).layout.n_pieces
    back = rebuild_encoder(pruned, pruning="none", pruning_options={})
    torch.testing.assert_close(back(batch).hidden, encoder(batch).hidden)


def test_what_a_pruning_learned_is_saved() -> None:
    options = {"importance": "scorer"}
    encoder = rebuild_encoder(encoder_of(), pruning="learned", pruning_options=options)
    torch.nn.init.normal_(encoder.pruning.scorers.weight)
    other = rebuild_encoder(encoder_of(), pruning="learned", pruning_options=options)
    load_extra_tensors(other, extra_tensors(encoder))
    assert torch.equal(other.pruning.scorers.weight, encoder.pruning.scorers.weight)
