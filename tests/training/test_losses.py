from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

from litotes.flow import MISSING, Task
from litotes.training.losses import class_weights, normaliser, task_loss, task_weights

SENTIMENT = Task("sentiment", ("negative", "positive"))


def test_class_weights_are_inverse_frequencies() -> None:
    targets = torch.tensor([0, 0, 0, 1, MISSING])
    assert class_weights(targets, SENTIMENT).tolist() == pytest.approx([4 / (2 * 3), 4 / (2 * 1)])


def test_a_class_that_never_occurs_has_no_weight() -> None:
    task = Task("sentiment", ("negative", "neutral", "positive"))
    assert class_weights(torch.tensor([0, 2, 2, 2]), task).tolist() == pytest.approx([2.0, 0.0, 2 / 3])


def test_loss_equals_torch_weighted_cross_entropy() -> None:
    logits, targets = torch.randn(6, 2), torch.tensor([0, 1, 1, 0, 1, 1])
    weights = class_weights(targets, SENTIMENT)
    ours = task_loss(logits, targets, weights, divide_by=normaliser(targets, weights))
    torch.testing.assert_close(ours, functional.cross_entropy(logits, targets, weight=weights))


def test_texts_without_a_label_add_nothing() -> None:
    logits, targets = torch.randn(4, 2), torch.tensor([0, MISSING, 1, MISSING])
    weights = torch.ones(2)
    some = task_loss(logits, targets, weights, divide_by=normaliser(targets, weights))
    torch.testing.assert_close(some, functional.cross_entropy(logits[[0, 2]], targets[[0, 2]]))
    none = torch.full((4,), MISSING)
    assert task_loss(logits, none, weights, divide_by=normaliser(none, weights)) == 0


def test_regression_is_mean_squared_error_over_labelled_texts() -> None:
    logits, targets = torch.tensor([[1.0], [2.0], [5.0]]), torch.tensor([2.0, math.nan, 5.0])
    assert task_loss(logits, targets, None, divide_by=normaliser(targets, None)) == 0.5


def test_parts_of_a_batch_add_up_to_the_whole() -> None:
    """What several processes compute together is what one computes alone."""
    logits, targets = torch.randn(5, 2), torch.tensor([0, 1, 1, MISSING, 0])
    weights = class_weights(targets, SENTIMENT)
    divide_by = normaliser(targets, weights)
    parts = [task_loss(logits[part], targets[part], weights, divide_by=divide_by) for part in (slice(0, None, 2), slice(1, None, 2))]
    torch.testing.assert_close(sum(parts), task_loss(logits, targets, weights, divide_by=divide_by))


def test_unbalanced_weights_are_ones() -> None:
    weights = task_weights({"sentiment": torch.tensor([0, 0, 1])}, {"sentiment": SENTIMENT}, balanced=False)
    assert weights["sentiment"].tolist() == [1.0, 1.0]
