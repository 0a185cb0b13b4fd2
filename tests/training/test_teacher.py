"""A teacher's answers in the loss."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from litotes.training.losses import Teacher
from litotes.training.recipe import Recipe


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
    teacher = Teacher({"mood": torch.tensor([[1.0, 0.0], [0.0, 1.0]])}, share=0.25)
    logits, labels, weights = torch.tensor([[0.0, 1.0]]), torch.tensor([0.8]), torch.tensor([3.0])
    mixed = teacher.mix_in(labels, logits, [1], "mood", weights)
    # the teacher agrees with the second text's answer
    torch.testing.assert_close(mixed, 0.75 * labels)
    other = teacher.mix_in(labels, logits, [0], "mood", weights)
    torch.testing.assert_close(
        other, 0.75 * labels + 0.25 * 3 * teacher.differences(logits, torch.tensor([[1.0, 0.0]]))
    )


def test_a_number_is_imitated_by_squared_error() -> None:
    assert Teacher({}, share=1.0).differences(
        torch.tensor([[2.0]]), torch.tensor([[0.5]])
    ).item() == pytest.approx(2.25)


def test_the_loop_listens_to_its_teacher(tiny_recipe: Recipe, tmp_path: Path) -> None:
    """Texts without a label are learned from the teacher alone, and only with a share for it."""
    from litotes.core.values import Example
    from litotes.data.corpus import SENTIMENT
    from litotes.encoder import pretrained
    from litotes.encoder.packing import make_text_set
    from litotes.model.classifier import Classifier
    from litotes.training.classification import train_classifier
    from litotes.training.inputs import PieceInputs, all_logits
    from litotes.training.trainer import RunContext

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
        source = PieceInputs(make_text_set(examples, [SENTIMENT], loaded.tokenizer), cpu)
        wanted = torch.tensor([[-2.0, 2.0], [2.0, -2.0]]).repeat(2, 1)
        context = RunContext(cpu, tmp_path / str(share), "key")
        train_classifier(
            classifier,
            source,
            settings,
            seed=0,
            context=context,
            teacher=Teacher({"sentiment": wanted}, share),
        )
        learned[share] = all_logits(source, classifier)["sentiment"].argmax(-1).tolist()
    assert learned[1.0] == [1, 0, 1, 0]
    assert learned[0.0] != [1, 0, 1, 0]
