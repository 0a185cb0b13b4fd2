"""Reliability diagrams: the share right against the confidence, with the number of texts below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from litotes.core.figures import BAR, GAP, INK
from litotes.evaluation.reliability import Bin, Reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BAR: dict[str, Any] = {"color": BAR, "edgecolor": INK, "linewidth": 0.6}
_HATCHED: dict[str, Any] = {"fill": False, "edgecolor": GAP, "hatch": "////", "linewidth": 0.6}


def draw(result: Reliability, ax: Axes, *, title: str) -> None:
    """Draws the diagram into given axes.

    Bars for the share right, hatched up (too sure) or down (too unsure) to the mean confidence.
    """
    for one in result.bins:
        _draw_bin(one, ax)
    ax.plot([0, 1], [0, 1], color=INK, linestyle="--", linewidth=1, label="as sure as right")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_ylabel("share right")
    errors = f"ECE {result.ece:.3f} (equal mass {result.ece_equal_mass:.3f})"
    ax.set_title(f"{title}: {errors}", fontsize=11, parse_math=False)
    _hide_frame(ax)


def _draw_bin(one: Bin, ax: Axes) -> None:
    x, width, gap = (one.low + one.high) / 2, one.high - one.low, one.confidence - one.right
    ax.bar(x, one.right, width, **_BAR, label="right")
    ax.bar(x, gap, width, one.right, **_HATCHED, label="gap to confidence")
    ax.plot([x, x], one.interval, color=INK, linewidth=1.2, label="95 % interval")


def draw_counts(result: Reliability, ax: Axes) -> None:
    """Draws how many texts each bin holds: a bar that few texts stand behind means little."""
    for one in result.bins:
        x = (one.low + one.high) / 2
        ax.bar(x, one.n, width=one.high - one.low, color="#BBBBBB", edgecolor=INK, linewidth=0.6)
        ax.text(x, one.n, str(one.n), ha="center", va="bottom", fontsize=7)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.35 * max(one.n for one in result.bins))  # room for the numbers
    ax.set_yticks([])
    ax.set_xlabel("confidence")
    ax.set_ylabel("texts")
    _hide_frame(ax)


def figure(results: Mapping[str, Reliability]) -> Figure:
    """The diagrams side by side, each under its name: {"before": …, "after": …}."""
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    picture = Figure(figsize=(4.4 * len(results), 4.8), layout="constrained")
    axes = picture.subplots(2, len(results), squeeze=False, sharex=True, height_ratios=(4, 1))
    for (name, result), ax, counts_ax in zip(results.items(), *axes, strict=True):
        draw(result, ax, title=name)
        draw_counts(result, counts_ax)
    _add_legend(picture, axes[0][0])
    return picture


def _add_legend(picture: Figure, ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    entries = dict(zip(labels, handles, strict=True))  # each bar brings its label; once is enough
    style: dict[str, Any] = {"loc": "outside lower center", "frameon": False, "fontsize": 8}
    picture.legend(entries.values(), entries.keys(), ncols=len(entries), **style)


def _hide_frame(ax: Axes) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
