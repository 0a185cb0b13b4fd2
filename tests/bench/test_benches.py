"""The benches on a tiny encoder: which lines there are, what each is compared with, and the
operations they name.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from bench.attention import attention
from bench.effective import by_svd, effective
from bench.train import PASSES, table_of_heads, train
from litotes.encoder import pretrained
from litotes.explanation.effective_attention import effective_attention
from litotes.model.heads import HEADS
from litotes.pruning.cost import flops

TEXTS = [
    "the tea is great",
    "a queue",
    "it is not bad and i love the queue for the tea " * 2,
    "hate",
] * 9


def test_operations_fall_from_padded_to_packed_to_pruned(tiny_folder: Path) -> None:
    bench = attention(TEXTS, encoder=str(tiny_folder), n_rounds=1)
    lines = {line.name: line for line in bench.lines}
    assert set(bench.ratios(lines["litotes-cascade"])) == {"hf-padded-32", "litotes-dense"}
    assert set(bench.ratios(lines["litotes-dense"])) == {"hf-padded-32"}
    work = {line.name: line.flops or 0 for line in bench.lines}
    assert (
        work["hf-padded-32"]
        > work["litotes-dense"]
        > work["litotes-cascade"]
        > work["litotes-learned"]
    )
    # Two layers: cascade first removes in the last one, of which the head linear reads nothing but
    # first pieces.
    assert (
        work["litotes-dense"]
        > work["litotes-dense-linear"]
        == work["litotes-cascade-linear"]
        > work["litotes-learned-linear"]
    )
    loaded = pretrained.load(str(tiny_folder))
    lengths = [len(text.ids) for text in loaded.tokenizer.encode(TEXTS)]
    assert work["litotes-dense"] == flops(loaded.encoder, lengths).total
    padded = [max(lengths[:32])] * 32 + [max(lengths[32:])] * 4
    assert work["hf-padded-32"] == flops(loaded.encoder, padded).total


@pytest.mark.slow
def test_training_names_every_head_dense_and_with_cascade(tiny_folder: Path) -> None:
    bench = train(TEXTS, encoder=str(tiny_folder), heads=list(HEADS), batch_texts=2, n_rounds=1)
    lines = {line.name: line for line in bench.lines}
    assert [head for head, _, _ in table_of_heads(bench)] == list(HEADS)
    assert set(bench.ratios(lines["litotes-cascade"])) == {"hf-padded", "litotes-dense"}
    assert set(bench.ratios(lines["litotes-cascade-bilstm"])) == {"litotes-dense-bilstm"}
    assert not bench.ratios(lines["litotes-dense-crosstalk"])
    assert bench.ms_of == "a batch of 2"
    assert len(lines) == 2 * len(HEADS) + 1


def test_a_step_is_three_passes(tiny: pretrained.Pretrained) -> None:
    from litotes.encoder.packing import pack

    batch = pack(tiny.tokenizer.encode(TEXTS[:4]))
    # with dropout attention is computed in plain products, which torch counts
    encoder = tiny.encoder.train()
    with FlopCounterMode(display=False) as counter:
        encoder(batch).hidden.sum().backward()
    assert counter.get_total_flops() == PASSES * flops(encoder, batch.layout.lengths).total


def test_effective_compares_each_length_with_its_own(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["bench.effective"], "LENGTHS", (48, 70))
    bench = effective(TEXTS[:5], encoder=str(tiny_folder), n_rounds=1)
    lines = {line.name: line for line in bench.lines}
    layers = [f"{candidate}-n{length}" for length in (48, 70) for candidate in ("svd", "litotes")]
    assert list(lines) == [*layers, "maps-standard", "maps-effective"]
    assert {
        name: set(bench.ratios(line)) for name, line in lines.items() if bench.ratios(line)
    } == {
        "litotes-n48": {"svd-n48"},
        "litotes-n70": {"svd-n70"},
        "maps-effective": {"maps-standard"},
    }


@pytest.mark.parametrize("n_pieces", [30, 70])
def test_the_svd_beside_effective_attention_gives_the_same_maps(n_pieces: int) -> None:
    torch.manual_seed(0)
    weights, value = torch.randn(2, n_pieces, n_pieces).softmax(-1), torch.randn(2, n_pieces, 64)
    torch.testing.assert_close(
        by_svd(weights, value),
        effective_attention(weights, value, weights @ value).maps,
        atol=1e-6,
        rtol=0,
    )
