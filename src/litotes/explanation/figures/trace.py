"""One text on its way through a pruned model, in the manner of figure 11 of Nespolo et al.,
"Figurative Language Understanding".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from litotes.core.errors import UserError
from litotes.explanation.figures.shaded_words import FOR_LINE, drawable
from litotes.explanation.figures.survival import GONE, draw, draw_bands, inches_of
from litotes.explanation.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SQUARE = 3.2
_MOST_WRITTEN = 24  # pieces beside a square of that size


def figure(trace: Trace) -> Figure:
    """Above, which pieces are active as keys × queries in the first, the middle and the last layer,
    and the attention heads used by layer.

    Below, every piece by layer, which is the same and easier to read.
    """
    from matplotlib.figure import Figure  # takes half a second; only figures need it

    if not trace.heads or not trace.written:
        raise UserError("A trace without layers or pieces cannot be drawn: observe a text first.")
    last = len(trace.heads) - 1
    layers = sorted({0, last // 2, last})
    heights = [_SQUARE + 0.5, inches_of(len(trace.heads), len(trace.written))]
    picture = Figure(figsize=(_SQUARE * (len(layers) + 1), sum(heights)), layout="constrained")
    above, below = picture.subfigures(2, 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw_layers(trace, layers, above)
    seen = [[float(is_there) for is_there in row] for row in trace.seen]
    bands = draw_bands(seen, trace.written, below)
    bands[0].set_title("the pieces each layer sees", fontsize=10, loc="left")
    return picture


def _draw_layers(trace: Trace, layers: Sequence[int], into: Any) -> None:
    *squares, heads_ax = into.subplots(1, len(layers) + 1)
    for layer, ax in zip(layers, squares, strict=True):
        _draw_active(trace, layer, ax)
    _draw_heads(trace, heads_ax)


def _draw_active(trace: Trace, layer: int, ax: Axes) -> None:
    """What is gone is neither asked nor looked at: its rows and columns are empty."""
    from matplotlib.colors import ListedColormap

    there = np.array(trace.seen[layer])
    ax.imshow(
        np.outer(there, there),
        cmap=ListedColormap([GONE, FOR_LINE]),
        vmin=0,
        vmax=1,
        interpolation="nearest",
    )
    ax.set_title(f"layer {layer + 1}: {there.sum()} of {len(there)} pieces", fontsize=10)
    ax.set_xlabel("key", fontsize=8)
    ax.set_ylabel("query", fontsize=8)
    ax.tick_params(labelsize=6, length=2)
    if len(there) <= _MOST_WRITTEN:
        names = [drawable(piece) for piece in trace.written]
        ax.set_xticks(range(len(names)), names, rotation=90, parse_math=False)
        ax.set_yticks(range(len(names)), names, parse_math=False)


def _draw_heads(trace: Trace, ax: Axes) -> None:
    n_heads = max(head for heads in trace.heads for head in heads) + 1
    used = [[float(head in heads) for head in range(n_heads)] for heads in trace.heads]
    draw(used, [str(head + 1) for head in range(n_heads)], ax)
    ax.tick_params(axis="x", rotation=0)
    ax.set_xlabel("attention head", fontsize=8)
    ax.set_title("attention heads used", fontsize=10)
