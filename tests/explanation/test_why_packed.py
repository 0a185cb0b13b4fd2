"""Maps come back from the page as they went in, within the error they state."""

from __future__ import annotations

import zlib
from base64 import b64decode
from typing import Any

import numpy as np
import pytest
import torch
from made_explanations import explained, long_explanation

from litotes.encoder.pretrained import Pretrained
from litotes.explanation import page as facts
from litotes.explanation.page import packed_heads, why_html
from litotes.explanation.page.map_codec import (
    N_LEVELS,
    PackedMap,
    as_factors,
    as_levels,
    levels_within,
)


def unpack(packed: PackedMap) -> Any:
    """The weights again, as the page works them out. (query, key)"""
    data = zlib.decompress(b64decode(packed.data))
    if not packed.n_levels:
        steps = np.frombuffer(data, np.int8).reshape(2, packed.n_pieces, -1)
        left, right = steps.astype(np.float64)
        return (left * np.array(packed.scales)) @ right.T
    levels = np.frombuffer(data, np.int8 if packed.n_levels <= 127 else np.uint8).astype(np.float64)
    weights = packed.scales[0] * np.sign(levels) * (levels / packed.n_levels) ** 2
    return weights.reshape(packed.n_pieces, -1)


@pytest.mark.parametrize("n_levels", N_LEVELS)
def test_levels_come_back(n_levels: int) -> None:
    weights = torch.randn(20, 20, generator=torch.Generator().manual_seed(0)).mul(3).softmax(-1)
    packed = as_levels(weights, n_levels=n_levels)
    off = np.abs(unpack(packed) - weights.numpy())
    assert off.max() <= packed.error
    assert off.max() > packed.error / 20  # the error is not an idle word
    small = weights.numpy() < 1 / 100
    assert off[small].max() < off.max()


def test_signs_come_back() -> None:
    weights = torch.randn(9, 9, generator=torch.Generator().manual_seed(0))
    packed = as_levels(weights, n_levels=127)
    found = unpack(packed)
    assert np.abs(found - weights.numpy()).max() <= packed.error
    assert (np.sign(found) == weights.sign().numpy())[np.abs(weights.numpy()) > 0.01].all()


def test_factors_come_back() -> None:
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(80, 8, generator=generator) @ torch.randn(8, 80, generator=generator)
    packed = as_factors(weights, rank=8)
    off = np.abs(unpack(packed) - weights.numpy())
    assert off.max() <= packed.error * 1.001  # scales are written with seven digits
    assert off.max() < 0.05 * weights.std()
    assert len(packed.data) < len(as_levels(weights, n_levels=127).data) / 2


def test_both_maps_of_a_model_come_back(tiny: Pretrained) -> None:
    # more pieces than an attention head is wide, by far: factors
    for layer in explained(tiny).layers:
        assert all(layer.n_null)
        for place, both in enumerate(packed_heads(layer, 255)):
            for kind, maps in (("standard", layer.standard), ("effective", layer.effective)):
                np.testing.assert_allclose(
                    unpack(both[kind]), maps[place].numpy(), rtol=0, atol=both[kind].error * 1.001
                )
                assert both[kind].error < 0.02


def test_the_effective_map_is_not_written_twice(tiny: Pretrained) -> None:
    layers = explained(tiny, "tea").layers
    assert not any(layers[0].n_null)
    assert [set(both) for both in packed_heads(layers[0], 255)] == [{"standard"}] * 4


def test_fewer_levels_where_more_do_not_fit() -> None:
    maps = [torch.randn(2, 40, 40, generator=torch.Generator().manual_seed(0)).mul(2).softmax(-1)]
    most = 2 * len(as_levels(maps[0][0], n_levels=255).data)
    assert levels_within(maps, most) == 255
    assert levels_within(maps, most - 1) < 255
    assert levels_within(maps, 1) == 15


def test_a_long_text_makes_a_page_of_less_than_10_megabytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sixth of 6 × 12 attention heads and 512 pieces has a sixth of the room."""
    monkeypatch.setattr(facts, "BUDGET", facts.BUDGET // 6)
    page = why_html(long_explanation(n_pieces=512, n_layers=1, n_heads=12))
    assert len(page.encode()) < 10_000_000 / 6
