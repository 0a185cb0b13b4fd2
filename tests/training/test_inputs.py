from __future__ import annotations

from dataclasses import replace

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


@pytest.fixture(params=["linear", "mean"])
def classifier(request: pytest.FixtureRequest, tiny: Pretrained) -> Classifier:
    return Classifier(
        tiny.encoder, list(load("sampler").tasks.values()), head=request.param, dropout=0.1
    )


@pytest.mark.parametrize("layer", [1, 2])
def test_kept_layers_give_the_same_logits(
    classifier: Classifier, texts: TextSet, layer: int
) -> None:
    whole = all_logits(Inputs(texts, CPU), classifier)
    frozen = HiddenInputs(texts, CPU, classifier=classifier, layer=layer)
    kept = all_logits(frozen, classifier)
    for task in whole:
        torch.testing.assert_close(kept[task], whole[task], atol=1e-5, rtol=1e-5)


def test_frozen_layers_do_not_learn(classifier: Classifier) -> None:
    freeze(classifier, 1)
    learning = {
        name for name, parameter in classifier.named_parameters() if parameter.requires_grad
    }
    assert all(name.startswith(("encoder.blocks.1.", "heads.")) for name in learning)
    assert any(name.startswith("encoder.blocks.1.") for name in learning)


SHARED = {
    "mpnet": {"n_relative_buckets": 8},
    "deberta-v2": {"position_terms": ("c2p", "p2c"), "farthest": 20},
    "modernbert": {"norm_first": True, "rotary_base": 100.0},
}


@pytest.mark.parametrize("family", SHARED)
def test_what_frozen_layers_share_with_others_is_frozen(
    tiny: Pretrained, texts: TextSet, family: str
) -> None:
    spec = replace(tiny.encoder.spec, family=family, **SHARED[family])
    tasks = list(load("sampler").tasks.values())
    classifier = Classifier(Encoder(spec), tasks, head="mean", dropout=0.1)
    test_kept_layers_give_the_same_logits(classifier, texts, 2)
    freeze(classifier, 1)
    learning = {
        name for name, parameter in classifier.named_parameters() if parameter.requires_grad
    }
    assert all(
        name.startswith(("encoder.blocks.1.", "encoder.final_norm.", "heads.")) for name in learning
    )


def test_more_frozen_layers_than_there_are(classifier: Classifier) -> None:
    with pytest.raises(UserError, match="2 layers"):
        freeze(classifier, 3)


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
