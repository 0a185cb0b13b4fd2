"""A phase of imitation that can be stopped, with texts that both cut alike."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from litotes.core.errors import Stopped, UserError
from litotes.core.progress import ignore_progress
from litotes.core.values import Example
from litotes.encoder import pretrained
from litotes.encoder.encoder import Encoder
from litotes.training.distillation.matching import (
    Matching,
    aligned_texts,
    check_aligned,
    match_encoder,
)
from litotes.training.recipe import TrainingSettings

TEXTS = tuple(Example(f"the tea {number} is great", {}) for number in range(12))


def matching(teacher: Path, kind: str = "hidden") -> Matching:
    settings = TrainingSettings(
        epochs=2, batch_texts=4, learning_rate=1e-3, checkpoint_seconds=0, precision="float32"
    )
    return Matching(kind, settings, 0, "key", ((teacher, TEXTS),))


def test_a_stopped_phase_ends_as_if_it_had_not_been(
    tiny_folder: Path, trained_folder: Path, tmp_path: Path
) -> None:
    phase = matching(trained_folder)

    def begin() -> pretrained.Pretrained:
        return pretrained.load(str(tiny_folder), max_pieces=32)

    before, whole, stopped, again = begin(), begin(), begin(), begin()
    match_encoder(whole, phase, tmp_path / "whole", device="cpu", watch=ignore_progress)
    assert not torch.equal(weights(whole.encoder), weights(before.encoder))

    def stop(what: str, done: int, total: int, note: str) -> None:
        assert total == 6
        if done == 4:
            raise Stopped("as if by Ctrl-C")

    seen: list[int] = []
    with pytest.raises(Stopped):
        match_encoder(stopped, phase, tmp_path / "again", device="cpu", watch=stop)
    match_encoder(
        again,
        phase,
        tmp_path / "again",
        device="cpu",
        watch=lambda what, done, total, note: seen.append(done),
    )
    assert seen == [4, 5, 6]
    torch.testing.assert_close(weights(again.encoder), weights(whole.encoder), atol=0, rtol=0)
    assert not (tmp_path / "again").exists()


def weights(encoder: Encoder) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in encoder.parameters()])


def test_texts_that_are_cut_otherwise_are_left_out(tiny_folder: Path) -> None:
    long, short = (pretrained.load(str(tiny_folder), max_pieces=n).tokenizer for n in (32, 10))
    few, many = Example("great tea", {}), Example("great tea " * 8, {})
    assert aligned_texts([few, many], long, short) == [few]
    check_aligned(1, 2)
    with pytest.raises(UserError, match="same pieces"):
        check_aligned(0, 2)
