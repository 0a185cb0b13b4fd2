"""Learned α layer by layer: how sparse each attention head may be, and beside it how sparse it is
on texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import ceil, floor
from typing import TYPE_CHECKING

from litotes.core.errors import UserError
from litotes.core.figures import BAR, GAP, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_BINS = 24

_STEP = 0.02
"""The scale of α ends at multiples of this: learned ones often lie close together, and from 1 to 2
they would be one bar.
"""


def draw(values: Sequence[float], ax: Axes, *, limits: tuple[float, float]) -> None:
    """Draws the histogram of one layer's values, one of each attention head, with their mean as a
    line and as a number.
    """
    mean = sum(values) / len(values)
    ax.hist(values, bins=N_BINS, range=limits, color=BAR, edgecolor=INK, linewidth=0.4)
    ax.axvline(mean, color=INK, linewidth=1.4, label="mean")
    ax.text(1.02, 0.5, f"{mean:.3f}", transform=ax.transAxes, ha="left", va="center", fontsize=9)
    ax.set_xlim(limits)
    ax.set_yticks([])
    ax.tick_params(labelsize=8)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)


def figure(
    alpha: Sequence[Sequence[float]], density: Sequence[Sequence[float]], *, start: float
) -> Figure:
    """A row for each layer: α of its attention heads left, their density right, each with its mean.

    alpha, density: (layer, attention_head); heads of several seeds may follow one another. density:
    the share of weights above 0.
    start: where α began, so that one sees whether it went anywhere.
    """
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    if not alpha or len(alpha) != len(density) or not all(map(len, chain(alpha, density))):
        raise UserError(
            f"α of {len(alpha)} layers and densities of {len(density)} cannot be drawn: give both"
            " for every layer."
        )
    limits = _limits([*chain.from_iterable(alpha), start])
    picture = Figure(figsize=(8.4, 0.72 * len(alpha) + 1.3), layout="constrained")
    axes = picture.subplots(len(alpha), 2, squeeze=False, sharex="col", sharey="col")
    for layer, (left, right) in enumerate(axes):
        draw(alpha[layer], left, limits=limits)
        left.axvline(start, color=GAP, linestyle="--", linewidth=1.4, label="start")
        draw(density[layer], right, limits=(0, 1))
        left.set_ylabel(f"layer {layer + 1}", rotation=0, ha="right", va="center", fontsize=9)
    axes[0][0].set_title("α of the attention heads", fontsize=11)
    axes[0][1].set_title("share of weights above 0", fontsize=11)
    axes[-1][0].set_xlabel("α (1: softmax, 2: sparsemax)")
    axes[-1][1].set_xlabel("density (1: nothing left out)")
    picture.legend(
        *axes[0][0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=2,
        frameon=False,
        fontsize=8,
    )
    return picture


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """Multiples of the step around all values, a step apart at least."""
    low, high = floor(min(values) / _STEP), ceil(max(values) / _STEP)
    return low * _STEP, max(high, low + 1) * _STEP
