from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from litotes.core.values import MISSING, Task
from litotes.encoder.packing import TextSet
from litotes.encoder.tokenizer import Pieces
from litotes.training.losses import (
    GROUP_LOSSES,
    TaskLosses,
    Teacher,
    class_weights,
    task_weights,
    text_losses,
    text_weights,
)
from litotes.training.processes import Processes
from litotes.training.recipe import TrainingSettings

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


# Groups


def batch(*parts: list[float]) -> list[Tensor]:
    """Losses (text,), groups (text,) and weights (group,)."""
    return [torch.tensor(part) for part in parts]


def test_alike_is_the_weighted_mean() -> None:
    loss = GROUP_LOSSES["none"](1, 2, rate=0.1)(
        0, *batch([1.0, 3.0, 2.0], [0, 1, 1], [1.0, 3.0]), Processes()
    )
    assert float(loss) == pytest.approx(6 / 4)


@pytest.mark.parametrize("name", sorted(GROUP_LOSSES))
def test_a_batch_without_labels_has_no_loss(name: str) -> None:
    losses = torch.zeros(3, requires_grad=True)
    value = GROUP_LOSSES[name](1, 2, rate=0.1)(
        0, losses, torch.tensor([0, 1, 1]), torch.zeros(2), Processes()
    )
    value.backward()
    assert value.item() == 0
    assert torch.isfinite(losses.grad).all()


def test_group_dro_moves_weight_to_the_group_that_does_badly() -> None:
    module = GROUP_LOSSES["group_dro"](2, 3, rate=0.5)
    one = batch([0.5, 0.7, 2.0], [0, 0, 1], [2.0, 1.0, 0.0])  # the third group is not in the batch
    expected = torch.full((3,), 1 / 3) * torch.exp(0.5 * torch.tensor([0.6, 2.0, 0.0]))
    expected = expected / expected.sum()
    value = module(1, *one, Processes())
    torch.testing.assert_close(module.shares[1], expected)
    # the other task's are its own
    torch.testing.assert_close(module.shares[0], torch.full((3,), 1 / 3))
    assert float(value) == pytest.approx(float(expected @ torch.tensor([0.6, 2.0, 0.0])))
    for _ in range(100):
        module(1, *one, Processes())
    assert float(module.shares[1][1]) > 0.99


# Teachers


def test_an_imitator_loses_nothing_and_others_do() -> None:
    logits = torch.tensor([[2.0, -1.0], [0.0, 3.0]])
    teacher = Teacher({"mood": logits}, share=1.0)
    assert teacher.differences(logits, logits).abs().max() < 1e-6
    assert (teacher.differences(-logits, logits) > 0.1).all()
    shifted = logits + 5  # the same probabilities
    assert teacher.differences(shifted, logits).abs().max() < 1e-6


def test_the_difference_is_the_divergence_of_softened_answers() -> None:
    student, wanted = torch.tensor([[0.3, -0.2]]), torch.tensor([[1.0, 0.0]])
    p, q = (wanted / 2).softmax(-1), (student / 2).softmax(-1)
    expected = 4 * (p * (p / q).log()).sum()
    torch.testing.assert_close(
        Teacher({}, share=0.5, temperature=2.0).differences(student, wanted)[0], expected
    )


def test_labels_and_teacher_share_the_loss() -> None:
    """A text without a label is learned from the teacher alone."""
    texts = TextSet(
        [Pieces([1], [0], False)] * 3,
        {"mood": torch.tensor([0, 1, MISSING])},
        torch.zeros(3, dtype=torch.long),
        ("all",),
    )
    wanted = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    teacher = Teacher({"mood": wanted}, share=0.25)
    losses = TaskLosses(
        texts,
        {"mood": Task("mood", ("calm", "glad"))},
        TrainingSettings(class_weights=False),
        device=torch.device("cpu"),
        processes=Processes(),
        teacher=teacher,
    )
    logits, places = torch.tensor([[0.0, 1.0]]).repeat(3, 1), torch.arange(3)
    (found,) = losses.of_batch({"mood": logits}, batch=places, own=places)
    by_label = functional.cross_entropy(logits[:2], torch.tensor([0, 1]), reduction="none")
    apart = teacher.differences(logits, wanted)
    assert apart[1] < 1e-6  # it agrees with the second text's answer
    assert float(found) == pytest.approx(float(0.75 * by_label.sum() + 0.25 * apart.sum()) / 3)


def test_a_number_is_imitated_by_squared_error() -> None:
    assert Teacher({}, share=1.0).differences(
        torch.tensor([[2.0]]), torch.tensor([[0.5]])
    ).item() == pytest.approx(2.25)
