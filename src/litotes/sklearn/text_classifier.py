"""A text classifier with scikit-learn's interface.

    TextClassifier(epochs=3).fit(texts, labels).predict(texts)

It works in a `Pipeline`, in `cross_val_score` and in `GridSearchCV`. Parameters are those of a
recipe by the same names. The classifier trains in a temporary folder and keeps the model in memory;
`save` and `load` use a litotes model folder, which every command reads too. Nothing is pickled.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from litotes.core.errors import UserError
from litotes.core.values import Example, Task
from litotes.data.corpus import Corpus
from litotes.model.checkpoint import Model, load_model, save_model
from litotes.prediction.predictor import Predictor
from litotes.training.card import model_card
from litotes.training.recipe import Recipe
from litotes.training.run import train

TASK = "label"
"""The name of the one task of such a classifier in its model folder."""


class TextClassifier(ClassifierMixin, BaseEstimator):
    """Fine-tunes an encoder on texts and their labels.

    encoder, head, weighting, pruning: see `litotes list`. freeze_below: layers below this number
    keep their weights, which makes training faster. held_out: the share of the training texts that
    chooses the epoch and fits the temperature; 0 uses every text for training.

    Fitted attributes: `classes_`, the labels in sorted order, and `model_`, the litotes model.

    >>> from litotes.sklearn import TextClassifier
    >>> texts = ["Loved it", "Great food", "Hated it", "Awful food"] * 4
    >>> classifier = TextClassifier(epochs=4, freeze_below=6, held_out=0.0, learning_rate=1e-3)
    >>> classifier.fit(texts, [1, 1, 0, 0] * 4).predict(["Loved the food"]).tolist()
    [1]
    """

    classes_: NDArray[Any]
    model_: Model
    _predictor: Predictor | None = None

    def __init__(
        self,
        *,
        encoder: str = "minilm",
        head: str = "mean",
        weighting: str = "softmax",
        pruning: str = "none",
        epochs: int = 3,
        batch_texts: int = 16,
        learning_rate: float = 5e-5,
        head_learning_rate: float | None = 1e-3,
        freeze_below: int = 0,
        held_out: float = 0.1,
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        self.encoder = encoder
        self.head = head
        self.weighting = weighting
        self.pruning = pruning
        self.epochs = epochs
        self.batch_texts = batch_texts
        self.learning_rate = learning_rate
        self.head_learning_rate = head_learning_rate
        self.freeze_below = freeze_below
        self.held_out = held_out
        self.seed = seed
        self.device = device

    def fit(self, X: Iterable[str], y: Iterable[Any]) -> Self:
        """Trains on texts and their labels: words, numbers or booleans."""
        texts, labels = check_texts(X), np.asarray(list(y))
        if len(texts) != len(labels):
            raise UserError(f"{len(texts)} texts and {len(labels)} labels: give one label a text.")
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise UserError("All texts have the same label: there is nothing to learn.")
        corpus = self._corpus(texts, labels)
        with TemporaryDirectory(prefix="litotes-") as folder:
            run = train(self.recipe(), Path(folder) / "model", corpus=corpus, device=self.device)
        self.model_ = run.model
        self.n_features_in_ = 1
        self._predictor = None
        return self

    def predict(self, X: Iterable[str]) -> NDArray[Any]:
        """The label of each text, by the threshold where one was learned. (text,)"""
        labels, _ = self._answers(X)
        return self.classes_[labels]

    def predict_proba(self, X: Iterable[str]) -> NDArray[np.float64]:
        """The probability of every label, in the order of `classes_`. (text, class)"""
        _, probabilities = self._answers(X)
        return probabilities

    def save(self, folder: str | Path) -> None:
        """Writes a model folder that `litotes predict`, `explain`, `export` and `serve` read."""
        check_is_fitted(self)
        own = {"classes": self.classes_.tolist(), "params": self.get_params()}
        model = replace(self.model_, facts={**self.model_.facts, **own})
        save_model(model, Path(folder), card=model_card(model, ()))

    @classmethod
    def load(cls, folder: str | Path, *, device: str | None = None) -> Self:
        """Reads a classifier that `save` has written."""
        model = load_model(Path(folder))
        if "classes" not in model.facts:
            raise UserError(
                f"{folder} was not saved by TextClassifier. Use Predictor.load instead."
            )
        classifier = cls(**{**model.facts["params"], "device": device})
        classifier.classes_ = np.asarray(model.facts["classes"])
        classifier.model_ = model
        classifier.n_features_in_ = 1
        return classifier

    def recipe(self) -> Recipe:
        """The recipe that `fit` trains by."""
        return Recipe().changed(
            seed=self.seed,
            data__source="fit",
            model__encoder=self.encoder,
            model__head=self.head,
            model__weighting=self.weighting,
            model__pruning=self.pruning,
            training__epochs=self.epochs,
            training__batch_texts=self.batch_texts,
            training__learning_rate=self.learning_rate,
            training__head_learning_rate=self.head_learning_rate,
            training__freeze_below=self.freeze_below,
            training__held_out=self.held_out,
        )

    def _corpus(self, texts: Sequence[str], labels: NDArray[Any]) -> Corpus:
        words = label_words(self.classes_)
        task = Task(TASK, words)
        numbers = np.searchsorted(self.classes_, labels)
        examples = tuple(
            Example(text, {TASK: words[number]})
            for text, number in zip(texts, numbers, strict=True)
        )
        return Corpus("fit", examples, {TASK: task})

    def _answers(self, X: Iterable[str]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Places in `classes_` (text,) and probabilities (text, class)."""
        check_is_fitted(self)
        texts = check_texts(X)
        if not texts:
            return np.empty(0, np.int64), np.empty((0, len(self.classes_)))
        if self._predictor is None:
            self._predictor = Predictor(self.model_, device=self.device)
        answers = self._predictor.answer_columns(texts)
        if n_unreadable := int(answers.unreadable.sum()):
            warnings.warn(
                f"{n_unreadable} of {len(texts)} texts are unreadable: the model knows no part of"
                " them.",
                stacklevel=3,  # who called `predict`
            )
        found = answers.tasks[TASK]
        assert found.probabilities is not None
        return found.values, found.probabilities

    def __getstate__(self) -> dict[str, Any]:
        """Without the predictor, which holds a lock; the next question makes another one."""
        state = dict(super().__getstate__())
        state.pop("_predictor", None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


def check_texts(texts: Iterable[str]) -> list[str]:
    """Lists the texts; an error for anyone who passes one text, a table or something else."""
    if isinstance(texts, str):
        raise UserError("One text was given where a list of texts is needed: write [text].")
    found = list(texts)
    for number, text in enumerate(found, start=1):
        if not isinstance(text, str):
            kind = type(text).__name__
            raise UserError(f"Text {number} is a {kind}, not a string: pass one column of texts.")
    return [str(text) for text in found]


def label_words(classes: NDArray[Any]) -> tuple[str, ...]:
    """The classes as words of a task; numbered where two of them are written alike."""
    words = [str(label) for label in classes.tolist()]
    if len(set(words)) < len(words) or not all(
        word.strip() and word.isprintable() for word in words
    ):
        return tuple(f"class {number}" for number in range(len(words)))
    return tuple(words)
