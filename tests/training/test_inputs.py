"""What a step computes from, frozen layers, and attention heads a model can do without."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.corpus import SENTIMENT
from litotes.data.sources import load
from litotes.encoder.encoder import Encoder
from litotes.encoder.packing import TextSet, make_text_set
from litotes.encoder.pretrained import Pretrained
from litotes.model.classifier import Classifier
from litotes.training.inputs import HiddenInputs, Inputs, all_logits, freeze
from litotes.training.sensitivity import head_sensitivity, heads_to_keep

CPU = torch.device("cpu")


@pytest.fixture
def texts(tiny: Pretrained) -> TextSet:
    corpus = load("sampler")
    return make_text_set(corpus.examples[:20], corpus.tasks.values(), tiny.tokenizer)


FAMILIES = {
    "bert": {},
    "mpnet": {"n_relative_buckets": 8},
    "deberta-v2": {"position_terms": ("c2p", "p2c"), "farthest": 20},
    "modernbert": {"norm_first": True, "rotary_base": 100.0},
}


@pytest.mark.parametrize("head", ["linear", "mean"])
@pytest.mark.parametrize("family", FAMILIES)
def test_kept_layers_give_the_same_logits_and_do_not_learn(
    tiny: Pretrained, texts: TextSet, family: str, head: str
) -> None:
    """Nor does what they share with the layers above."""
    spec = replace(tiny.encoder.spec, family=family, **FAMILIES[family])
    tasks = list(load("sampler").tasks.values())
    classifier = Classifier(Encoder(spec), tasks, head=head, dropout=0.1)
    whole = all_logits(Inputs(texts, CPU), classifier)
    for layer in (1, 2):
        frozen = HiddenInputs(texts, CPU, classifier=classifier, layer=layer)
        torch.testing.assert_close(all_logits(frozen, classifier), whole, atol=1e-5, rtol=1e-5)
    freeze(classifier, 0)
    assert all(parameter.requires_grad for parameter in classifier.parameters())
    freeze(classifier, 1)
    learning = {name for name, one in classifier.named_parameters() if one.requires_grad}
    above = ("encoder.blocks.1.", "encoder.final_norm.", "heads.")
    assert all(name.startswith(above) for name in learning)
    assert any(name.startswith("encoder.blocks.1.") for name in learning)


@pytest.mark.parametrize(
    ("choices", "below", "words"),
    [
        ({}, 3, "freeze_below = 3, but the encoder has 2 layers"),
        ({"n_layer_groups": 1}, 1, "its layers share their weights"),
        ({"pruning": "cascade"}, 1, "freeze_below does not go with pruning = cascade"),
    ],
)
def test_layers_that_cannot_be_frozen_are_refused(
    tiny: Pretrained, texts: TextSet, choices: dict[str, Any], below: int, words: str
) -> None:
    encoder = Encoder(replace(tiny.encoder.spec, **choices))
    classifier = Classifier(encoder, [SENTIMENT], head="mean", dropout=0.1)
    step = partial(HiddenInputs, texts, CPU, classifier=classifier, layer=below)
    if "pruning" not in choices:
        step = partial(freeze, classifier, below)
    with pytest.raises(UserError, match=words):
        step()


# Attention heads a model can do without


def test_a_head_that_says_nothing_is_not_needed(tiny: Pretrained) -> None:
    classifier = Classifier(tiny.encoder, [SENTIMENT], head="mean", dropout=0.0)
    silent = classifier.encoder.blocks[1].attention.output.weight.data.view(32, 4, 8)
    silent[:, 2] = 0
    examples = [Example(text, {}) for text in ("great tea", "the queue is bad", "not a great love")]
    texts = Inputs(make_text_set(examples, [SENTIMENT], tiny.tokenizer), CPU)
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
