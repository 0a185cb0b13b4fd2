"""faithfulness: which attribution method's words are those the answers rest on.

DeYoung et al. 2020, arXiv 1911.03429.

What is measured for one text, and how words leave, is in word_removal.py. Methods are ranked by
comprehensiveness − sufficiency loss, both in probability of the answer, and every one is compared
with words put in a random order, text by text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from litotes.core.numbers import Floats, counted
from litotes.core.registry import pick
from litotes.explanation.analyses.analysis import Measure, Result
from litotes.explanation.analyses.means import Number, RunningMean, numbers
from litotes.explanation.attribution import CONTROL, METHODS, Question, weigh_words
from litotes.explanation.explanation import Faithfulness
from litotes.explanation.observation import Observation
from litotes.explanation.word_removal import SHARES, faithfulness, order_of
from litotes.model.checkpoint import Model

FEWEST = 5
"""Texts a bootstrap interval needs at least; resamples of fewer are too much alike."""

_N_RESAMPLES = 2000


@dataclass(frozen=True)
class Mean:
    """A mean over texts and its 95 % interval, by bootstrap over texts; fewer than FEWEST have
    none.
    """

    value: float
    low: Number
    high: Number

    @property
    def is_above_0(self) -> bool:
        return self.low is not None and self.low > 0

    @property
    def is_below_0(self) -> bool:
        return self.high is not None and self.high < 0

    @property
    def holds_0(self) -> bool:
        return self.low is not None and self.high is not None and self.low <= 0 <= self.high


@dataclass(frozen=True)
class MethodScore:
    """One method over all texts.

    deletion, sufficiency: the mean curves, at the shares of the ranking, with halves of their 95 %
    intervals.
    lead: comprehensiveness − sufficiency loss. over_random: the lead over that of random words on
    the same texts. behind_best: how far the lead is behind the first of the ranking, on the same
    texts.
    """

    method: str
    is_signed: bool
    deletion: tuple[Number, ...]
    deletion_half_width: tuple[Number, ...]
    sufficiency: tuple[Number, ...]
    sufficiency_half_width: tuple[Number, ...]
    comprehensiveness: Mean
    sufficiency_loss: Mean
    lead: Mean
    over_random: Mean
    behind_best: Mean


@dataclass(frozen=True)
class Ranking(Result):
    """methods: the most faithful first. n_seen: the texts there were, of which the first `n_texts`
    were measured.
    """

    task: str
    n_seen: int
    shares: tuple[float, ...]
    methods: tuple[MethodScore, ...]

    def nothing_to_say(self) -> str | None:
        return None if self.methods else "finds no word to take away in any text"

    def findings(self) -> tuple[str, ...]:
        if not self.methods:
            return ("No text had a word: there was nothing to take away.",)
        sample = counted(self.n_texts, "text")
        if self.n_seen > self.n_texts:
            sample = f"the first {self.n_texts} of {self.n_seen} texts"
        if self.n_texts < FEWEST:
            return (
                f"With {sample} there are too few to tell one method from another ({FEWEST} at"
                " least).",
            )
        best = self.methods[0]
        if best.method == CONTROL or not best.over_random.is_above_0:
            return (
                f"On {sample} no method is told apart from random words ({self.task}): none of"
                " them deserves belief.",
            )
        first = (
            f"{best.method} deserves most belief ({self.task}, {sample}): without its words the"
            f" answer loses {best.comprehensiveness.value:.3f}, with nothing but its words"
            f" {best.sufficiency_loss.value:.3f}, a lead of {best.lead.value:.3f} (95 % interval"
            f" {best.lead.low:.3f} to {best.lead.high:.3f})."
        )
        return (first, *self._groups())

    def _groups(self) -> list[str]:
        """The methods that cannot be told from the best, or are no better than random words."""
        best, *others = self.methods
        groups = {
            f"Not told apart from {best.method}": [
                one for one in others if not one.behind_best.is_above_0
            ],
            "Not told apart from random words": [
                one for one in self.methods if one.method != CONTROL and one.over_random.holds_0
            ],
            "Worse than random words": [one for one in self.methods if one.over_random.is_below_0],
        }
        said = []
        for group, members in groups.items():
            if members:
                said.append(f"{group}: {', '.join(one.method for one in members)}.")
        return said


class FaithfulnessMeasure(Measure):
    """Which attribution method's words are those the answers rest on, against random words."""

    def __init__(
        self,
        model: Model,
        *,
        task: str | None = None,
        n_texts: int = 100,
        methods: Sequence[str] = tuple(METHODS),
    ) -> None:
        super().__init__(model)
        tasks = model.classifier.tasks
        self.task = pick(tasks, next(iter(tasks)) if task is None else task, "task")
        for name in methods:
            pick(METHODS, name, "method")
        self.methods = tuple(dict.fromkeys((*methods, CONTROL)))
        self.most_texts, self.n_seen = n_texts, 0
        self.deletion = {name: RunningMean(len(SHARES)) for name in self.methods}
        self.sufficiency = {name: RunningMean(len(SHARES)) for name in self.methods}
        # (text, method): comprehensiveness, sufficiency loss
        self.by_text: list[list[tuple[float, float]]] = []

    def add(self, observation: Observation) -> None:
        if not observation.read.words:
            return
        self.n_seen += 1
        if len(self.by_text) == self.most_texts:
            return
        scores = []
        for name, found in self._faithfulness(observation).items():
            self.deletion[name].add(torch.tensor(found.deletion.values, dtype=torch.float64))
            self.sufficiency[name].add(torch.tensor(found.sufficiency.values, dtype=torch.float64))
            scores.append((found.comprehensiveness, found.sufficiency_loss))
        self.by_text.append(scores)

    def _faithfulness(self, observation: Observation) -> dict[str, Faithfulness]:
        question = Question.about(self.model, observation, self.task)
        orders = {}
        for name in self.methods:
            orders[name] = order_of(question, weigh_words(name, question))
        return faithfulness(question, orders)

    def result(self) -> Ranking:
        # (text, method, 2); sorted, so that the texts' order does not matter
        values = np.array(sorted(self.by_text))
        return Ranking(
            n_texts=len(values),
            task=self.task.name,
            n_seen=self.n_seen if self.by_text else 0,
            shares=SHARES,
            methods=self._rank(values) if self.by_text else (),
        )

    def _rank(self, values: Floats) -> tuple[MethodScore, ...]:
        """The methods, the most faithful first. values: (text, method, 2)"""
        n_methods = len(self.methods)
        lead = values[:, :, 0] - values[:, :, 1]  # (text, method)
        order = sorted(range(n_methods), key=lambda place: -lead[:, place].mean())
        control, best = self.methods.index(CONTROL), order[0]
        over_random, behind_best = lead - lead[:, [control]], lead[:, [best]] - lead
        # the columns of one method are n_methods apart
        columns = (*values.transpose(2, 0, 1), lead, over_random, behind_best)
        means = bootstrap_means(np.concatenate(columns, axis=1))
        return tuple(self._score(self.methods[n], means[n::n_methods]) for n in order)

    def _score(self, name: str, means: Sequence[Mean]) -> MethodScore:
        comprehensiveness, sufficiency_loss, lead, over_random, behind_best = means
        return MethodScore(
            method=name,
            is_signed=METHODS[name].is_signed,
            deletion=numbers(self.deletion[name].mean),
            deletion_half_width=numbers(self.deletion[name].half_width),
            sufficiency=numbers(self.sufficiency[name].mean),
            sufficiency_half_width=numbers(self.sufficiency[name].half_width),
            comprehensiveness=comprehensiveness,
            sufficiency_loss=sufficiency_loss,
            lead=lead,
            over_random=over_random,
            behind_best=behind_best,
        )


def bootstrap_means(values: Floats, *, seed: int = 0) -> list[Mean]:
    """The mean of every column, with 95 % of the means of resampled texts, which all columns share.

    values: (text, column)
    """
    n, means = len(values), values.mean(0).tolist()
    if n < FEWEST:
        return [Mean(mean, None, None) for mean in means]
    # (resample, text)
    draws = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=_N_RESAMPLES)
    low, high = np.quantile(draws @ values / n, [0.025, 0.975], axis=0).tolist()
    return [Mean(*ends) for ends in zip(means, low, high, strict=True)]
