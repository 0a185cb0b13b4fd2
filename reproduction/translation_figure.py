"""The figure of docs/results/translation.md: density, diversity and α by layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from litotes.core.figures import BAR, GAP, INK
from litotes.training.translation.attention_statistics import KINDS
from reproduction.translation_numbers import NAMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {"softmax": INK, "entmax": BAR, "learned": GAP}


def figure_name(direction: str) -> str:
    return f"attention-{direction}.svg"


def draw(found: Mapping[str, Any]) -> Figure:
    """Density and diversity by layer for each kind of attention, and α of every head."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    picture = Figure(figsize=(8.6, 6.4), layout="constrained")
    axes = picture.subplots(3, 3, sharex=True, sharey="row")
    for column, kind in enumerate(KINDS):
        for row, what in enumerate(("density", "diversity")):
            ax = axes[row][column]
            for weighting, one in found.items():
                values = one["attention"][what][kind]
                places = range(1, len(values) + 1)
                colour, label = COLOURS[weighting], NAMES[weighting]
                ax.plot(places, values, "o-", color=colour, label=label, markersize=4)
        alpha = found.get("learned", {"attention": {"alpha": {kind: []}}})["attention"]["alpha"]
        for layer, values in enumerate(alpha[kind], start=1):
            axes[2][column].plot([layer] * len(values), values, "_", color=GAP, markersize=9)
        axes[2][column].axhline(1.2, color=INK, linestyle="--", linewidth=0.8)
        axes[0][column].set_title(kind, fontsize=10)
        axes[2][column].set_xlabel("layer")
        axes[2][column].xaxis.set_major_locator(MaxNLocator(integer=True))
    for ax, label in zip(axes[:, 0], ("density", "diversity, bits", "α by head"), strict=True):
        ax.set_ylabel(label)
    for ax in axes.flat:
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    axes[0][0].legend(frameon=False, fontsize=8)
    return picture
