"""The estimator as scikit-learn's own tools use it, on a tiny encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from litotes.core.errors import UserError
from litotes.prediction.predictor import Predictor
from litotes.sklearn import TextClassifier

TEXTS = ["good tea", "the good bus", "very good", "bad tea", "the bad bus", "very bad"] * 4
LABELS = ["happy", "happy", "happy", "cross", "cross", "cross"] * 4


@pytest.fixture(scope="module")
def classifier(tiny_folder: Path) -> TextClassifier:
    return TextClassifier(
        encoder=str(tiny_folder), epochs=12, batch_texts=8, learning_rate=5e-3, held_out=0.0
    )


@pytest.fixture(scope="module")
def fitted(classifier: TextClassifier) -> TextClassifier:
    """Fitted once, for tests that only ask it."""
    return clone(classifier).fit(TEXTS, LABELS)


def test_it_answers_as_it_learned(fitted: TextClassifier) -> None:
    assert fitted.classes_.tolist() == ["cross", "happy"]
    assert fitted.predict(TEXTS).tolist() == LABELS
    assert fitted.score(TEXTS, LABELS) == 1.0
    probabilities = fitted.predict_proba(TEXTS[:6])
    assert probabilities.shape == (6, 2)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    assert fitted.classes_[probabilities.argmax(1)].tolist() == LABELS[:6]
    assert fitted.predict([]).shape == (0,)
    assert fitted.predict_proba([]).shape == (0, 2)
    for ask in (fitted.predict, fitted.predict_proba):
        with pytest.warns(UserWarning, match="2 of 3 texts are unreadable") as warned:
            assert len(ask(["😀", "good tea", "\u200b"])) == 3
        assert warned[0].filename == __file__


@pytest.mark.parametrize(
    ("happy", "cross"), [(True, False), (7, 2), (1.0, 1.5)], ids=["bool", "int", "alike"]
)
def test_labels_are_of_any_kind(classifier: TextClassifier, happy: Any, cross: Any) -> None:
    labels = np.array([happy if word == "happy" else cross for word in LABELS])
    fitted = clone(classifier).set_params(epochs=8).fit(TEXTS, labels)
    assert fitted.classes_.tolist() == sorted({happy, cross})
    assert fitted.predict(TEXTS).tolist() == labels.tolist()


def test_three_classes_by_the_same_seed(classifier: TextClassifier) -> None:
    texts = [*TEXTS, *["a quiet tea", "a quiet bus", "quiet"] * 4]
    short = clone(classifier).set_params(epochs=1)
    one, two = (
        clone(short).fit(texts, [*LABELS, *["calm"] * 12]).predict_proba(texts) for _ in range(2)
    )
    assert one.shape == (36, 3)
    np.testing.assert_allclose(one, two, atol=1e-6)


def test_it_works_in_a_pipeline_and_in_searches(classifier: TextClassifier) -> None:
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = Pipeline([("lower", lower), ("classifier", classifier)])
    upper = [text.upper() for text in TEXTS]
    search = GridSearchCV(pipeline, {"classifier__epochs": [1, 10]}, cv=2, scoring="f1_macro")
    assert search.fit(upper, LABELS).best_params_ == {"classifier__epochs": 10}
    assert search.best_score_ > 0.9
    assert search.predict(upper).tolist() == LABELS
    copy = clone(search.best_estimator_["classifier"])
    assert copy.get_params()["epochs"] == 10
    assert not hasattr(copy, "classes_")


def test_saved_and_loaded_it_answers_the_same(fitted: TextClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    loaded = TextClassifier.load(tmp_path / "model")
    assert loaded.get_params() == fitted.get_params()
    assert loaded.predict(TEXTS).tolist() == fitted.predict(TEXTS).tolist()
    np.testing.assert_allclose(loaded.predict_proba(TEXTS), fitted.predict_proba(TEXTS), atol=1e-6)
    answers = Predictor.load(tmp_path / "model").predict(["good tea"])[0].answers
    assert answers["label"].label == "happy"


@pytest.mark.parametrize(
    ("texts", "labels", "sentence"),
    [
        ("one text", ["a"], "a list of texts"),
        (["a", 1], ["x", "y"], "Text 2 is a int"),
        (["a", "b"], ["x"], "2 texts and 1 labels"),
        (["a", "b"], ["x", "x"], "nothing to learn"),
    ],
)
def test_mistakes_get_a_sentence(
    classifier: TextClassifier, texts: Any, labels: list[str], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        classifier.fit(texts, labels)
