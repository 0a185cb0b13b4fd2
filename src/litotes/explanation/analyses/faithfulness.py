"""faithfulness: which attribution method's words are those the answers rest on.

DeYoung et al. 2020, arXiv 1911.03429.

What is measured for one text, and how words leave, is in attribution.py. Methods are ranked by
comprehensiveness − sufficiency loss, both in probability of the answer, and every one is compared
with words put in a random order, text by text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from litotes.core.numbers import Floats
from litotes.core.registry import pick
from litotes.explanation.analyses.analysis import (
    Analysis,
    Number,
    Result,
    RunningMean,
    half_widths,
    means,
)
from litotes.explanation.analyses.drawing import (
    Box,
    Canvas,
    MarkStyle,
    NamedMean,
    draw_ranking,
    in_rows,
    label_width,
    new_canvas,
    ranking_height,
    remove_frame,
)
from litotes.explanation.attribution import (
    CONTROL,
    METHODS,
    SHARES,
    Question,
    faithfulness,
    order_of,
    weigh_words,
)
from litotes.explanation.observation import Observation
from litotes.model.checkpoint import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEWEST = 5
"""Texts a bootstrap interval needs at least; resamples of fewer are too much alike."""

_N_RESAMPLES = 2000

SCORES = ("comprehensiveness", "sufficiency_loss", "lead", "over_random", "behind_best")

_WIDTH, _CURVES, _LEGEND = 9.6, 3.2, 0.6  # inches

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "os^DvPX*"
"""Colours of Okabe and Ito; marks have another period, so that no two methods share both."""

_CURVE_TITLES = {
    "deletion": ("Without the words that count most", "taken away"),
    "sufficiency": ("With nothing but the words that count most", "kept"),
}
_SCORE_TITLES = {
    "lead": "Comprehensiveness less sufficiency loss",
    "over_random": "The same, less that of random words",
}


@dataclass(frozen=True)
class Mean:
    """A mean over texts and its 95 % interval, by bootstrap over texts; fewer than FEWEST have
    none.
    """

    value: float
    low: Number
    high: Number

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def side(self) -> str:
        """Where 0 is seen from the interval; "" where there is none."""
        if self.interval is None:
            return ""
        low, high = self.interval
        return "above 0" if low > 0 else "below 0" if high < 0 else "holds 0"


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

    @property
    def is_control(self) -> bool:
        return self.method == CONTROL

    @property
    def scores(self) -> dict[str, Mean]:
        return {name: getattr(self, name) for name in SCORES}

    @property
    def style(self) -> MarkStyle:
        """The same in every figure, whatever the ranking."""
        if self.is_control:
            return MarkStyle("#777777", "x", dash=":")
        place = [name for name in METHODS if name != CONTROL].index(self.method)
        return MarkStyle(_COLOURS[place % len(_COLOURS)], _MARKERS[place % len(_MARKERS)])


@dataclass(frozen=True)
class Ranking(Result):
    """methods: the most faithful first. n_seen: the texts there were, of which the first `n_texts`
    were measured.
    """

    name: ClassVar[str] = "faithfulness"
    fewest: ClassVar[int] = FEWEST
    task: str
    n_seen: int
    shares: tuple[float, ...]
    methods: tuple[MethodScore, ...]

    def nothing_to_say(self) -> str | None:
        return None if self.methods else "finds no word to take away in any text"

    def groups(self) -> dict[str, list[MethodScore]]:
        """The methods that cannot be told from the best, or are no better than random words."""
        best, *others = self.methods
        tested = [one for one in self.methods if not one.is_control]
        return {
            f"Not told apart from {best.method}": [
                one for one in others if one.behind_best.side != "above 0"
            ],
            "Not told apart from random words": [
                one for one in tested if one.over_random.side == "holds 0"
            ],
            "Worse than random words": [
                one for one in self.methods if one.over_random.side == "below 0"
            ],
        }

    def figure(self) -> Figure:
        """What becomes of the answer as each method's words leave or stay, and the methods' scores
        against random words.
        """
        ranking = ranking_height(len(self.methods))
        canvas = new_canvas(_WIDTH, _CURVES + _LEGEND + ranking)
        boxes = in_rows(2, Box(0, 0, _WIDTH, _CURVES), abreast=2)
        for box, (curve, (title, label)) in zip(boxes, _CURVE_TITLES.items(), strict=True):
            ax = canvas.chart(box)
            for one in self.methods:
                self._draw_curve(one, curve, ax)
            ax.set_title(title, fontsize=9)
            ax.set_xlabel(f"share of the words {label}", fontsize=8)
            ax.set_ylabel("the answer: its probability, or its value", fontsize=8)
            remove_frame(ax)
        # between the curves and the scores
        legend: dict[str, Any] = {"bbox_to_anchor": (0.5, 1 - _CURVES / canvas.height), "ncols": 5}
        handles, labels = ax.get_legend_handles_labels()
        canvas.figure.legend(
            handles, labels, loc="upper center", frameon=False, fontsize=8, **legend
        )
        self._draw_scores(canvas, Box(0, _CURVES + _LEGEND, _WIDTH, ranking))
        return canvas.figure

    def _draw_curve(self, one: MethodScore, curve: str, ax: Axes) -> None:
        style = one.style
        values = np.array([math.nan if value is None else value for value in getattr(one, curve)])
        look: dict[str, Any] = {"color": style.colour, "marker": style.marker}
        look |= {"linestyle": style.dash, "linewidth": 1.2, "markersize": 4}
        ax.plot(self.shares, values, label=one.method, **look)
        if one is self.methods[0] or one.is_control:  # bands of all nine would be a fog
            widths = np.array([width or 0.0 for width in getattr(one, f"{curve}_half_width")])
            band: dict[str, Any] = {"color": style.colour, "alpha": 0.18, "linewidth": 0}
            ax.fill_between(self.shares, values - widths, values + widths, **band)

    def _draw_scores(self, canvas: Canvas, place: Box) -> None:
        for box, (score, title) in zip(
            in_rows(2, place, abreast=2), _SCORE_TITLES.items(), strict=True
        ):
            scores = {one.method: one.scores[score] for one in self.methods}
            named = [NamedMean(name, mean.value, mean.interval) for name, mean in scores.items()]
            ax = canvas.chart(box, left=label_width(named))
            draw_ranking(named, ax, has_zero_line=True)
            ax.set_title(title, fontsize=9)
            ax.set_xlabel("fall of the answer, with its 95 % interval", fontsize=8)


class FaithfulnessAnalysis(Analysis):
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
        question = Question.about(self.model, observation, self.task)
        orders = {name: order_of(question, weigh_words(name, question)) for name in self.methods}
        scores = []
        for name, found in faithfulness(question, orders).items():
            self.deletion[name].add(torch.tensor(found.deletion.values, dtype=torch.float64))
            self.sufficiency[name].add(torch.tensor(found.sufficiency.values, dtype=torch.float64))
            scores.append((found.comprehensiveness, found.sufficiency_loss))
        self.by_text.append(scores)

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
        lead = values[:, :, 0] - values[:, :, 1]  # (text, method)
        order = sorted(range(len(self.methods)), key=lambda place: -lead[:, place].mean())
        over_random = lead - lead[:, [self.methods.index(CONTROL)]]
        # (text, score, method), scores in the order of SCORES
        columns = np.stack(
            [*values.transpose(2, 0, 1), lead, over_random, lead[:, order[:1]] - lead], axis=1
        )
        found = bootstrap_means(columns.reshape(len(columns), -1))
        ranked = []
        for place in order:
            name, scores = self.methods[place], found[place :: len(self.methods)]
            ranked.append(
                MethodScore(
                    name,
                    METHODS[name].is_signed,
                    means(self.deletion[name]),
                    half_widths(self.deletion[name]),
                    means(self.sufficiency[name]),
                    half_widths(self.sufficiency[name]),
                    *scores,
                )
            )
        return tuple(ranked)


def bootstrap_means(values: Floats, *, seed: int = 0) -> list[Mean]:
    """The mean of every column, with 95 % of the means of resampled texts, which all columns share.

    values: (text, column)
    """
    n, found = len(values), values.mean(0).tolist()
    if n < FEWEST:
        return [Mean(mean, None, None) for mean in found]
    # (resample, text)
    draws = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=_N_RESAMPLES)
    low, high = np.quantile(draws @ values / n, [0.025, 0.975], axis=0).tolist()
    return [Mean(*ends) for ends in zip(found, low, high, strict=True)]
