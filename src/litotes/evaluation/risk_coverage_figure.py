"""Risk-coverage curves: the error rate among the texts that a model is surest of."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from litotes.core.figures import BAR, GAP, INK
from litotes.evaluation.risk_coverage import RiskCoverage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(result: RiskCoverage, ax: Axes, *, title: str) -> None:
    """Draws one curve, with the error rate of all texts as a line."""
    ax.plot(result.coverage, result.risk, color=INK, linewidth=1.4)
    ax.fill_between(result.coverage, result.risk, color=BAR, alpha=0.5, linewidth=0)
    ax.axhline(result.error, color=GAP, linestyle="--", linewidth=1)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.1 * max(*result.risk, result.error, 0.01))
    ax.set_xlabel("share of texts answered, the surest first")
    ax.set_ylabel("error rate among them")
    areas = f"area {result.area:.3f} (best {result.best_area:.3f}, no order {result.error:.3f})"
    ax.set_title(f"{title}: {areas}", fontsize=10, parse_math=False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def overlay(results: Mapping[str, RiskCoverage]) -> Figure:
    """Several curves in one picture, each with its area."""
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    picture = Figure(figsize=(6.4, 3.8), layout="constrained")
    ax = picture.subplots()
    styles = itertools.cycle(itertools.product(("-", "--", ":", "-."), (INK, BAR, GAP)))
    for (name, result), (line, colour) in zip(results.items(), styles, strict=False):
        label = f"{name}: {result.area:.3f} (best {result.best_area:.3f})"
        ax.plot(result.coverage, result.risk, line, color=colour, linewidth=1.4, label=label)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.3 * max(map(_highest, results.values())))  # room for the legend
    ax.set_xlabel("share of texts answered, the surest first")
    ax.set_ylabel("error rate among them")
    legend = ax.legend(frameon=False, fontsize=8, title="area", title_fontsize=8)
    for text in legend.get_texts():
        text.set_parse_math(False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return picture


def _highest(result: RiskCoverage) -> float:
    """The highest risk but for the first few texts, of which one mistake is a rate of 1."""
    known = [risk for share, risk in zip(result.coverage, result.risk, strict=True) if share > 0.05]
    return max(known, default=1.0) or 0.01


def figure(results: Mapping[str, RiskCoverage]) -> Figure:
    """The curves side by side, each under its name."""
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    picture = Figure(figsize=(4.8 * len(results), 3.6), layout="constrained")
    axes = picture.subplots(1, len(results), squeeze=False)
    for (name, result), ax in zip(results.items(), axes[0], strict=True):
        draw(result, ax, title=name)
    return picture
