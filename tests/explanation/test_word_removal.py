"""Faithfulness: where the words behind an answer are known, the method that names them wins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from test_attribution import question_of
from tiny_models import TEXTS, model_of
from torch import nn

from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.encoder import pretrained
from litotes.explanation.analyses.analysis import Analysis
from litotes.explanation.analyses.faithfulness import FEWEST, FaithfulnessAnalysis, bootstrap_means
from litotes.explanation.attribution import (
    METHODS,
    SHARES,
    Question,
    by_weight,
    faithfulness,
    n_words,
    order_of,
)
from litotes.explanation.observation import observe
from litotes.model.checkpoint import Model

STARS = Task("stars", ())
WORDS = ("the", "tea", "and", "a", "queue", "is", "it", "not", "great", "bad")
TRUE = ("integrated_gradients", "occlusion")
"""Methods that must find a planted word; gradients alone need not, for a norm hides the length of
what it is given.
"""
PLANTED = {"love": 3.0, "hate": -2.0}


def planted(tiny: pretrained.Pretrained, *tasks: Task) -> Model:
    """A model of which everything is known: blocks pass on what they get, and all pieces but `love`
    and `hate` are alike.

    Every piece is n, those two n ± s, normed; the head reads s off their mean.
    """
    model = model_of(tiny, *(tasks or (Task("sentiment", ("negative", "positive")),)))
    encoder, vocabulary = model.classifier.encoder, tiny.tokenizer._tokenizer.get_vocab()
    signs = torch.tensor([1.0, -1.0] * (encoder.spec.width // 2))
    neutral = torch.tensor([1.0, 1.0, -1.0, -1.0] * (encoder.spec.width // 4))
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.zero_()
        for norm in (module for module in encoder.modules() if isinstance(module, nn.LayerNorm)):
            norm.weight.fill_(1.0)
        encoder.embeddings.piece.weight[:] = neutral
        for word, worth in PLANTED.items():
            encoder.embeddings.piece.weight[vocabulary[word]] = neutral + worth * signs
        (head,) = model.classifier.heads.values()
        assert isinstance(head.output, nn.Linear)
        head.output.weight.zero_()
        head.output.bias.zero_()
        head.output.weight[-1] = signs
    return model


def text_of(planted_word: str, place: int, n: int = 10) -> str:
    others = [WORDS[(place + k) % len(WORDS)] for k in range(n - 1)]
    return " ".join([*others[:place], planted_word, *others[place:]])


def orders_of(question: Question) -> dict[str, tuple[int, ...]]:
    """The planted word first, in the middle, and last."""
    (known,) = [place for place, word in enumerate(question.read.words) if word.written in PLANTED]
    others = [place for place in range(len(question.read.words)) if place != known]
    return {
        "first": (known, *others),
        "middle": (*others[:4], known, *others[4:]),
        "last": (*others, known),
    }


def test_whoever_puts_the_planted_word_first_wins(tiny: pretrained.Pretrained) -> None:
    question = question_of(planted(tiny), text_of("love", 4))
    assert question.label == 1
    found = faithfulness(question, orders_of(question))
    assert (
        found["first"].comprehensiveness
        > found["middle"].comprehensiveness
        > found["last"].comprehensiveness
    )
    assert (
        found["first"].sufficiency_loss
        < found["middle"].sufficiency_loss
        < found["last"].sufficiency_loss
    )
    assert found["first"].deletion.values[0] > 0.5
    # nothing that speaks is left
    assert found["first"].deletion.values[1:] == pytest.approx([0.5] * 7)
    # ever more of it is `love`
    assert found["last"].deletion.values[:-1] == tuple(sorted(found["last"].deletion.values[:-1]))


def test_both_curves_begin_and_end_alike(tiny: pretrained.Pretrained) -> None:
    question = question_of(planted(tiny), text_of("hate", 2))
    assert question.label == 0
    for one in faithfulness(question, orders_of(question)).values():
        assert one.deletion.shares == one.sufficiency.shares == SHARES
        assert one.deletion.values[0] == pytest.approx(one.sufficiency.values[-1])
        assert one.deletion.values[-1] == pytest.approx(0.5)
        assert one.sufficiency.values[0] == pytest.approx(0.5)
        drops = [one.deletion.values[0] - value for value in one.deletion.values[1:-1]]
        assert one.comprehensiveness == pytest.approx(sum(drops) / 6)


@pytest.mark.parametrize("name", TRUE)
@pytest.mark.parametrize("word", sorted(PLANTED))
def test_the_planted_word_is_found(name: str, word: str, tiny: pretrained.Pretrained) -> None:
    question = question_of(planted(tiny), text_of(word, 5))
    weighed = METHODS[name]().weigh(question)
    first = by_weight(weighed.weights)[0]
    assert question.read.words[first].written == word
    assert weighed.weights[first] > 0.05


@pytest.mark.parametrize("name", TRUE)
def test_what_speaks_against_the_answer_comes_last(name: str, tiny: pretrained.Pretrained) -> None:
    question = question_of(planted(tiny), "love the love is love it hate a tea")
    weighed = METHODS[name]().weigh(question)
    assert question.label == 1
    first, *_, last = by_weight(weighed.weights)
    assert question.read.words[last].written == "hate"
    assert weighed.weights[last] < 0 < weighed.weights[first]


def test_shares_are_rounded_up_and_not_by_floating_point() -> None:
    assert [n_words(share, 30) for share in SHARES] == [0, 2, 3, 6, 9, 15, 21, 30]
    assert [n_words(share, 10) for share in SHARES] == [0, 1, 1, 2, 3, 5, 7, 10]


def test_words_really_leave_and_special_pieces_stay(dense: Model) -> None:
    question = question_of(dense, "queueing is bad", pair="the tea")
    written = dict(zip(question.read.pieces.ids, question.read.written, strict=True))
    left = question.without([0, 3])
    assert [written[piece] for piece in left.ids] == ["[CLS]", "is", "bad", "[SEP]", "tea", "[SEP]"]
    assert left.segments == [0, 0, 0, 0, 1, 1]
    assert [written[piece] for piece in question.without(range(5)).ids] == [
        "[CLS]",
        "[SEP]",
        "[SEP]",
    ]


def test_values_are_the_probabilities_of_the_answer_first_given(dense: Model) -> None:
    question = question_of(dense, "the tea is not great")
    (found,) = faithfulness(question, {"any": (3, 0, 1, 2, 4)}).values()
    (read,) = dense.tokenizer.read(["the tea is great"])
    logits = observe(dense, [read])[0].logits["sentiment"]
    assert found.deletion.values[1] == pytest.approx(
        float(logits.softmax(-1)[question.label]), abs=1e-6
    )


def test_a_regression_is_told_in_its_own_unit(tiny: pretrained.Pretrained) -> None:
    question = question_of(planted(tiny, STARS), text_of("love", 0))
    found = faithfulness(question, orders_of(question))
    assert found["first"].deletion.values[0] > 1
    assert found["first"].deletion.values[1:] == pytest.approx([0.0] * 7, abs=1e-5)
    assert found["first"].comprehensiveness > found["last"].comprehensiveness


def result_of(analysis: Analysis, texts: list[str]) -> Any:
    """Of the texts, each looked at by itself."""
    for read in analysis.model.tokenizer.read(texts):
        analysis.add(observe(analysis.model, [read])[0])
    return analysis.result()


def ranking_of(model: Model, texts: list[str], **options: object) -> Any:
    return result_of(FaithfulnessAnalysis(model, **options), texts)  # type: ignore[arg-type]


MANY = [text_of(("love", "hate")[place % 2], place) for place in range(10)]


def test_true_words_beat_random_ones_over_a_corpus(tiny: pretrained.Pretrained) -> None:
    ranking = ranking_of(planted(tiny), MANY)
    first, places = (
        ranking.methods[0],
        {one.method: place for place, one in enumerate(ranking.methods)},
    )
    assert first.is_signed
    assert first.over_random.low is not None
    assert first.over_random.low > 0.02
    assert max(places[name] for name in TRUE) == 1
    for one in ranking.methods:
        assert one.lead.value == pytest.approx(
            one.comprehensiveness.value - one.sufficiency_loss.value
        )
        assert one.behind_best.value == pytest.approx(first.lead.value - one.lead.value)
    assert [one.lead.value for one in ranking.methods] == sorted(
        (one.lead.value for one in ranking.methods), reverse=True
    )
    said = ranking.findings()
    assert said[0].startswith(f"{first.method} deserves most belief (sentiment, 10 texts)")
    assert any(
        finding.startswith("Not told apart from random words") and "standard" in finding
        for finding in said
    )


def test_methods_that_put_the_best_words_last_are_found_out(
    tiny: pretrained.Pretrained, monkeypatch: pytest.MonkeyPatch
) -> None:
    weigh = METHODS["occlusion"].weigh

    class Upside(METHODS["occlusion"]):  # type: ignore[misc]
        """Says the opposite of occlusion."""

        def weigh(self, question: Question) -> object:
            right = weigh(self, question)
            return type(right)(tuple(-weight for weight in right.weights))

    monkeypatch.setitem(METHODS, "upside", Upside)
    ranking = ranking_of(planted(tiny), MANY, methods=("upside", "occlusion"))
    assert [one.method for one in ranking.methods] == ["occlusion", "random", "upside"]
    assert any(finding == "Worse than random words: upside." for finding in ranking.findings())


def test_a_wrong_method_or_task_is_told(dense: Model) -> None:
    with pytest.raises(UserError, match="Did you mean 'occlusion'"):
        FaithfulnessAnalysis(dense, methods=("oclusion",))
    with pytest.raises(UserError, match="sentiment"):
        FaithfulnessAnalysis(dense, task="sarcasm")


def test_intervals_cover_the_mean_about_as_often_as_they_say() -> None:
    found = bootstrap_means(np.random.default_rng(0).normal(1.0, 1.0, (60, 400)))
    share = sum((one.low or 0) <= 1.0 <= (one.high or 0) for one in found) / len(found)
    assert 0.9 <= share <= 0.98
    assert all(one.low is None for one in bootstrap_means(np.ones((FEWEST - 1, 2))))


def test_a_number_is_judged_by_how_far_it_moves(tiny: pretrained.Pretrained) -> None:
    """Which way the scale runs is nobody's merit."""
    model = model_of(tiny, Task("stars", ()))
    (read,) = model.tokenizer.read([TEXTS[2]])
    found = {}
    for sign in (1, -1):
        with torch.no_grad():
            for parameter in model.classifier.heads.parameters():
                parameter.mul_(-1 if sign < 0 else 1)
        question = Question.about(model, observe(model, [read])[0], model.classifier.tasks["stars"])
        weighed = METHODS["gradient_input"]().weigh(question)
        found[sign] = faithfulness(question, {"gradient_input": order_of(question, weighed)})[
            "gradient_input"
        ]
    assert found[1].comprehensiveness == pytest.approx(found[-1].comprehensiveness, abs=1e-5)
    assert found[1].comprehensiveness > 0


def test_the_first_texts_are_measured_and_this_is_said(tiny: pretrained.Pretrained) -> None:
    ranking = ranking_of(planted(tiny), MANY, n_texts=6, methods=("gradient_input",))
    assert (ranking.n_texts, ranking.n_seen) == (6, 10)
    assert "the first 6 of 10 texts" in ranking.findings()[0]
    few = ranking_of(planted(tiny), MANY[: FEWEST - 1], methods=("gradient_input",))
    assert few.methods[0].lead.low is None
    assert "too few" in few.findings()[0]
    assert ranking_of(planted(tiny), [], methods=()).findings() == (
        "No text had a word: there was nothing to take away.",
    )
