"""Answers of teachers mixed into the labels, with the class weights in their place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from litotes.core.values import Example, Task
from litotes.data.corpus import SENTIMENT, example_key
from litotes.encoder import pretrained
from litotes.encoder.packing import TextSet, make_text_set
from litotes.model.checkpoint import load_model
from litotes.model.classifier import Classifier
from litotes.model.folder import read_trained_texts, text_hash
from litotes.training.classification import Classification
from litotes.training.inputs import Inputs, all_logits
from litotes.training.lessons import Lessons
from litotes.training.losses import TaskLosses, Teacher, task_weights
from litotes.training.objective import RunContext
from litotes.training.processes import Processes
from litotes.training.recipe import Recipe, TrainingSettings
from litotes.training.run import train
from litotes.training.trainer import Trainer

MOOD = Task("mood", ("calm", "angry", "glad"))
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


def lessons(*, share: float, temperature: float = 1.0) -> Lessons:
    answers = {example_key(Example(text, {})): answer for text, answer in ANSWERS.items()}
    return Lessons({"mood": answers}, (), share=share, temperature=temperature)


def gradient(texts: TextSet, taught: Lessons, places: list[int]) -> tuple[Tensor, Tensor]:
    """The loss of a batch, and where it pulls the logits."""
    teacher = taught.teacher_of(EXAMPLES, texts, {"mood": MOOD}, balanced=True)
    losses = TaskLosses(
        texts,
        {"mood": MOOD},
        TrainingSettings(),
        device=torch.device("cpu"),
        processes=Processes(),
        teacher=teacher,
    )
    logits = LOGITS.clone().requires_grad_()
    batch = torch.tensor(places)
    (loss,) = losses.of_batch({"mood": logits}, batch=batch, own=batch)
    loss.backward()
    assert logits.grad is not None
    return loss.detach(), logits.grad


def weighted_mixture(weights: Tensor, share: float, n_texts: int) -> Tensor:
    """The definition: w_c ((1 − s) 1[y = c] + s p_c), with s 0 or 1 where one of them is missing.

    (text, class)
    """
    rows = []
    for example in EXAMPLES[:n_texts]:
        label, answer = example.labels.get("mood"), ANSWERS.get(example.text)
        hard = torch.tensor([float(word == label) for word in MOOD.labels])
        soft = torch.zeros(3) if answer is None else torch.tensor(answer)
        own = 0.0 if answer is None else 1.0 if label is None else share
        rows.append((1 - own) * hard + own * soft)
    return weights * torch.stack(rows)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_class_weights_count_on_the_mixture(share: float, tiny: pretrained.Pretrained) -> None:
    texts = make_text_set(EXAMPLES, [MOOD], tiny.tokenizer)
    _, found = gradient(texts, lessons(share=share), [0, 1, 2, 3, 4])
    weights = task_weights(texts.targets, {"mood": MOOD}, balanced=True)["mood"]
    wanted = weighted_mixture(weights, share, 5)
    logits = LOGITS.clone().requires_grad_()
    loss = -(wanted * logits.log_softmax(-1)).sum() / wanted.sum()
    loss.backward()
    torch.testing.assert_close(found, logits.grad, atol=1e-6, rtol=1e-5)


def test_places_without_a_text_add_nothing(tiny: pretrained.Pretrained) -> None:
    texts = make_text_set(EXAMPLES, [MOOD], tiny.tokenizer)
    taught = lessons(share=0.5, temperature=2.0)
    whole, _ = gradient(texts, taught, [0, 1, 2, 3, 4])
    _, pulled = gradient(texts, taught, [0, 1, 2, -1, -1])
    assert pulled[3:].abs().max() == 0
    assert pulled[:3].abs().max() > 0
    assert torch.isfinite(whole)


def test_a_student_of_exact_answers_leans_as_one_of_labels_does(
    tiny: pretrained.Pretrained,
) -> None:
    """Of 8 equal texts 6 are calm and 2 angry: weighted labels make both equally likely, and so
    must exact answers.
    """
    examples = [Example(f"tea {number}", {"mood": "calm"}) for number in range(6)]
    examples += [Example(f"tea {number}", {"mood": "angry"}) for number in range(6, 8)]
    answers = {example_key(example): (0.75, 0.25, 0.0) for example in examples}
    texts = make_text_set(examples, [MOOD], tiny.tokenizer)
    weights = task_weights(texts.targets, {"mood": MOOD}, balanced=True)["mood"]
    torch.testing.assert_close(weights, torch.tensor([2 / 3, 2.0, 0.0]))
    for share in (0.0, 0.5, 1.0):
        taught = Lessons({"mood": answers}, (), share=share, temperature=1.0)
        teacher = taught.teacher_of(examples, texts, {"mood": MOOD}, balanced=True)
        losses = TaskLosses(
            texts,
            {"mood": MOOD},
            TrainingSettings(),
            device=torch.device("cpu"),
            processes=Processes(),
            teacher=teacher,
        )
        shared = torch.tensor([0.0, 0.0, -30.0], requires_grad=True)  # one answer to all texts
        batch = torch.arange(8)
        (loss,) = losses.of_batch({"mood": shared.expand(8, 3)}, batch=batch, own=batch)
        loss.backward()
        assert shared.grad is not None
        assert shared.grad.abs().max() < 1e-6  # even odds are the best answer


def test_a_number_is_learned_from_both(tiny: pretrained.Pretrained) -> None:
    task = Task("stars", ())
    examples = [Example("tea", {"stars": 4.0}), Example("queue", {})]
    texts = make_text_set(examples, [task], tiny.tokenizer)
    answers = {example_key(example): (2.0,) for example in examples}
    taught = Lessons({"stars": answers}, (), share=0.5, temperature=1.0)
    losses = TaskLosses(
        texts,
        {"stars": task},
        TrainingSettings(),
        device=torch.device("cpu"),
        processes=Processes(),
        teacher=taught.teacher_of(examples, texts, {"stars": task}, balanced=True),
    )
    batch = torch.arange(2)
    (loss,) = losses.of_batch({"stars": torch.zeros(2, 1)}, batch=batch, own=batch)
    assert loss.item() == pytest.approx((0.5 * 16 + 0.5 * 4 + 4) / 2)


@pytest.mark.slow
def test_a_run_learns_its_lessons_and_says_so(tiny_recipe: Recipe, tmp_path: Path) -> None:
    unlabelled = tuple(Example(f"the queue {number} is not bad", {}) for number in range(40))
    answers = {example_key(example): (0.02, 0.98) for example in unlabelled}
    recipe = tiny_recipe.changed(data__tasks=["sentiment"], training__epochs=1)
    taught = Lessons({"sentiment": answers}, unlabelled, share=0.5, temperature=1.0)
    plain = train(recipe, tmp_path / "plain")
    student = train(recipe, tmp_path / "student", lessons=taught)
    hashes = read_trained_texts(tmp_path / "student")
    assert hashes is not None
    assert {text_hash(example) for example in unlabelled} <= hashes
    assert not {text_hash(example) for example in unlabelled} & (
        read_trained_texts(tmp_path / "plain") or set()
    )
    facts = load_model(tmp_path / "student").facts
    assert facts["key"] != plain.model.facts["key"]
    assert any("40 texts without labels" in note for note in student.notes)
    stated = json.loads((tmp_path / "student" / "litotes.json").read_text())
    assert len(stated["facts"]["class_weights"]["sentiment"]) == 2
    again = train(recipe, tmp_path / "student", lessons=taught, resume=True)
    assert again.model.facts["key"] == facts["key"]


def test_the_loop_listens_to_its_teacher(tiny_recipe: Recipe, tmp_path: Path) -> None:
    """Texts without a label are learned from the teacher alone, and only with a share for it."""

    cpu = torch.device("cpu")
    settings = tiny_recipe.training.model_copy(
        update={"epochs": 15, "batch_texts": 4, "learning_rate": 3e-3}
    )
    learned = {}
    for share in (0.0, 1.0):
        loaded = pretrained.load(tiny_recipe.model.encoder)
        torch.manual_seed(0)
        classifier = Classifier(loaded.encoder, [SENTIMENT], head="mean", dropout=0.0)
        examples = [Example(text, {}) for text in ("great tea", "bad queue", "love it", "hate it")]
        source = Inputs(make_text_set(examples, [SENTIMENT], loaded.tokenizer), cpu)
        wanted = torch.tensor([[-2.0, 2.0], [2.0, -2.0]]).repeat(2, 1)
        context = RunContext(cpu, tmp_path / str(share), "key")
        teacher = Teacher({"sentiment": wanted}, share)
        objective = Classification(classifier, source, settings, context, seed=0, teacher=teacher)
        Trainer(objective, context).run()
        learned[share] = all_logits(source, classifier)["sentiment"].argmax(-1).tolist()
    assert learned[1.0] == [1, 0, 1, 0]
    assert learned[0.0] != [1, 0, 1, 0]
