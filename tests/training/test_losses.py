"""Losses against torch's own and against their definitions: class weights, missing labels, groups,
teachers, lessons.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from litotes.core.errors import UserError
from litotes.core.values import MISSING, Example, Task
from litotes.data.corpus import example_key
from litotes.encoder import pretrained
from litotes.encoder.packing import TextSet, make_text_set
from litotes.encoder.tokenizer import Pieces
from litotes.model.checkpoint import load_model
from litotes.model.folder import read_trained_texts, text_hash
from litotes.training.lessons import Lessons
from litotes.training.losses import (
    GROUP_LOSSES,
    TaskLosses,
    Teacher,
    class_weights,
    sum_by_group,
    task_weights,
    text_losses,
    text_weights,
)
from litotes.training.processes import Processes
from litotes.training.recipe import Recipe, TrainingSettings
from litotes.training.run import train

CPU = torch.device("cpu")
NAN = float("nan")
MOOD = Task("mood", ("calm", "angry", "glad"))
STARS = Task("stars", ())
SEVERAL = Task("moods", ("angry", "fond", "glad"), multi_label=True)


def mean_loss(logits: Tensor, targets: Tensor, weights: Tensor | None) -> Tensor:
    return text_losses(logits, targets, weights).sum() / text_weights(targets, weights).sum()


def test_classes_are_weighted_by_their_inverse_frequency() -> None:
    """What never occurs has no weight."""
    targets = {"mood": torch.tensor([0, 0, 0, 1, MISSING]), "stars": torch.tensor([1.0])}
    tasks = {"mood": MOOD, "stars": STARS}
    balanced, even = (task_weights(targets, tasks, balanced=one) for one in (True, False))
    assert balanced.keys() == even.keys() == {"mood"}
    assert balanced["mood"].tolist() == pytest.approx([4 / (2 * 3), 4 / (2 * 1), 0.0])
    assert even["mood"].tolist() == [1, 1, 1]


def test_the_loss_is_torchs_over_labelled_texts() -> None:
    torch.manual_seed(0)
    logits = torch.randn(6, 3, requires_grad=True)
    targets = torch.tensor([0, MISSING, 1, 0, MISSING, 1])
    weights = class_weights(targets, MOOD)
    labelled = targets != MISSING
    expected = functional.cross_entropy(logits[labelled], targets[labelled], weight=weights)
    torch.testing.assert_close(mean_loss(logits, targets, weights), expected)
    # what several processes compute together is what one computes alone
    parts = [text_losses(logits[n::2], targets[n::2], weights).sum() for n in (0, 1)]
    torch.testing.assert_close(sum(parts) / text_weights(targets, weights).sum(), expected)
    none = torch.full((6,), MISSING)
    assert text_losses(logits, none, weights).sum() == text_weights(none, weights).sum() == 0


def test_a_number_is_learned_by_squared_error() -> None:
    logits = torch.tensor([[1.0], [2.0], [5.0]], requires_grad=True)
    targets = torch.tensor([2.0, NAN, 4.5])
    loss = mean_loss(logits, targets, None)
    loss.backward()
    assert loss.item() == (1 + 0.25) / 2
    assert logits.grad is not None
    assert logits.grad.flatten().tolist() == [-1.0, 0.0, 0.5]


def test_several_labels_are_a_question_each() -> None:
    torch.manual_seed(0)
    logits = torch.randn(5, 3, requires_grad=True)
    targets = torch.tensor([[1.0, 0, 0], [0, 0, 0], [1, 1, 0], [1, 0, 0], [NAN] * 3])
    weights = class_weights(targets, SEVERAL)  # (class, answer)
    assert weights.tolist() == [
        pytest.approx([4 / 2, 4 / 6]),
        pytest.approx([4 / 6, 4 / 2]),
        [1.0, 0.0],  # nobody is glad
    ]
    losses, counts = text_losses(logits, targets, weights), text_weights(targets, weights)
    gold = targets[:4].long()
    two = torch.stack([torch.zeros(4, 3), logits[:4]], -1)  # (text, class, answer)
    each = functional.cross_entropy(two.flatten(0, 1), gold.flatten(), reduction="none")
    own = weights[torch.arange(3), gold]  # (text, class)
    torch.testing.assert_close(losses[:4], (each.view(4, 3) * own).mean(-1))
    torch.testing.assert_close(counts[:4], own.mean(-1))
    assert losses[4] == counts[4] == 0
    losses.sum().backward()
    assert logits.grad is not None
    assert not logits.grad[4].any()


# Groups


def batch(*parts: list[float]) -> list[Tensor]:
    """Losses (text,), groups (text,) and weights (group,)."""
    return [torch.tensor(part) for part in parts]


@pytest.mark.parametrize("name", sorted(GROUP_LOSSES))
def test_a_batch_without_labels_has_no_loss(name: str) -> None:
    losses = torch.zeros(3, requires_grad=True)
    loss = GROUP_LOSSES[name](1, 2, rate=0.1)
    value = loss(0, losses, torch.tensor([0, 1, 1]), torch.zeros(2), Processes())
    value.backward()
    assert value.item() == 0
    assert losses.grad is not None
    assert torch.isfinite(losses.grad).all()


def test_group_dro_moves_weight_to_the_group_that_does_badly() -> None:
    """Without groups the loss is the weighted mean."""
    one = batch([0.5, 0.7, 2.0], [0, 0, 1], [2.0, 1.0, 0.0])  # the third group is not in the batch
    assert sum_by_group(one[0], one[1], 3).tolist() == pytest.approx([1.2, 2.0, 0.0])
    plain = GROUP_LOSSES["none"](2, 3, rate=0.5)(1, *one, Processes())
    assert float(plain) == pytest.approx(3.2 / 3)
    module = GROUP_LOSSES["group_dro"](2, 3, rate=0.5)
    found = torch.tensor([0.6, 2.0, 0.0])
    expected = torch.exp(0.5 * found) / torch.exp(0.5 * found).sum()
    value = module(1, *one, Processes())
    torch.testing.assert_close(module.shares[1], expected)
    # the other task's are its own
    torch.testing.assert_close(module.shares[0], torch.full((3,), 1 / 3))
    assert float(value) == pytest.approx(float(expected @ found))
    for _ in range(100):
        module(1, *one, Processes())
    assert float(module.shares[1][1]) > 0.99


# Teachers


def test_a_difference_is_the_divergence_of_softened_answers() -> None:
    student, wanted = torch.tensor([[0.3, -0.2], [1.0, 4.0]]), torch.tensor([[1.0, 0.0], [0.0, 3]])
    teacher = Teacher({}, share=0.5, temperature=2.0)
    p, q = (wanted / 2).softmax(-1), (student / 2).softmax(-1)
    expected = 4 * (p * (p / q).log()).sum(-1)
    torch.testing.assert_close(teacher.differences(student, wanted), expected, atol=1e-6, rtol=1e-5)
    assert expected[1] < 1e-6  # the same probabilities
    number = teacher.differences(torch.tensor([[2.0]]), torch.tensor([[0.5]]))
    assert number.item() == 2.25


def losses_of(
    texts: TextSet, task: Task, teacher: Teacher | None, *, weighted: bool = True
) -> TaskLosses:
    return TaskLosses(
        texts,
        {task.name: task},
        TrainingSettings(class_weights=weighted),
        device=CPU,
        processes=Processes(),
        teacher=teacher,
    )


def test_labels_and_teacher_share_the_loss() -> None:
    """A text without a label is learned from the teacher alone."""
    targets = {"mood": torch.tensor([0, 1, MISSING])}
    groups = torch.zeros(3, dtype=torch.long)
    texts = TextSet([Pieces([1], [0], False)] * 3, targets, groups, ("all",))
    wanted = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    teacher, places = Teacher({"mood": wanted}, share=0.25), torch.arange(3)
    losses = losses_of(texts, Task("mood", ("calm", "glad")), teacher, weighted=False)
    logits = torch.tensor([[0.0, 1.0]]).repeat(3, 1)
    (found,) = losses.of_batch({"mood": logits}, batch=places, own=places)
    by_label = functional.cross_entropy(logits[:2], torch.tensor([0, 1]), reduction="none")
    apart = teacher.differences(logits, wanted)
    assert apart[1] < 1e-6  # it agrees with the second text's answer
    assert float(found) == pytest.approx(float(0.75 * by_label.sum() + 0.25 * apart.sum()) / 3)


EXAMPLES = [
    Example("the tea", {"mood": "calm"}),
    Example("a tea", {"mood": "calm"}),
    Example("bad tea", {"mood": "angry"}),
    Example("great tea", {"mood": "glad"}),  # its only teacher was trained on it
    Example("a queue", {}),
]
ANSWERS = {
    "the tea": (0.7, 0.2, 0.1),
    "a tea": (0.5, 0.4, 0.1),
    "bad tea": (0.3, 0.6, 0.1),
    "a queue": (0.2, 0.1, 0.7),
}
LOGITS = torch.tensor(
    [[0.3, -0.2, 0.1], [1.0, 0.0, -1.0], [0.2, 0.4, 0.0], [-0.5, 0.5, 0.2], [0.0, 0.1, 0.9]]
)


def lessons(share: float, temperature: float = 1.0) -> Lessons:
    answers = {example_key(Example(text, {})): answer for text, answer in ANSWERS.items()}
    return Lessons({"mood": answers}, (), share=share, temperature=temperature)


def pulls(texts: TextSet, taught: Lessons, places: list[int]) -> Tensor:
    """Where the loss of a batch pulls the logits."""
    teacher = taught.teacher_of(EXAMPLES, texts, {"mood": MOOD}, balanced=True)
    logits, chosen = LOGITS.clone().requires_grad_(), torch.tensor(places)
    (loss,) = losses_of(texts, MOOD, teacher).of_batch({"mood": logits}, batch=chosen, own=chosen)
    loss.backward()
    assert logits.grad is not None
    return logits.grad


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_class_weights_count_on_the_mixture(share: float, tiny: pretrained.Pretrained) -> None:
    """The definition: w_c ((1 − s) 1[y = c] + s p_c), s 0 or 1 where one of them is missing."""
    texts = make_text_set(EXAMPLES, [MOOD], tiny.tokenizer)
    weights = task_weights(texts.targets, {"mood": MOOD}, balanced=True)["mood"]
    rows = []
    for example in EXAMPLES:
        label, answer = example.labels.get("mood"), ANSWERS.get(example.text)
        hard = torch.tensor([float(word == label) for word in MOOD.labels])
        own = 0.0 if answer is None else 1.0 if label is None else share
        rows.append((1 - own) * hard + own * torch.tensor(answer or (0.0,) * 3))
    wanted, logits = weights * torch.stack(rows), LOGITS.clone().requires_grad_()
    (-(wanted * logits.log_softmax(-1)).sum() / wanted.sum()).backward()
    found = pulls(texts, lessons(share), [0, 1, 2, 3, 4])
    torch.testing.assert_close(found, logits.grad, atol=1e-6, rtol=1e-5)
    # places without a text add nothing
    pulled = pulls(texts, lessons(share, temperature=2.0), [0, 1, 2, -1, -1])
    assert pulled[3:].abs().max() == 0
    assert pulled[:3].abs().max() > 0


def test_a_number_is_learned_from_both(tiny: pretrained.Pretrained) -> None:
    examples = [Example("tea", {"stars": 4.0}), Example("queue", {})]
    texts = make_text_set(examples, [STARS], tiny.tokenizer)
    answers = {example_key(example): (2.0,) for example in examples}
    taught = Lessons({"stars": answers}, (), share=0.25, temperature=1.0)
    teacher = taught.teacher_of(examples, texts, {"stars": STARS}, balanced=True)
    places = torch.arange(2)
    losses = losses_of(texts, STARS, teacher)
    (loss,) = losses.of_batch({"stars": torch.zeros(2, 1)}, batch=places, own=places)
    assert loss.item() == pytest.approx((0.75 * 16 + 0.25 * 4 + 4) / 2)


@pytest.mark.slow
def test_a_run_learns_its_lessons_and_says_so(tiny_recipe: Recipe, tmp_path: Path) -> None:
    unlabelled = tuple(Example(f"the queue {number} is not bad", {}) for number in range(40))
    answers = {example_key(example): (0.02, 0.98) for example in unlabelled}
    recipe = tiny_recipe.changed(data__tasks=["sentiment"], training__epochs=1)
    taught = Lessons({"sentiment": answers}, unlabelled, 0.5, 1.0, about="By Ann.")
    run = train(recipe, tmp_path / "run", lessons=taught)
    assert {text_hash(one) for one in unlabelled} <= (read_trained_texts(run.folder) or set())
    assert "By Ann. Answers count 0.5 of a label." in run.notes
    assert "40 texts without labels were learned from teachers alone." in run.notes
    stated = json.loads((run.folder / "litotes.json").read_text())["facts"]
    assert len(stated["class_weights"]["sentiment"]) == 2
    again = train(recipe, run.folder, lessons=taught, resume=True)
    assert again.model.facts["key"] == load_model(run.folder).facts["key"] == stated["key"]
    for others in (None, Lessons({}, unlabelled, 0.5, 1.0)):
        with pytest.raises(UserError, match="another recipe"):
            train(recipe, run.folder, lessons=others, resume=True)
