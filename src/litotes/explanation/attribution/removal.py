"""occlusion: what the answer loses with each word; and the random words every method must beat."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from litotes.explanation.attribution.method import Method, WordWeights
from litotes.explanation.attribution.question import TextQuestion


class Occlusion(Method):
    """What the answer loses when the word is really left out, F(text) − F(text without the word).

    Li et al. 2016, arXiv 1612.08220. A text of n words is asked n + 1 times, in packed batches. Of
    two words that say the same, either
    can be spared: both then count little.
    """

    is_signed: ClassVar[bool] = True

    def weigh(self, question: TextQuestion) -> WordWeights:
        n_words = len(question.read.words)
        shorter = [question.without([word]) for word in range(n_words)]
        whole, *others = question.scores([question.read.pieces, *shorter]).tolist()
        return WordWeights(tuple(whole - other for other in others))


class Random(Method):
    """A number drawn for each word. The control: a method that does no better explains nothing.

    The draw depends on the text and the seed alone.
    """

    is_signed: ClassVar[bool] = False

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def weigh(self, question: TextQuestion) -> WordWeights:
        generator = np.random.default_rng([self.seed, *question.read.pieces.ids])
        return WordWeights(tuple(generator.random(len(question.read.words)).tolist()))
