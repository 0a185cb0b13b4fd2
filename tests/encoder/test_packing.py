from __future__ import annotations

import torch

from litotes.encoder.packing import batches_without_gradients

LENGTHS = [10] * 4000


def test_a_gpu_takes_larger_batches() -> None:
    for device, most in (("cpu", 64), ("cuda", 1024)):
        batches = list(batches_without_gradients(LENGTHS, torch.device(device)))
        assert max(map(len, batches)) == most
        assert [place for batch in batches for place in batch] == list(range(4000))
    (first, *_) = batches_without_gradients([100] * 1000, torch.device("cuda"))
    assert len(first) == 163  # 16,384 pieces
