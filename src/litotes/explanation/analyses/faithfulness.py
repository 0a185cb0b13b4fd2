"""faithfulness: which attribution method's words are those the answers rest on.

DeYoung et al. 2020, arXiv 1911.03429.

What is measured for one text, and how words leave, is in attribution.py. Methods are ranked by
comprehensiveness − sufficiency loss, both in probability of the answer, and every one is compared
with words put in a random order, text by text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from litotes.core.numbers import Floats
from litotes.core.registry import pick
from litotes.explanation.analyses.analysis import Analysis, Number, Result, half_widths, means
from litotes.explanation.analyses.drawing import (
    Box,
    MarkStyle,
    NamedMean,
    add_key,
    in_rows,
    new_canvas,
    ranking_height,
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
        """Draws what becomes of the answer as each method's words leave or stay, and the methods'
        scores against random words.
        """
        ranking = ranking_height(len(self.methods))
        canvas = new_canvas(_WIDTH, _CURVES + _LEGEND + ranking)
        above = in_rows(2, Box(0, 0, _WIDTH, _CURVES), abreast=2)
        unit = "the answer: its probability, or its value"
        for box, (curve, (title, label)) in zip(above, _CURVE_TITLES.items(), strict=True):
            ax = canvas.chart(box, title, x=f"share of the words {label}", y=unit)
            for one in self.methods:
                self._draw_curve(one, curve, ax)
        # between the curves and the scores
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, 1 - _CURVES / canvas.height)}
        add_key(canvas.figure, ax, ncols=5, **place)
        below = in_rows(2, Box(0, _CURVES + _LEGEND, _WIDTH, ranking), abreast=2)
        for box, (score, title) in zip(below, _SCORE_TITLES.items(), strict=True):
            means = [(one.method, one.scores[score]) for one in self.methods]
            named = [NamedMean(name, mean.value, mean.interval) for name, mean in means]
            unit = "fall of the answer, with its 95 % interval"
            canvas.ranking(box, title, named, x=unit, zero=True)
        return canvas.figure

    def _draw_curve(self, one: MethodScore, curve: str, ax: Axes) -> None:
        style = one.style
        values = np.array(getattr(one, curve), np.float64)
        look: dict[str, Any] = {"color": style.colour, "marker": style.marker}
        look |= {"linestyle": style.dash, "linewidth": 1.2, "markersize": 4}
        ax.plot(self.shares, values, label=one.method, **look)
        if one is self.methods[0] or one.is_control:  # bands of all nine would be a fog
            widths = np.nan_to_num(np.array(getattr(one, f"{curve}_half_width"), np.float64))
            band: dict[str, Any] = {"color": style.colour, "alpha": 0.18, "linewidth": 0}
            ax.fill_between(self.shares, values - widths, values + widths, **band)


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
        # (text, method): comprehensiveness, sufficiency loss
        self.by_text: list[list[tuple[float, float]]] = []

    def add(self, observation: Observation) -> None:
        if observation.read.words:
            self.n_seen += 1
            if self.n_texts < self.most_texts:
                super().add(observation)

    def measure(self, observation: Observation) -> dict[str, Any]:
        """The curves of every method."""
        question = Question.about(self.model, observation, self.task)
        orders = {name: order_of(question, weigh_words(name, question)) for name in self.methods}
        found = faithfulness(question, orders)
        self.by_text.append(
            [(one.comprehensiveness, one.sufficiency_loss) for one in found.values()]
        )
        return {
            name: {"deletion": one.deletion.values, "sufficiency": one.sufficiency.values}
            for name, one in found.items()
        }

    def result(self) -> Ranking:
        return Ranking(
            n_texts=self.n_texts,
            task=self.task.name,
            n_seen=self.n_seen if self.n_texts else 0,
            shares=SHARES,
            methods=self._rank() if self.n_texts else (),
        )

    def _rank(self) -> tuple[MethodScore, ...]:
        """The methods, the most faithful first."""
        # (text, method, 2); sorted, so that the texts' order does not matter
        values = np.array(sorted(self.by_text))
        lead = values[:, :, 0] - values[:, :, 1]  # (text, method)
        order = sorted(range(len(self.methods)), key=lambda place: -lead[:, place].mean())
        over_random = lead - lead[:, [self.methods.index(CONTROL)]]
        behind_best = lead[:, order[:1]] - lead
        # (text, score, method), scores in the order of SCORES
        columns = np.stack([*values.transpose(2, 0, 1), lead, over_random, behind_best], axis=1)
        found = bootstrap_means(columns.reshape(len(columns), -1))
        ranked = []
        for place in order:
            name, scores = self.methods[place], found[place :: len(self.methods)]
            curves, widths = means(self.means[name]), half_widths(self.means[name])
            curves |= {f"{curve}_half_width": width for curve, width in widths.items()}
            by_name: dict[str, Any] = dict(zip(SCORES, scores, strict=True))
            ranked.append(MethodScore(name, METHODS[name].is_signed, **curves, **by_name))
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
