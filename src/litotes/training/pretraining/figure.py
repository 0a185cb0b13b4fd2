"""The curve of held-out perplexity over a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from litotes.core.figures import GAP

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVE = "#0072B2"  # from the palette of Okabe and Ito


def draw_curve(history: Sequence[Mapping[str, Any]], *, unigram: float) -> Figure:
    """Perplexity, on a logarithmic scale, against steps. unigram: drawn for comparison."""
    from matplotlib.figure import Figure  # takes half a second; only pictures need it
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    picture = Figure(figsize=(6.4, 4.0), layout="constrained")
    ax = picture.subplots()
    steps = [line["step"] for line in history]
    values = [line["perplexity"] for line in history]
    ax.axhline(unigram, color=GAP, linestyle="--", linewidth=1, label="by frequency alone")
    ax.plot(steps, values, "o-", color=CURVE, markersize=4, label="held out")
    ax.set_yscale("log")
    # a curve often stays within a power of ten, and an axis with one number says nothing
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    ax.yaxis.set_major_formatter(FuncFormatter(_number))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("step")
    ax.set_ylabel("perplexity of the chosen pieces")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.legend(frameon=False, fontsize=8)
    return picture


def _number(value: float, place: int | None = None) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"
