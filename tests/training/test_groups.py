"""Groups: what group DRO does to the loss and to its weights."""

from __future__ import annotations

import pytest
import torch

from litotes.training.losses import GROUP_LOSSES, TaskBatch
from litotes.training.processes import Processes


def batch(losses: list[float], groups: list[int], weights: list[float]) -> TaskBatch:
    return TaskBatch(torch.tensor(losses), torch.tensor(groups), torch.tensor(weights))


def test_alike_is_the_weighted_mean() -> None:
    loss = GROUP_LOSSES["none"](1, 2, rate=0.1)(
        0, batch([1.0, 3.0, 2.0], [0, 1, 1], [1.0, 3.0]), Processes()
    )
    assert float(loss) == pytest.approx(6 / 4)


@pytest.mark.parametrize("name", sorted(GROUP_LOSSES))
def test_a_batch_without_labels_has_no_loss(name: str) -> None:
    losses = torch.zeros(3, requires_grad=True)
    value = GROUP_LOSSES[name](1, 2, rate=0.1)(
        0, TaskBatch(losses, torch.tensor([0, 1, 1]), torch.zeros(2)), Processes()
    )
    value.backward()
    assert value.item() == 0
    assert torch.isfinite(losses.grad).all()


def test_group_dro_moves_weight_to_the_group_that_does_badly() -> None:
    module = GROUP_LOSSES["group_dro"](2, 3, rate=0.5)
    one = batch([0.5, 0.7, 2.0], [0, 0, 1], [2.0, 1.0, 0.0])  # the third group is not in the batch
    expected = torch.full((3,), 1 / 3) * torch.exp(0.5 * torch.tensor([0.6, 2.0, 0.0]))
    expected = expected / expected.sum()
    value = module(1, one, Processes())
    torch.testing.assert_close(module.shares[1], expected)
    # the other task's are its own
    torch.testing.assert_close(module.shares[0], torch.full((3,), 1 / 3))
    assert float(value) == pytest.approx(float(expected @ torch.tensor([0.6, 2.0, 0.0])))
    for _ in range(100):
        module(1, one, Processes())
    assert float(module.shares[1][1]) > 0.99
