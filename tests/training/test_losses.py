from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from litotes.core.values import MISSING, Task
from litotes.training.losses import class_weights, task_weights, text_losses, text_weights

SENTIMENT = Task("sentiment", ("negative", "positive"))


def mean_loss(logits: Tensor, targets: Tensor, weights: Tensor | None) -> Tensor:
    return text_losses(logits, targets, weights).sum() / text_weights(targets, weights).sum()


def test_class_weights_are_inverse_frequencies() -> None:
    targets = torch.tensor([0, 0, 0, 1, MISSING])
    assert class_weights(targets, SENTIMENT).tolist() == pytest.approx([4 / (2 * 3), 4 / (2 * 1)])


def test_a_class_that_never_occurs_has_no_weight() -> None:
    task = Task("sentiment", ("negative", "neutral", "positive"))
    assert class_weights(torch.tensor([0, 2, 2, 2]), task).tolist() == pytest.approx(
        [2.0, 0.0, 2 / 3]
    )


def test_loss_equals_torch_weighted_cross_entropy() -> None:
    logits, targets = torch.randn(6, 2), torch.tensor([0, 1, 1, 0, 1, 1])
    weights = class_weights(targets, SENTIMENT)
    ours = mean_loss(logits, targets, weights)
    torch.testing.assert_close(ours, functional.cross_entropy(logits, targets, weight=weights))


def test_texts_without_a_label_add_nothing() -> None:
    logits, targets = torch.randn(4, 2), torch.tensor([0, MISSING, 1, MISSING])
    weights = torch.ones(2)
    some = mean_loss(logits, targets, weights)
    torch.testing.assert_close(some, functional.cross_entropy(logits[[0, 2]], targets[[0, 2]]))
    none = torch.full((4,), MISSING)
    assert text_losses(logits, none, weights).sum() == 0
    assert text_weights(none, weights).sum() == 0


def test_regression_is_mean_squared_error_over_labelled_texts() -> None:
    logits, targets = torch.tensor([[1.0], [2.0], [5.0]]), torch.tensor([2.0, math.nan, 5.0])
    assert mean_loss(logits, targets, None) == 0.5


def test_a_missing_number_has_no_gradient() -> None:
    logits = torch.tensor([[1.0], [2.0]], requires_grad=True)
    text_losses(logits, torch.tensor([2.0, math.nan]), None).sum().backward()
    assert logits.grad.flatten().tolist() == [-2.0, 0.0]


def test_parts_of_a_batch_add_up_to_the_whole() -> None:
    """What several processes compute together is what one computes alone."""
    logits, targets = torch.randn(5, 2), torch.tensor([0, 1, 1, MISSING, 0])
    weights = class_weights(targets, SENTIMENT)
    parts = [
        text_losses(logits[part], targets[part], weights).sum()
        for part in (slice(0, None, 2), slice(1, None, 2))
    ]
    torch.testing.assert_close(
        sum(parts) / text_weights(targets, weights).sum(), mean_loss(logits, targets, weights)
    )


def test_unbalanced_weights_are_ones() -> None:
    weights = task_weights(
        {"sentiment": torch.tensor([0, 0, 1])}, {"sentiment": SENTIMENT}, balanced=False
    )
    assert weights["sentiment"].tolist() == [1.0, 1.0]
