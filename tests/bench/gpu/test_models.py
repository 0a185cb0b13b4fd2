"""Shares for a number of operations, balanced labels, and opponents that compute the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from bench.gpu import opponents
from bench.gpu.context import GpuBench
from bench.gpu.models import TIMES_FEWER, copy_to, random_encoder, shares_for
from litotes.encoder.packing import pack
from litotes.encoder.pretrained import Pretrained
from litotes.pruning.cost import flops

CPU = torch.device("cpu")
LENGTHS = [30, 62, 90, 17, 41] * 4


@pytest.mark.parametrize("times_fewer", [1.5, TIMES_FEWER])
@pytest.mark.parametrize("n_layers", [6, 12])
def test_shares_give_the_operations_that_are_asked_for(
    tiny: Pretrained, n_layers: int, times_fewer: float
) -> None:
    spec = replace(tiny.encoder.spec, n_layers=n_layers)
    shares = shares_for(random_encoder(spec), LENGTHS, times_fewer)
    assert all(after < before for before, after in pairwise([1.0, *shares]))
    pruned = replace(spec, pruning="learned", pruning_options={"shares": shares})
    dense_cost, pruned_cost = (
        flops(random_encoder(each), LENGTHS, firsts_only=True).total for each in (spec, pruned)
    )
    assert dense_cost / pruned_cost == pytest.approx(times_fewer, rel=0.03)


def test_random_weights_are_the_same_every_time(tiny: Pretrained) -> None:
    first, second = (random_encoder(tiny.encoder.spec).state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert first["blocks.0.inner.weight"].std() == pytest.approx(0.02, rel=0.1)


def test_every_label_wins_somewhere(bench_with: Callable[..., GpuBench]) -> None:
    bench = bench_with()
    for models in (bench.large, bench.small):
        for kind in ("dense", "pruned", "cascade"):
            assert models[kind].classifier.encoder.spec.pruning == (
                {"dense": "none", "pruned": "learned"}.get(kind, kind)
            )
        labels = bench.reference(models["dense"]).argmax(1)
        assert set(labels) == {0, 1}


def test_a_copy_is_a_copy(bench_with: Callable[..., GpuBench]) -> None:
    model = bench_with().small["dense"]
    copied = copy_to(model, CPU, torch.bfloat16)
    assert copied.classifier.encoder.embeddings.piece.weight.dtype == torch.bfloat16
    assert model.classifier.encoder.embeddings.piece.weight.dtype == torch.float32


def test_the_naive_packed_encoder_computes_ours(
    bench_with: Callable[..., GpuBench], one_by_one: opponents.MakeAttention
) -> None:
    bench = bench_with()
    encoder, batch = bench.large["dense"].classifier.encoder, pack(bench.pieces[:5])
    with torch.inference_mode():
        hidden = opponents.packed_hidden(encoder, batch, one_by_one(batch.layout))
        torch.testing.assert_close(hidden, encoder(batch).hidden, atol=1e-5, rtol=0)


@pytest.mark.parametrize("size", [2, 5])
def test_opponents_answer_as_we_do(
    bench_with: Callable[..., GpuBench], one_by_one: opponents.MakeAttention, size: int
) -> None:
    bench = bench_with()
    model = bench.large["dense"]
    choices = {"size": size, "device": CPU, "dtype": torch.float32}
    naive = opponents.naive_packed(model, bench.pieces, make_attention=one_by_one, **choices)
    padded = opponents.padded(model, bench.pieces, **choices)
    for act in (naive, padded):
        np.testing.assert_allclose(act(None), bench.reference(model), atol=1e-5)


@pytest.mark.slow
def test_a_compiled_opponent_sees_few_lengths(
    bench_with: Callable[..., GpuBench], monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes, usual = [], torch._dynamo.config.recompile_limit

    def compile_nothing(network: torch.nn.Module, *, dynamic: bool) -> Callable[..., Tensor]:
        assert not dynamic

        def run(**batch: Tensor) -> Tensor:
            shapes.append(tuple(batch["input_ids"].shape))
            assert torch._dynamo.config.recompile_limit == opponents.MOST_COMPILED
            return network(**batch)

        return run

    monkeypatch.setattr(torch, "compile", compile_nothing)
    monkeypatch.setattr(opponents, "COMPILED_STEP", 32)
    bench = bench_with()
    model = bench.large["dense"]
    act = opponents.padded(
        model, bench.pieces, size=2, device=CPU, dtype=torch.float32, is_compiled=True
    )
    np.testing.assert_allclose(act(None), bench.reference(model), atol=1e-5)
    assert set(shapes) == {(2, 32)}
    assert torch._dynamo.config.recompile_limit == usual, "ours lives with torch's own limit"
    assert opponents.fill_up(torch.ones(1, 33), 32).sum() == 33
