"""What a saving costs: the search for shares, and losses with their intervals."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from litotes.core.values import Example
from litotes.data.corpus import SENTIMENT
from litotes.encoder.packing import TextSet, make_text_set
from litotes.encoder.pretrained import Pretrained
from litotes.encoder.reshaping import rebuild_encoder
from litotes.model.classifier import Classifier
from litotes.pruning.cost import flops
from litotes.pruning.frontier import Loss, join_tasks, measure_loss
from litotes.pruning.losses import Answers
from litotes.pruning.phases import N_CHANGES, POWERS, Search, first_texts
from litotes.training.inputs import Inputs, all_logits
from litotes.training.losses import Teacher

LABELS = ("negative", "positive")


def classifier_of(tiny: Pretrained, **choices: object) -> Classifier:
    torch.manual_seed(0)
    return Classifier(
        rebuild_encoder(tiny.encoder, **choices), [SENTIMENT], head="mean", dropout=0.0
    ).eval()


def texts_of(tiny: Pretrained, n: int = 12) -> TextSet:
    words = ["the", "great", "tea", "is", "not", "bad", "and", "it", "love", "a", "queue"]
    examples = [
        Example(" ".join(words[place % 5 : place % 5 + 6]), {"sentiment": LABELS[place % 2]})
        for place in range(n)
    ]
    return make_text_set(examples, [SENTIMENT], tiny.tokenizer)


@pytest.mark.slow
@pytest.mark.parametrize("target", [1.3, 2.0, 3.0])
def test_the_search_meets_its_target_and_tells_what_it_tries(
    tiny: Pretrained, target: float
) -> None:
    dense, pruned = classifier_of(tiny), classifier_of(tiny, pruning="learned")
    texts = texts_of(tiny)
    source = Inputs(texts, torch.device("cpu"))
    teacher = Teacher(all_logits(source, dense), 0.9)
    told: list[int] = []
    found = Search(pruned, source, teacher, dense=dense, seed=0).for_target(
        target, watch=told.append
    )
    pruned.encoder.pruning.shares = found.shares
    ratio = flops(dense.encoder, texts.lengths).total / flops(pruned.encoder, texts.lengths).total
    assert target <= ratio < 1.35 * target
    assert told == list(range(1, len(POWERS) + N_CHANGES + 1))
    assert found.divergence >= 0
    assert all(
        after <= before for before, after in zip(found.shares, found.shares[1:], strict=False)
    )


def test_the_search_takes_the_best_of_what_it_tries(
    tiny: Pretrained, monkeypatch: pytest.MonkeyPatch
) -> None:
    dense, pruned = classifier_of(tiny), classifier_of(tiny, pruning="learned")
    source = Inputs(texts_of(tiny), torch.device("cpu"))
    search = Search(pruned, source, Teacher(all_logits(source, dense), 0.9), dense=dense, seed=0)
    tried = []
    honest = Search._try
    monkeypatch.setattr(Search, "_try", lambda *a: tried.append(honest(*a)) or tried[-1])
    found = search.for_target(2.0, watch=lambda _: None)
    assert (
        found.divergence
        == min(one.divergence for one in tried)
        < max(one.divergence for one in tried)
    )


def test_no_saving_needs_no_removal(tiny: Pretrained) -> None:
    dense, pruned = classifier_of(tiny), classifier_of(tiny, pruning="learned")
    source = Inputs(texts_of(tiny), torch.device("cpu"))
    found = Search(
        pruned, source, Teacher(all_logits(source, dense), 0.9), dense=dense, seed=0
    ).for_target(1.0, watch=lambda _: None)
    assert found.divergence < 1e-9


def loss_of(dense: Tensor, pruned: Tensor) -> Loss:
    """What is lost on texts of two labels in turn; dense, pruned: class numbers, (text,)."""
    gold = torch.arange(len(dense)) % 2
    labels = torch.stack([dense, pruned])
    given = Answers(gold.numpy(), labels.numpy(), one_hot(labels, 2).double().numpy())
    return measure_loss({"sentiment": given}, 1, budget=0.5)


def test_a_loss_has_its_interval() -> None:
    right = torch.arange(40) % 2
    worse = right.clone()
    worse[:4] = 1 - worse[:4]  # 4 of 40 wrong, two of each label
    same = loss_of(right, right)
    assert (same.points, same.interval, same.chance_within) == (0.0, (0.0, 0.0), 1.0)
    loss = loss_of(right, worse)
    assert loss.points == pytest.approx(10.0)
    assert 0 <= loss.interval[0] < 10 < loss.interval[1]
    assert loss.chance_within < 0.1
    gain = loss_of(worse, right)
    assert gain.points == pytest.approx(-10.0)
    assert gain.chance_within == 1.0


def test_every_task_must_be_within_the_budget() -> None:
    generator = np.random.default_rng(0)
    draws = {"one": generator.normal(0, 1, 2000), "other": generator.normal(0, 1, 2000)}
    joined = join_tasks({"one": 0.0, "other": 0.4}, draws, budget=0.5)
    assert joined.points == joined.by_task["other"].points
    alone = join_tasks({"one": 0.0}, {"one": draws["one"]}, budget=0.5)
    assert joined.chance_within < alone.chance_within - 0.1


def test_first_texts(tiny: Pretrained) -> None:
    some = first_texts(texts_of(tiny), 5)
    assert len(some) == len(some.targets["sentiment"]) == len(some.groups) == 5
