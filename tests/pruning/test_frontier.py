"""What a saving costs: the search for shares, and losses with their intervals."""

from __future__ import annotations

import pytest
import torch

from litotes.core.errors import UserError
from litotes.core.progress import ignore_progress
from litotes.core.values import Example, Task
from litotes.data.tasks import SENTIMENT
from litotes.encoders.pretrained import Pretrained
from litotes.encoders.reshaping import rebuild_encoder
from litotes.model.classifier import Classifier
from litotes.pruning.cost import flops
from litotes.pruning.frontier import measure_loss, speed_ratios
from litotes.pruning.search import N_CHANGES, POWERS, Search, first_texts
from litotes.text.packing import TextSet, make_text_set
from litotes.training.inputs import PieceInputs, all_logits
from litotes.training.teacher import Teacher

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
    source = PieceInputs(texts, torch.device("cpu"))
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
    source = PieceInputs(texts_of(tiny), torch.device("cpu"))
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
    source = PieceInputs(texts_of(tiny), torch.device("cpu"))
    found = Search(
        pruned, source, Teacher(all_logits(source, dense), 0.9), dense=dense, seed=0
    ).for_target(1.0, watch=lambda _: None)
    assert found.divergence < 1e-9


def test_a_loss_has_its_interval(tiny: Pretrained) -> None:
    classifier, texts = classifier_of(tiny), texts_of(tiny, 40)
    right = torch.nn.functional.one_hot(texts.targets["sentiment"], 2).float()
    worse = right.clone()
    worse[:4] = worse[:4].flip(1)  # 4 of 40 wrong, two of each label
    same = measure_loss(classifier, texts, {"sentiment": right}, {"sentiment": right}, budget=0.5)
    assert (same.points, same.interval, same.chance_within) == (0.0, (0.0, 0.0), 1.0)
    loss = measure_loss(classifier, texts, {"sentiment": right}, {"sentiment": worse}, budget=0.5)
    assert loss.points == pytest.approx(10.0)
    assert 0 <= loss.interval[0] < 10 < loss.interval[1]
    assert loss.chance_within < 0.1
    gain = measure_loss(classifier, texts, {"sentiment": worse}, {"sentiment": right}, budget=0.5)
    assert gain.points == pytest.approx(-10.0)
    assert gain.chance_within == 1.0


def test_numbers_alone_cannot_choose(tiny: Pretrained) -> None:
    classifier = Classifier(tiny.encoder, [Task("score", ())], head="mean", dropout=0.0)
    with pytest.raises(UserError, match="macro-F1"):
        measure_loss(classifier, texts_of(tiny), {}, {}, budget=0.5)


def test_speeds_are_ratios_to_dense(tiny: Pretrained) -> None:
    dense = classifier_of(tiny)
    ratios = speed_ratios(
        dense,
        [dense, classifier_of(tiny, pruning="learned")],
        texts_of(tiny),
        n_rounds=1,
        watch=ignore_progress,
    )
    assert len(ratios) == 2
    assert all(ratio > 0 for ratio in ratios)


def test_first_texts(tiny: Pretrained) -> None:
    some = first_texts(texts_of(tiny), 5)
    assert len(some) == len(some.targets["sentiment"]) == len(some.groups) == 5
