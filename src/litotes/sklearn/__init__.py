"""A scikit-learn estimator: `from litotes.sklearn import TextClassifier`. Needs scikit-learn."""

from litotes.sklearn.text_classifier import TextClassifier

__all__ = ["TextClassifier"]
