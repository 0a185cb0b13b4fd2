"""The same weights in another encoder: other seams, fewer attention heads or layers, narrower."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny_exports
import torch
from tiny_exports import KINDS

from litotes.core.errors import UserError
from litotes.encoder import pretrained
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
from litotes.encoder.reshaping import (
    evenly_spaced,
    keep_heads,
    keep_layers,
    layers_to_keep,
    narrow,
    rebuild_encoder,
)
from litotes.encoder.tokenizer import Pieces

KEPT = ((0, 1, 2, 3), (2,), (0, 3))
FAMILIES = ("bert", "mpnet", "deberta-v2", "modernbert")


def encoder_of(family: str = "bert", **choices: Any) -> Encoder:
    return tiny_exports.encoder_of(**KINDS[family] | choices).eval()


def some_texts() -> Batch:
    generator = torch.Generator().manual_seed(1)
    texts = [torch.randint(0, 40, (n,), generator=generator).tolist() for n in (5, 1, 12)]
    return pack([Pieces(text, [0] * len(text), False) for text in texts])


@pytest.mark.parametrize("family", FAMILIES)
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


@pytest.mark.parametrize("family", FAMILIES)
def test_compacted_weights_are_saved_and_can_lose_more_heads_later(family: str) -> None:
    whole, batch = encoder_of(family), some_texts()
    small = keep_heads(whole, KEPT)
    again = Encoder(EncoderSpec(**small.spec.as_json()))
    load_family_tensors(again, to_family_tensors(small), "test")
    torch.testing.assert_close(again.eval()(batch).hidden, small(batch).hidden)
    assert not small.spec.is_plain
    at_once, in_turn = (keep_heads(one, [[1], [2], [3]]) for one in (whole, small))
    torch.testing.assert_close(in_turn(batch).hidden, at_once(batch).hidden)


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
    options = {"shares": [0.5, 0.5, 0.5], "importance": "scorer", "restore": False}
    pruned, other = (
        rebuild_encoder(encoder, pruning="learned", pruning_options=options) for _ in range(2)
    )
    assert pruned(batch).layout.n_pieces < encoder(batch).layout.n_pieces
    back = rebuild_encoder(pruned, pruning="none", pruning_options={})
    torch.testing.assert_close(back(batch).hidden, encoder(batch).hidden)
    torch.nn.init.normal_(pruned.pruning.scorers.weight)
    load_extra_tensors(other, extra_tensors(pruned))  # what a pruning learned is saved
    assert torch.equal(other.pruning.scorers.weight, pruned.pruning.scorers.weight)
    with pytest.raises(UserError, match=r"encoder\.pruning\.scorers\.weight"):
        load_extra_tensors(other, {})


# Fewer layers, fewer columns


def test_layers_are_spaced_evenly_and_end_with_the_last() -> None:
    assert evenly_spaced(3, of=6) == [1, 3, 5]
    assert evenly_spaced(6, of=12) == [1, 3, 5, 7, 9, 11]
    assert evenly_spaced(4, of=6) == [1, 2, 4, 5]
    assert evenly_spaced(1, of=6) == [5]
    assert evenly_spaced(6, of=6) == list(range(6))


def test_layers_that_see_less_stay_among_their_kind(tiny: pretrained.Pretrained) -> None:
    spec = replace(tiny.encoder.spec, n_layers=22, window=8, global_every=3, norm_first=True)
    kept = layers_to_keep(spec, 6)
    assert kept[0] == 0
    assert kept == sorted(set(kept))
    assert [spec.is_local(old) for old in kept] == [spec.is_local(new) for new in range(6)]
    assert layers_to_keep(spec, 22) == list(range(22))
    assert layers_to_keep(replace(spec, window=0, norm_first=False), 11) == evenly_spaced(11, of=22)


def test_a_layer_does_not_become_another_kind(tiny: pretrained.Pretrained) -> None:
    encoder = deep(tiny, window=8, global_every=2)
    with pytest.raises(UserError, match="sees the whole text"):
        keep_layers(encoder, [1, 3])
    assert keep_layers(encoder, [0, 3]).spec.n_layers == 2


def deep(tiny: pretrained.Pretrained, **choices: object) -> Encoder:
    torch.manual_seed(1)
    return Encoder(replace(tiny.encoder.spec, n_layers=4, **choices)).eval()  # type: ignore[arg-type]


def test_kept_layers_compute_as_they_did(tiny: pretrained.Pretrained) -> None:
    encoder = deep(tiny)
    batch = pack(tiny.tokenizer.encode(["great tea", "a bad queue, is it not?"]))
    small = keep_layers(encoder, [1, 3])
    hidden = encoder.embeddings(batch)
    hidden = encoder.walk(hidden, batch.layout, start=1, stop=2).hidden
    hidden = encoder.walk(hidden, batch.layout, start=3).hidden
    torch.testing.assert_close(small(batch).hidden, hidden)
    assert small.spec.n_layers == 2


def test_shared_layers_are_walked_less_often(tiny: pretrained.Pretrained) -> None:
    albert = deep(tiny, n_layer_groups=1)
    small = keep_layers(albert, [1, 3])
    assert (small.spec.n_layers, small.spec.n_blocks) == (2, 1)
    with pytest.raises(UserError, match="4 layers"):
        keep_layers(albert, [4])


@pytest.mark.parametrize("relative", [0, 8])
def test_the_most_used_columns_heads_and_units_stay(
    relative: int, tiny: pretrained.Pretrained
) -> None:
    encoder = deep(tiny, n_relative_buckets=relative)
    used, heads = list(range(3, 27)), [0, 1, 3]  # 24 of 32 columns, 3 of 4 attention heads
    with torch.no_grad():
        for number in range(4):
            block = encoder.block(number)
            block.attention.qkv.weight[:, used] *= 10
            block.attention.qkv.weight.view(3, 4, 8, 32)[2, heads] *= 10
            block.inner.weight[12:] *= 10  # 36 of 48 units
    small = narrow(encoder, 24)
    spec = small.spec
    assert (spec.width, spec.n_attention_heads, spec.head_width, spec.inner_width) == (24, 3, 8, 36)
    assert torch.equal(small.embeddings.piece.weight, encoder.embeddings.piece.weight[:, used])
    wide, slim = encoder.block(2), small.block(2)
    assert torch.equal(slim.inner.weight, wide.inner.weight[12:][:, used])
    assert torch.equal(slim.outer.weight, wide.outer.weight[used][:, 12:])
    value = wide.attention.qkv.weight.view(3, 4, 8, 32)[:, heads].flatten(0, 2)[:, used]
    assert torch.equal(slim.attention.qkv.weight, value)
    if relative:
        assert small.relative_bias is not None
        assert encoder.relative_bias is not None
        assert torch.equal(
            small.relative_bias.by_bucket.weight, encoder.relative_bias.by_bucket.weight[:, heads]
        )
    batch = pack(tiny.tokenizer.encode(["great tea"]))
    assert small(batch).hidden.shape == (batch.layout.n_pieces, 24)


def test_a_narrow_encoder_is_an_encoder_folder(tiny: pretrained.Pretrained, tmp_path: Path) -> None:
    small = replace(tiny, encoder=narrow(keep_layers(tiny.encoder, [1]), 16))
    pretrained.save(small, tmp_path / "small")
    loaded = pretrained.load(str(tmp_path / "small"))
    batch = pack(tiny.tokenizer.encode(["great tea"]))
    torch.testing.assert_close(loaded.encoder(batch).hidden, small.encoder.eval()(batch).hidden)


@pytest.mark.parametrize("width", [30, 0, 40])
def test_a_width_that_heads_do_not_divide_is_refused(
    width: int, tiny: pretrained.Pretrained
) -> None:
    with pytest.raises(UserError, match="8, 16, 24"):
        narrow(tiny.encoder, width)
