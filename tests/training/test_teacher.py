"""A teacher's answers in the loss."""

from __future__ import annotations

from pathlib import Path

import torch

from litotes.training.losses import Teacher
from litotes.training.recipe import Recipe


def test_the_loop_listens_to_its_teacher(tiny_recipe: Recipe, tmp_path: Path) -> None:
    """Texts without a label are learned from the teacher alone, and only with a share for it."""
    from litotes.core.values import Example
    from litotes.data.corpus import SENTIMENT
    from litotes.encoder import pretrained
    from litotes.encoder.packing import make_text_set
    from litotes.model.classifier import Classifier
    from litotes.training.classification import Classification
    from litotes.training.inputs import Inputs, all_logits
    from litotes.training.objective import RunContext
    from litotes.training.trainer import Trainer

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
