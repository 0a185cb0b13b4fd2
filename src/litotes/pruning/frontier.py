"""The points of a frontier: what a setting saves, counted and measured, and what it loses, with its
interval; and their picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from litotes.core.errors import UserError
from litotes.core.figures import (
    GAP,
    INK,
    BarStyle,
    add_legend,
    draw_bars,
    hide_frame,
    new_figure,
    shift_points,
)
from litotes.core.numbers import Floats
from litotes.evaluation.scores import Interval, Result, interval
from litotes.evaluation.significance import find_patterns, scores_of, text_bootstrap
from litotes.pruning.losses import Answers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Kind = Literal["dense", "control", "pruned"]


@dataclass(frozen=True)
class TaskLoss:
    """Macro-F1 of the dense model minus that of the pruned one on one task, in points
    (hundredths), with its 95 % interval.
    """

    points: float
    interval: Interval


@dataclass(frozen=True)
class Loss:
    """The loss of a setting against dense, in points of macro-F1 (hundredths), each model under its
    own thresholds; of several tasks the one that loses most.

    interval: 95 %. chance_within: how often all tasks are within the budget, in a paired bootstrap
    over texts or in draws from what is expected.
    """

    points: float
    interval: Interval
    chance_within: float
    by_task: Mapping[str, TaskLoss] = field(default_factory=dict)


NO_LOSS = Loss(0.0, (0.0, 0.0), 1.0)


@dataclass(frozen=True)
class Point(Result):
    """One setting.

    Ratios are against our own dense packed encoder on the same texts: never against padding.

    kind: dense, from which all losses are counted; control, the same trained on as long and with
    the same teacher as the pruned ones; or pruned.
    loss: on the texts kept apart. expected: on new texts, after all that was seen (`losses.py`), by
    which a setting is chosen. test_loss and reported: on the test split and on the texts of
    `held_out`, which take no part in the choice; None without them.
    agreement: share of texts without a label (of those kept apart, where there are none) that are
    answered as by dense.
    """

    target: float
    shares: tuple[float, ...]
    n_heads: int
    flops_ratio: float
    speed_ratio: float
    loss: Loss
    test_loss: Loss | None
    divergence: float
    chosen: bool = False
    kind: Kind = "pruned"
    expected: Loss = NO_LOSS
    reported: Loss | None = None
    agreement: float | None = None


def best_within(points: Sequence[Point], budget: float, sure: float | None) -> Point | None:
    """Finds the pruned point with the fewest operations whose loss is expected to be within the
    budget, or is with a probability of at least `sure`.

    Time follows operations, and its noise must not choose.
    """
    within = []
    for point in points:
        guess = point.expected
        is_within = guess.points <= budget if sure is None else guess.chance_within >= sure
        if point.kind == "pruned" and is_within:
            within.append(point)
    return max(within, key=lambda point: point.flops_ratio, default=None)


def measure_loss(answers: Mapping[str, Answers], place: int, *, budget: float) -> Loss:
    """Measures what the setting at `place` (dense is 0) loses on these texts, {task: answers}."""
    points, draws = {}, {}
    for number, (name, task) in enumerate(answers.items()):
        assert task.gold is not None
        both = task.labels[[0, place]]  # (2, text)
        found = find_patterns(task.gold, both, task.probabilities.shape[-1])
        dense, pruned = scores_of(found)
        resampled = text_bootstrap(found, seed=number)  # (resample, 2)
        points[name] = 100 * float(dense - pruned)
        draws[name] = 100 * (resampled[:, 0] - resampled[:, 1])
    return join_tasks(points, draws, budget=budget)


def join_tasks(points: Mapping[str, float], draws: Mapping[str, Floats], *, budget: float) -> Loss:
    """Makes one loss of those of all tasks. draws: of each, (draw,)."""
    by_task = {name: TaskLoss(points[name], interval(draws[name])) for name in points}
    worst = max(by_task.values(), key=lambda task: task.points)
    within = np.array([values <= budget for values in draws.values()])  # (task, draw)
    return Loss(worst.points, worst.interval, float(within.all(0).mean()), by_task)


SAVINGS = {
    "flops_ratio": "times fewer operations than dense",
    "speed_ratio": "times as fast as dense",
}
SERIES = {  # from the palette of Okabe and Ito; filled and hollow as well, for print without colour
    "loss": BarStyle("kept apart", "#0072B2", fill="white", shift=-7.0),
    "expected": BarStyle("expected", "#0072B2", fill="#0072B2"),
    "test_loss": BarStyle("test", GAP, fill="white", shift=7.0),
    "reported": BarStyle("held out", "#009E73", fill="white", shift=14.0),
}
MARKS = {"dense": ("dense", "D", INK, 7.0), "control": ("dense, trained on", "s", "none", 13.0)}
"""How models that are not pruned are marked: label, shape, fill, size."""


def figure(points: Sequence[Point], *, budget: float) -> Figure:
    """Draws losses with their 95 % intervals against operations and against time: those the texts
    kept apart showed, those to be expected, by which a setting is chosen (ringed), and those on
    other texts. budget: the loss that was allowed, in points of macro-F1.
    """
    if not points:
        raise UserError(
            "A frontier without settings cannot be drawn: give prune at least one target."
        )
    picture = new_figure(8.8, 4.2)
    axes = picture.subplots(1, 2, sharey=True)
    for ax, saving in zip(axes, SAVINGS, strict=True):
        _draw(points, ax, saving, budget)
    axes[0].set_ylabel("loss of macro-F1, points")
    n_labels = len(axes[0].get_legend_handles_labels()[1])
    add_legend(picture, axes[:1], n_columns=n_labels)
    return picture


def _draw(points: Sequence[Point], ax: Axes, saving: str, budget: float) -> None:
    place_of = attrgetter(saving)
    ordered = sorted(points, key=place_of)
    ax.axhline(0, color="#BBBBBB", linewidth=1)
    ax.axhline(budget, color=INK, linestyle="--", linewidth=1, label=f"budget, {budget:g}")
    for name, style in SERIES.items():
        told = [one for one in ordered if one.kind != "dense" and getattr(one, name) is not None]
        losses: list[Loss] = [getattr(point, name) for point in told]
        if losses:
            intervals = [loss.interval for loss in losses]
            places, values = map(place_of, told), [loss.points for loss in losses]
            draw_bars(ax, list(places), values, intervals, style)
    for point in ordered:
        place, value = place_of(point), point.expected.points
        ink: dict[str, Any] = {"color": INK, "markeredgecolor": INK}
        if point.kind in MARKS:
            label, shape, fill, size = MARKS[point.kind]
            ink |= {"label": label, "markerfacecolor": fill, "markersize": size}
            ax.plot([place], [value], shape, zorder=5, **ink)
        if point.chosen:  # ringed where it was chosen by
            ink |= {"label": "chosen", "markerfacecolor": "none", "markersize": 13}
            at = shift_points(ax, SERIES["expected"].shift)
            ax.plot([place], [value], "o", transform=at, **ink)
    low, high = place_of(ordered[0]), place_of(ordered[-1])
    room = 0.15 * (high - low) or 0.1
    ax.set_xlim(low - room, high + room)
    ax.set_xlabel(SAVINGS[saving])
    hide_frame(ax)
