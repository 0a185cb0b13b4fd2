"""Attention heads a model can do without."""

from __future__ import annotations

import pytest
import torch

from litotes.core.values import Example
from litotes.data.corpus import SENTIMENT
from litotes.encoder.packing import make_text_set
from litotes.encoder.pretrained import Pretrained
from litotes.model.classifier import Classifier
from litotes.training.inputs import Inputs
from litotes.training.sensitivity import head_sensitivity, heads_to_keep


def test_a_head_that_says_nothing_is_not_needed(tiny: Pretrained) -> None:
    classifier = Classifier(tiny.encoder, [SENTIMENT], head="mean", dropout=0.0)
    silent = classifier.encoder.blocks[1].attention.output.weight.data.view(32, 4, 8)
    silent[:, 2] = 0
    examples = [Example(text, {}) for text in ("great tea", "the queue is bad", "not a great love")]
    texts = Inputs(make_text_set(examples, [SENTIMENT], tiny.tokenizer), torch.device("cpu"))
    found = head_sensitivity(classifier, texts)
    assert found.shape == (2, 4)
    assert found[1, 2] == 0
    assert (found.flatten() > 0).sum() == 7
    torch.testing.assert_close(found.norm(dim=1), torch.ones(2))
    # it leaves nothing behind
    assert not classifier.encoder.blocks[0].attention.output._forward_pre_hooks


@pytest.mark.parametrize(
    ("share", "expected"), [(1.0, [[0, 1, 2], [0, 1, 2]]), (0.5, [[0, 1], [1]]), (0.01, [[0], [1]])]
)
def test_the_most_needed_heads_stay_and_one_in_every_block(
    share: float, expected: list[list[int]]
) -> None:
    sensitivity = torch.tensor([[0.9, 0.8, 0.3], [0.1, 0.2, 0.15]])
    assert heads_to_keep(sensitivity, share) == expected
