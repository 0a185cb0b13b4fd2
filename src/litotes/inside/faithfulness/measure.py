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

from litotes.core.counts import Floats
from litotes.core.registry import pick
from litotes.explain.attribution import CONTROL, METHODS, Question, weigh_words
from litotes.explain.explanation import Faithfulness
from litotes.explain.observation import Observation
from litotes.explain.word_removal import SHARES, faithfulness, order_of
from litotes.inside.analysis import Measure, Result
from litotes.inside.means import Number, RunningMean, numbers
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

    def findings(self) -> tuple[str, ...]:
        if not self.methods:
            return ("No text had a word: there was nothing to take away.",)
        sample = (
            f"the first {self.n_texts} of {self.n_seen} texts"
            if self.n_seen > self.n_texts
            else f"{self.n_texts} texts"
        )
        if self.n_texts < FEWEST:
            return (
                f"{sample} are too few to tell one method from another ({FEWEST} at least).".capitalize(),
            )
        best, *others = self.methods
        if best.method == CONTROL or (best.over_random.low or 0.0) <= 0:
            return (
                (
                    f"On {sample} no method is told apart from random words ({self.task}): none of"
                    " them deserves belief."
                ),
            )
        said = [
            f"{best.method} deserves most belief ({self.task}, {sample}): without its words the"
            f" answer loses {best.comprehensiveness.value:.3f}, with nothing but its words"
            f" {best.sufficiency_loss.value:.3f}, a lead of {best.lead.value:.3f} (95 % interval"
            f" {best.lead.low:.3f} to {best.lead.high:.3f})."
        ]
        groups = {
            f"Not told apart from {best.method}": [
                one for one in others if (one.behind_best.low or 0.0) <= 0
            ],
            "Not told apart from random words": [
                one
                for one in self.methods
                if one.method != CONTROL and _holds_zero(one.over_random)
            ],
            "Worse than random words": [
                one for one in self.methods if (one.over_random.high or 0.0) < 0
            ],
        }
        said += [
            f"{what}: {', '.join(one.method for one in members)}."
            for what, members in groups.items()
            if members
        ]
        return tuple(said)


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
        self.deletion, self.sufficiency = (
            {name: RunningMean(len(SHARES)) for name in self.methods} for _ in range(2)
        )
        # (text, method): comprehensiveness, sufficiency loss
        self.by_text: list[list[tuple[float, float]]] = []

    def add(self, observation: Observation) -> None:
        if not observation.read.words:
            return
        self.n_seen += 1
        if len(self.by_text) == self.most_texts:
            return
        question = Question.about(self.model, observation, self.task)
        found = faithfulness(
            question,
            {name: order_of(question, weigh_words(name, question)) for name in self.methods},
        )
        for name, one in found.items():
            self.deletion[name].add(torch.tensor(one.deletion.values, dtype=torch.float64))
            self.sufficiency[name].add(torch.tensor(one.sufficiency.values, dtype=torch.float64))
        self.by_text.append([_scalars(found[name]) for name in self.methods])

    def result(self) -> Ranking:
        if not self.by_text:
            return Ranking(n_texts=0, task=self.task.name, n_seen=0, shares=SHARES, methods=())
        # (text, method, 2); sorted, so that the texts' order does not matter
        values = np.array(sorted(self.by_text))
        lead = values[:, :, 0] - values[:, :, 1]
        order = sorted(range(len(self.methods)), key=lambda place: -lead[:, place].mean())
        control, best = self.methods.index(CONTROL), order[0]
        # (text, method) each
        compared = (
            *values.transpose(2, 0, 1),
            lead,
            lead - lead[:, [control]],
            lead[:, [best]] - lead,
        )
        means = bootstrap_means(np.concatenate(compared, axis=1))
        n_methods = len(self.methods)
        scores = tuple(
            self._ranked(self.methods[place], means[place::n_methods]) for place in order
        )
        return Ranking(
            n_texts=len(values),
            task=self.task.name,
            n_seen=self.n_seen,
            shares=SHARES,
            methods=scores,
        )

    def _ranked(self, name: str, means: Sequence[Mean]) -> MethodScore:
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
    """Of every column, with 95 % of the means of resampled texts, which all columns share. values:
    (text, column)
    """
    n, means = len(values), values.mean(0).tolist()
    if n < FEWEST:
        return [Mean(mean, None, None) for mean in means]
    # (resample, text)
    draws = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=_N_RESAMPLES)
    low, high = np.quantile(draws @ values / n, [0.025, 0.975], axis=0).tolist()
    return [Mean(*ends) for ends in zip(means, low, high, strict=True)]


def _scalars(found: Faithfulness) -> tuple[float, float]:
    return found.comprehensiveness, found.sufficiency_loss


def _holds_zero(mean: Mean) -> bool:
    return mean.low is not None and mean.high is not None and mean.low <= 0 <= mean.high
