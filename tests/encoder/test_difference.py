"""A matrix as steps away from another."""

import pytest
import torch

from litotes.core.errors import UserError
from litotes.encoder.pretrained import from_difference, to_difference


def made() -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    base = {"weight": torch.randn(6, 5), "bias": torch.randn(6), "wide": torch.randn(3, 4)}
    tuned = {name: tensor + 0.01 * torch.randn_like(tensor) for name, tensor in base.items()}
    tuned["weight"][2] = base["weight"][2]  # a row that did not move
    return base, tuned | {"wide": torch.randn(2, 4), "heads.output": torch.randn(2, 6)}


def test_a_weight_comes_back_to_within_half_a_step() -> None:
    base, tuned = made()
    back = from_difference(to_difference(tuned, base), base)
    assert back.keys() == tuned.keys()
    half = (tuned["weight"] - base["weight"]).abs().amax(1, keepdim=True) / 127 / 2
    assert bool(((back["weight"] - tuned["weight"]).abs() <= half + 1e-7).all())
    assert torch.equal(back["weight"][2], base["weight"][2])


def test_what_is_no_matrix_or_has_another_shape_is_kept_as_it_is() -> None:
    base, tuned = made()
    kept = to_difference(tuned, base)
    assert {"bias", "wide", "heads.output"} <= kept.keys()
    assert "weight" not in kept
    assert sum(tensor.numel() for tensor in kept.values() if tensor.dtype == torch.int8) == 30


@pytest.mark.parametrize(
    "change",
    [
        {"difference.size.weight": None},
        {"difference.size.weight": torch.ones(5, 1)},
        {"difference.steps.weight": torch.zeros(6, 4, dtype=torch.int8)},
        {"difference.steps.weight": torch.zeros(6, 5)},
        {"difference.steps.other": torch.zeros(6, 5, dtype=torch.int8)},
    ],
)
def test_a_difference_that_does_not_fit_is_refused(change: dict[str, torch.Tensor | None]) -> None:
    base, tuned = made()
    damaged = {
        name: tensor
        for name, tensor in (to_difference(tuned, base) | change).items()
        if tensor is not None
    }
    with pytest.raises(UserError, match="does not fit the encoder"):
        from_difference(damaged, base)
