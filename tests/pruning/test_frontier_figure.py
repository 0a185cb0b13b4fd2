"""The picture of a frontier: losses where they belong, intervals inside it, the chosen setting
ringed.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import same_color

from litotes.core.errors import UserError
from litotes.core.figures import render_figure
from litotes.pruning.frontier import NO_LOSS, SAVINGS, SERIES, Kind, Loss, Point, figure


def made(
    target: float,
    speed: float,
    loss: float,
    test_loss: float | None,
    *,
    chosen: bool = False,
    kind: Kind = "pruned",
) -> Point:
    tested = None if test_loss is None else Loss(test_loss, (test_loss - 1.5, test_loss + 1), 0.7)
    return Point(
        target,
        (0.5, 0.2),
        8,
        target + 0.05,
        speed,
        Loss(loss, (loss - 2, loss + 3), 0.8),
        tested,
        0.01,
        chosen,
        kind=kind,
        expected=Loss(loss / 2, (loss / 2 - 1, loss / 2 + 2), 0.7),
    )


DENSE = replace(made(1.0, 1.0, 0.0, 0.0, kind="dense"), flops_ratio=1.0, expected=NO_LOSS)
CONTROL = replace(made(1.0, 1.02, -0.6, -0.4, kind="control"), flops_ratio=1.0)
POINTS = (
    DENSE,
    CONTROL,
    made(2.5, 1.9, 0.4, 0.6, chosen=True),
    made(1.5, 1.3, -0.2, 0.1),
    made(3.0, 2.1, 6.0, 4.0),
)


def drawn(ax: Axes, *, name: str) -> list[tuple[float, float]]:
    """The places of the points with this name in the legend."""
    (handle,) = [
        one for one, label in zip(*ax.get_legend_handles_labels(), strict=True) if label == name
    ]
    line = handle.lines[0] if hasattr(handle, "lines") else handle
    return [(round(x, 6), round(y, 6)) for x, y in zip(*line.get_data(), strict=True)]


def test_losses_stand_at_their_savings() -> None:
    operations, time = figure(POINTS, budget=0.5).axes
    assert drawn(operations, name="kept apart") == [
        (1.0, -0.6),
        (1.55, -0.2),
        (2.55, 0.4),
        (3.05, 6.0),
    ]
    assert drawn(operations, name="expected")[1:] == [(1.55, -0.1), (2.55, 0.2), (3.05, 3.0)]
    assert drawn(operations, name="dense") == [(1.0, 0.0)]
    assert drawn(operations, name="dense, trained on") == [(1.0, -0.3)]
    assert drawn(operations, name="test") == [
        (1.0, -0.4),
        (1.55, 0.1),
        (2.55, 0.6),
        (3.05, 4.0),
    ]
    assert drawn(time, name="kept apart") == [
        (1.02, -0.6),
        (1.3, -0.2),
        (1.9, 0.4),
        (2.1, 6.0),
    ]


def test_the_chosen_one_is_ringed_and_it_alone() -> None:
    operations, time = figure(POINTS, budget=0.5).axes
    assert drawn(operations, name="chosen") == [(2.55, 0.2)]
    assert drawn(time, name="chosen") == [(1.9, 0.2)]
    nothing = [replace(point, chosen=False) for point in POINTS]
    assert "chosen" not in render_figure(figure(nothing, budget=0.5), "svg").decode()


def test_held_out_is_filled_and_test_is_hollow() -> None:
    ax = figure(POINTS, budget=0.5).axes[0]
    marks = {bars.get_label(): bars.lines[0].get_markerfacecolor() for bars in ax.containers}
    assert same_color(marks["expected"], SERIES["expected"].colour)
    assert same_color(marks["kept apart"], "white")
    assert same_color(marks["test"], "white")


def test_every_interval_and_the_budget_lie_inside() -> None:
    for ax in figure(POINTS, budget=0.5).axes:
        low, high = ax.get_ylim()
        assert low < -2.2
        assert high > 9.0


def test_it_says_what_it_shows() -> None:
    svg = render_figure(figure(POINTS, budget=0.75), "svg").decode()
    for shown in (
        *SAVINGS.values(),
        "budget, 0.75",
        "kept apart",
        "expected",
        "test",
        "dense, trained on",
        "loss of macro-F1, points",
    ):
        assert shown in svg


def test_without_a_test_split() -> None:
    ax = figure([made(2.0, 1.5, 0.1, None)], budget=0.5).axes[0]
    assert ax.get_legend_handles_labels()[1].count("test") == 0
    assert drawn(ax, name="kept apart") == [(2.05, 0.1)]


@pytest.mark.slow
def test_is_drawn_the_same_twice() -> None:
    for kind in ("svg", "png"):
        assert render_figure(figure(POINTS, budget=0.5), kind) == render_figure(
            figure(POINTS, budget=0.5), kind
        )


def test_no_points_are_told() -> None:
    with pytest.raises(UserError, match="at least one target"):
        figure([], budget=0.5)
