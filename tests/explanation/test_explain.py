"""An explanation is of the answer `predict` gives, whatever the model."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from made_explanations import explained
from test_word_removal import MANY, planted, result_of
from tiny_models import TEXTS, model_of

from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.encoder import pretrained
from litotes.explanation.analyses.attribution import AttributionAnalysis, agreement
from litotes.explanation.attribution import ASKING, METHODS
from litotes.explanation.explain import METHOD
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import Model
from litotes.prediction.predictor import Predictor

SENTIMENT = Task("sentiment", ("negative", "positive"))
SARCASM = Task("sarcasm", ("literal", "sarcastic"))
STARS = Task("stars", ())
QUICK = {"methods": ("standard",), "method": "standard", "faithfulness": False}


@pytest.mark.parametrize("text", TEXTS)
def test_the_answer_is_that_of_predict(model: Model, text: str) -> None:
    calibrated = replace(model, calibration={"sentiment": Calibration(1.7, 0.6, 20)})
    predictor = Predictor(calibrated, device="cpu")
    explanation = predictor.explain(text, **QUICK)
    (expected,) = predictor.predict([text])
    assert explanation.answers == expected.answers
    assert explanation.answer.probability == pytest.approx(
        explanation.probabilities[str(explanation.answer.label)], abs=1e-6
    )
    assert sum(explanation.probabilities.values()) == pytest.approx(1)
    assert len(explanation.layers) == 2
    for layer, maps in enumerate(explanation.layers):
        assert (
            maps.standard.shape
            == maps.effective.shape
            == (len(maps.heads), len(maps.origin), len(maps.origin))
        )
        assert sum(place >= 0 for place in maps.origin) == len(explanation.trace.there(layer))


def test_all_methods_with_their_faithfulness(model: Model) -> None:
    explanation = Predictor(model, device="cpu").explain(TEXTS[0])
    assert list(explanation.shadings) == list(METHODS)
    assert explanation.method == METHOD
    for name, shading in explanation.shadings.items():
        assert (shading.method, shading.is_signed) == (name, METHODS[name].is_signed)
        assert len(shading.weights) == len(explanation.read.words)
        assert shading.faithfulness is not None
        assert shading.faithfulness.deletion.values[0] == pytest.approx(
            explanation.answer.probability, abs=1e-5
        )
    content = json.loads(json.dumps(explanation.as_json(), allow_nan=False))
    assert content["shadings"]["integrated_gradients"]["error"].keys() == {
        "completeness_delta",
        "answer_less_baseline",
    }
    assert "layers" not in explanation.as_json(maps=False)


def test_one_task_of_several_and_of_several_models(tiny: pretrained.Pretrained) -> None:
    both = Predictor(
        model_of(tiny, SENTIMENT, STARS), model_of(tiny, SARCASM, head="linear"), device="cpu"
    )
    assert both.explain("the tea", **QUICK).task == "sentiment"
    explanation = both.explain("the tea", task="sarcasm", **QUICK)
    assert explanation.model == "tiny, linear"
    assert list(explanation.answers) == ["sentiment", "stars", "sarcasm"]
    number = both.explain("the tea", task="stars")
    assert number.probabilities == {}
    assert isinstance(number.answer.label, float)
    faithfulness = number.shadings["occlusion"].faithfulness
    assert faithfulness is not None
    assert faithfulness.deletion.values[0] == pytest.approx(number.answer.label, abs=1e-5)


def test_a_pair_is_explained_as_one(dense: Model) -> None:
    explanation = Predictor(dense, device="cpu").explain("the tea", pair="is not bad", **QUICK)
    assert [word.is_pair for word in explanation.read.words] == [False, False, True, True, True]
    assert (
        explanation.answers
        == Predictor(dense, device="cpu").predict(["the tea"], pairs=["is not bad"])[0].answers
    )


def test_one_known_word_of_a_pair_is_enough(dense: Model) -> None:
    explanation = Predictor(dense, device="cpu").explain("😀", pair="tea", **QUICK)
    assert [word.written for word in explanation.read.words] == ["😀", "tea"]


def test_a_text_too_long_is_explained_as_it_was_read(dense: Model) -> None:
    explanation = Predictor(dense, device="cpu").explain("tea is bad " * 100, **QUICK)
    assert explanation.as_json(maps=False)["truncated"] is True
    assert len(explanation.read.words) == 94
    assert len(explanation.read.pieces.ids) == 96


def test_mistakes_are_told(dense: Model) -> None:
    predictor = Predictor(dense, device="cpu")
    for text, options, told in (
        ("  ", {}, "empty"),
        ("tea", {"task": "sarcasm"}, "no task 'sarcasm'"),
        ("tea", {"method": "rolout"}, "Did you mean 'rollout'"),
        ("tea", {"methods": ["oclusion"]}, "Did you mean 'occlusion'"),
        ("tea", {"pair": " "}, "pair is empty"),
        ("\u200b", {}, "no word"),
        ("😀 😀", {}, "no word that it knows"),
        ("😀", {"pair": "\u200b"}, "no word that it knows"),
    ):
        with pytest.raises(UserError, match=told):
            predictor.explain(text, **options)


def pushes_of(model: Model, texts: list[str], **options: object) -> Any:
    return result_of(AttributionAnalysis(model, **options), texts)  # type: ignore[arg-type]


def test_planted_words_push_towards_their_labels(tiny: pretrained.Pretrained) -> None:
    found = pushes_of(planted(tiny), MANY, method="integrated_gradients", n_compared=3)
    towards = found.towards["sentiment"]
    assert (towards["positive"][0].word, towards["negative"][0].word) == ("love", "hate")
    assert all(
        push.n == 5 and push.weight > push.half_width >= 0
        for push in (towards["positive"][0], towards["negative"][0])
    )
    assert (found.n_compared, found.n_texts, found.n_seen) == (3, 10, 10)
    assert any("Towards positive (sentiment) push love" in finding for finding in found.findings())


def test_every_label_of_three_and_a_number_have_their_words(tiny: pretrained.Pretrained) -> None:
    mood, stars = Task("mood", ("bad", "fair", "good")), planted(tiny, STARS)
    found = pushes_of(model_of(tiny, mood), MANY, n_compared=0)
    assert list(found.towards["mood"]) == ["bad", "fair", "good"]
    found = pushes_of(stars, MANY, method="occlusion", n_compared=0)
    assert (found.towards["stars"]["higher"][0].word, found.towards["stars"]["lower"][0].word) == (
        "love",
        "hate",
    )


def test_a_text_has_one_say_about_a_word(tiny: pretrained.Pretrained) -> None:
    found = pushes_of(
        planted(tiny), ["love " * 9 + "tea", *MANY[:3]], method="occlusion", n_compared=0
    )
    assert all(push.word != "love" for push in found.towards["sentiment"]["positive"])
    assert Counter(" ".join(MANY).split())["love"] == 5


def test_full_stops_are_no_finding(tiny: pretrained.Pretrained) -> None:
    """Even where they push."""
    model = planted(tiny)
    texts = [text.replace("love", ".").replace("hate", ",") for text in MANY]
    plain = pushes_of(model, MANY, method="occlusion", n_compared=0)
    marked = pushes_of(model, texts, method="occlusion", n_compared=0)
    told = [push.word for words in marked.towards["sentiment"].values() for push in words]
    assert not {".", ","} & set(told)
    nothing = replace(plain, towards={"sentiment": {"negative": (), "positive": ()}})
    assert plain.nothing_to_say() is None
    assert (
        nothing.nothing_to_say()
        == "finds no word that occurs in 5 texts and pushes them all one way"
    )


def test_methods_are_compared_where_enough_texts_tell_words_apart(dense: Model) -> None:
    analysis = AttributionAnalysis(dense, compared=["occlusion", "standard"])
    apart, alike = torch.ones(2, 2), torch.eye(2)
    alike[alike == 0] = math.nan  # one text of six has an opinion on both
    for table in (apart, *(5 * [alike])):
        analysis.agreement.add(table)
        analysis.n_compared += 1
    assert analysis.result().agreement == [[1.0, None], [None, 1.0]]


def test_agreement_is_a_rank_correlation() -> None:
    weighed = {
        "occlusion": np.array([1.0, -5.0, 0.5]),
        "gradient_input": np.array([2.0, -1.0, 0.1]),
        "standard": np.array([0.2, 0.9, 0.1]),
    }
    assert agreement(weighed, "occlusion", "gradient_input") == pytest.approx(1.0)
    assert agreement(weighed, "occlusion", "standard") == pytest.approx(1.0)  # by their sizes
    assert agreement(weighed, "gradient_input", "standard") == pytest.approx(0.5)
    assert np.isnan(
        agreement({name: values[:2] for name, values in weighed.items()}, "occlusion", "standard")
    )


def test_a_method_without_sign_cannot_push(dense: Model) -> None:
    with pytest.raises(UserError, match="rollout does not say which way"):
        AttributionAnalysis(dense, method="rollout")


def test_a_notebook_shows_the_answer_and_the_shaded_words(tiny: pretrained.Pretrained) -> None:
    explanation = explained(tiny, "I <b>love</b> it & the tea", 'a "pair"')
    shown = explanation._repr_html_()
    assert "sarcasm: sarcastic, 87 % sure" in shown
    assert "integrated gradients (blue: for the answer" in shown
    assert "<b>love" not in shown
    assert shown.count("<p dir=") == 2  # the text and its pair
    assert "rgba(111,177,232," in shown
    assert "rgba(245,160,79," in shown
    for outside in ("<script", "<link", "http", "class=", "id="):
        assert outside not in shown
    text = re.sub(r"<[^>]+>", "", shown)
    assert "I &lt;b&gt;love&lt;/b&gt; it &amp; the tea" in text


def test_methods_that_only_ask_are_named() -> None:
    """Those of `ASKING`, and no other, take a question that shows nothing of the inside."""
    asking = [name for name in METHODS if METHODS[name].__module__.endswith(".attribution")]
    assert list(ASKING) == asking


def test_the_first_texts_are_weighed_and_this_is_said(tiny: pretrained.Pretrained) -> None:
    found = pushes_of(planted(tiny), MANY, method="occlusion", n_texts=4, n_compared=0)
    assert (found.n_texts, found.n_seen) == (4, 10)
    assert found.findings()[0] == "Words were weighed in the first 4 of 10 texts."
