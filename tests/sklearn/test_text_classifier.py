"""The estimator as scikit-learn's own tools use it, on a tiny encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from litotes.core.errors import UserError
from litotes.prediction.predictor import Predictor
from litotes.sklearn import TextClassifier

TEXTS = ["good tea", "the good bus", "very good", "bad tea", "the bad bus", "very bad"] * 4
LABELS = ["happy", "happy", "happy", "cross", "cross", "cross"] * 4


def make_classifier(encoder: Path) -> TextClassifier:
    return TextClassifier(
        encoder=str(encoder), epochs=12, batch_texts=8, learning_rate=5e-3, held_out=0.0
    )


@pytest.fixture
def classifier(tiny_folder: Path) -> TextClassifier:
    return make_classifier(tiny_folder)


@pytest.fixture(scope="module")
def fitted(tiny_folder: Path) -> TextClassifier:
    """Fitted once, for tests that only ask it."""
    return make_classifier(tiny_folder).fit(TEXTS, LABELS)


def test_it_learns_labels_of_any_kind(classifier: TextClassifier) -> None:
    for labels in (
        LABELS,
        [word == "happy" for word in LABELS],
        [2 if word == "happy" else 7 for word in LABELS],
    ):
        fitted = classifier.fit(TEXTS, labels)
        assert fitted is classifier
        assert fitted.classes_.tolist() == sorted(set(labels))
        assert fitted.predict(TEXTS).tolist() == labels
        assert fitted.score(TEXTS, labels) == 1.0


def test_probabilities_are_those_of_the_classes(fitted: TextClassifier) -> None:
    probabilities = fitted.predict_proba(TEXTS[:6])
    assert probabilities.shape == (6, 2)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    best = fitted.classes_[probabilities.argmax(1)]
    assert best.tolist() == fitted.predict(TEXTS[:6]).tolist()


def test_unreadable_texts_are_answered_with_a_warning(fitted: TextClassifier) -> None:
    for ask in (fitted.predict, fitted.predict_proba):
        with pytest.warns(UserWarning, match="2 of 3 texts are unreadable") as warned:
            assert len(ask(["😀", "good tea", "\u200b"])) == 3
        assert warned[0].filename == __file__


def test_three_classes(classifier: TextClassifier) -> None:
    texts = [*TEXTS, *["a quiet tea", "a quiet bus", "quiet"] * 4]
    labels = [*LABELS, *["calm"] * 12]
    fitted = classifier.fit(texts, labels)
    assert fitted.classes_.tolist() == ["calm", "cross", "happy"]
    assert fitted.predict_proba(["quiet"]).shape == (1, 3)


def test_parameters_are_sklearns(fitted: TextClassifier) -> None:
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "classes_")
    assert copy.set_params(epochs=3).epochs == 3


def test_same_seed_same_probabilities(fitted: TextClassifier) -> None:
    first = fitted.predict_proba(TEXTS)
    again = clone(fitted).fit(TEXTS, LABELS).predict_proba(TEXTS)
    np.testing.assert_allclose(first, again, atol=1e-6)


def test_it_works_in_a_pipeline_and_in_searches(classifier: TextClassifier) -> None:
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = Pipeline([("lower", lower), ("classifier", classifier)])
    upper = [text.upper() for text in TEXTS]
    assert pipeline.fit(upper, LABELS).predict(upper).tolist() == LABELS
    assert cross_val_score(classifier, TEXTS, LABELS, cv=2).mean() > 0.9
    search = GridSearchCV(classifier, {"epochs": [1, 12]}, cv=2, scoring="f1_macro")
    assert search.fit(TEXTS, LABELS).best_params_ == {"epochs": 12}


def test_saved_and_loaded_it_answers_the_same(classifier: TextClassifier, tmp_path: Path) -> None:
    classifier.fit(TEXTS, [word == "happy" for word in LABELS]).save(tmp_path / "model")
    loaded = TextClassifier.load(tmp_path / "model")
    assert loaded.get_params() == classifier.get_params()
    assert loaded.predict(TEXTS).tolist() == classifier.predict(TEXTS).tolist()
    np.testing.assert_allclose(
        loaded.predict_proba(TEXTS), classifier.predict_proba(TEXTS), atol=1e-6
    )
    answers = Predictor.load(tmp_path / "model").predict(["good tea"])[0].answers
    assert answers["label"].label == "True"


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
    classifier: TextClassifier, texts: object, labels: list[str], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        classifier.fit(texts, labels)  # type: ignore[arg-type]


def test_labels_that_are_written_alike_stay_apart(classifier: TextClassifier) -> None:
    labels = np.array([1.0 if word == "happy" else 1.5 for word in LABELS])
    assert classifier.fit(TEXTS, labels).predict(TEXTS).tolist() == labels.tolist()


def test_nothing_to_predict(fitted: TextClassifier) -> None:
    assert fitted.predict([]).shape == (0,)
