"""Points with their intervals, the same in every figure that has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Transform


@dataclass(frozen=True)
class BarStyle:
    """How some points are drawn.

    shift: printer's points to the side, for those that would cover one another.
    """

    label: str
    colour: str
    fill: str
    shift: float = 0.0


def draw_bars(
    ax: Axes,
    places: Sequence[float],
    values: Sequence[float],
    intervals: Sequence[tuple[float, float]],
    style: BarStyle,
) -> None:
    """Draws values with their intervals at these places of the axis."""
    # drawn from the point to the interval's ends, which need not lie on both sides of it
    ends = list(zip(values, intervals, strict=True))
    below = [max(value - low, 0) for value, (low, _) in ends]
    above = [max(high - value, 0) for value, (_, high) in ends]
    bars = ax.errorbar(
        places,
        values,
        yerr=[below, above],
        fmt="o",
        color=style.colour,
        elinewidth=1.4,
        capsize=3,
        transform=shift_points(ax, style.shift),
    )
    bars.lines[0].set(markersize=7, markerfacecolor=style.fill, markeredgecolor=style.colour)
    bars.set_label(style.label)
    for place, (value, interval) in zip(places, ends, strict=True):
        # what is shifted does not count by itself
        ax.update_datalim([(place, end) for end in (*interval, value)])
    ax.autoscale_view()


def shift_points(ax: Axes, shift: float) -> Transform:
    """Places of the data, a few printer's points to the side: the numbers on the axis stay true."""
    from matplotlib.transforms import ScaledTranslation

    assert ax.figure is not None
    return ax.transData + ScaledTranslation(shift / 72, 0, ax.figure.dpi_scale_trans)
