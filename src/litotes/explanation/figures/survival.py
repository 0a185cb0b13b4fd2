"""What each layer still sees: a row for each layer, a column for each word, piece or attention
head.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from litotes.explanation.figures.shaded_words import FOR_LINE, drawable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GONE = "#e9edf1"

N_ABREAST = 66
"""Names that can be read beside one another on a page."""

_MOST_BANDS = 4


def inches_of(n_layers: int, n_names: int) -> float:
    """How high the bands are together."""
    n_bands = len(_starts(n_names))
    return 0.4 + n_bands * (0.17 * n_layers + (0.75 if _are_written(n_names) else 0.35))


def draw_bands(seen: Sequence[Sequence[float]], names: Sequence[str], into: Any) -> list[Axes]:
    """One below another, so that all names can be written; a text too long for that is one band
    without names. seen: (layer, name)
    """
    starts = _starts(len(names))
    width = starts.step
    bands = list(into.subplots(len(starts), 1, squeeze=False)[:, 0])
    for start, ax in zip(starts, bands, strict=True):
        here = slice(start, start + width)
        draw([row[here] for row in seen], names[here] if _are_written(len(names)) else (), ax)
        # a short text gets no wider columns than it needs
        ax.set_xlim(0, max(width, N_ABREAST // 2))
    return bands


def draw(seen: Sequence[Sequence[float]], names: Sequence[str], ax: Axes) -> None:
    """Dark where something is there, light where it is gone. seen: (layer, name), from 0 to 1"""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("there", [GONE, FOR_LINE])
    linewidth = 0.5 if len(seen[0]) <= 4 * N_ABREAST else 0
    mesh = ax.pcolormesh(np.array(seen), cmap=colours, vmin=0, vmax=1, edgecolors="white")
    mesh.set_linewidth(linewidth)
    ax.invert_yaxis()
    _label_axes(len(seen), names, ax)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _label_axes(n_layers: int, names: Sequence[str], ax: Axes) -> None:
    layers = range(n_layers)
    ax.set_yticks([layer + 0.5 for layer in layers], [str(layer + 1) for layer in layers])
    ax.set_ylabel("layer", fontsize=8)
    if names:
        places = [place + 0.5 for place in range(len(names))]
        labels = [drawable(name) for name in names]
        ax.set_xticks(places, labels, rotation=90, parse_math=False)
    ax.tick_params(length=0, labelsize=7)


def _are_written(n_names: int) -> bool:
    return n_names <= _MOST_BANDS * N_ABREAST


def _starts(n_names: int) -> range:
    """Where each band begins; all are about as long."""
    n_bands = ceil(n_names / N_ABREAST) if _are_written(n_names) else 1
    return range(0, max(n_names, 1), max(ceil(n_names / max(n_bands, 1)), 1))
