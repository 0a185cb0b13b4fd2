from __future__ import annotations

from pathlib import Path

import pytest

from litotes.errors import UserError
from litotes.predictor import Predictor
from litotes.recipe import Recipe
from litotes.run import train

TEXTS = ["The tea is great.", "Hate it, hate it, hate it: the queue! " * 2, "ok", "x " * 300]


@pytest.fixture
def predictor(tiny_recipe: Recipe, tmp_path: Path) -> Predictor:
    return Predictor(train(tiny_recipe.changed(training__epochs=1), tmp_path / "run").model, device="cpu")


def test_a_text_alone_gets_the_answer_it_gets_in_a_batch(predictor: Predictor) -> None:
    together = predictor.predict(TEXTS)
    for text, expected in zip(TEXTS, together, strict=True):
        (alone,) = predictor.predict([text])
        assert alone.text == text
        for task, answer in alone.answers.items():
            assert answer.label == expected.answers[task].label
            assert answer.probability == pytest.approx(expected.answers[task].probability, abs=1e-5)


def test_truncation_is_reported(predictor: Predictor) -> None:
    assert [prediction.truncated for prediction in predictor.predict(TEXTS)] == [False, False, False, True]


def test_a_stream_equals_a_list(predictor: Predictor) -> None:
    many = [f"{text} {n}" for n in range(200) for text in TEXTS[:3]]
    assert list(predictor.stream(iter(many)))[::100] == predictor.predict(many)[::100]
    assert list(predictor.stream([])) == []


def test_an_empty_text_is_refused(predictor: Predictor) -> None:
    with pytest.raises(UserError, match="Text 2 is empty"):
        predictor.predict(["fine", "  \n"])


def test_probabilities_are_probabilities(predictor: Predictor) -> None:
    for prediction in predictor.predict(TEXTS):
        for answer in prediction.answers.values():
            assert answer.probability is not None
            assert 0.5 <= answer.probability <= 1.0


def test_not_a_model_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="litotes train"):
        Predictor.load(tmp_path)
    (tmp_path / "litotes.json").write_text("{")
    with pytest.raises(UserError, match="not readable"):
        Predictor.load(tmp_path)
    (tmp_path / "litotes.json").write_text('{"format": 99}')
    with pytest.raises(UserError, match="format 99"):
        Predictor.load(tmp_path)
