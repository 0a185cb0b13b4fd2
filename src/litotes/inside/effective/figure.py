"""effective: for every attention head, how long the part of its map is that does nothing, and how
far what is left looks like the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litotes.inside.drawing import head_maps
from litotes.inside.drawing.head_maps import HeadMap, MapGroup, scale
from litotes.inside.effective.measure import Effective

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_UNLIKE = 0.5  # dimensions: below that, a map of null spaces would show one colour


def draw_figure(result: Effective) -> Figure:
    share = HeadMap("Length of what does nothing", result.null_share)
    alike = HeadMap("Likeness of both maps", result.cosine)
    negative = HeadMap("Share of the effective map below 0", result.negative)
    hidden = HeadMap("Dimension of what can hide", result.n_null)
    bands = [
        MapGroup((share,), "‖A − A⊥‖ / ‖A‖", scale([share], low=0)),
        MapGroup((alike,), "cosine of A and A⊥", scale([alike], high=1)),
        MapGroup((negative,), "share of Σ |A⊥|", scale([negative], low=0)),
    ]
    if max(hidden.known) - min(hidden.known) > _UNLIKE:
        bands.append(
            MapGroup((hidden,), "dimension, mean over texts", scale([hidden], low=0, step=1))
        )
    return head_maps.figure(bands)
