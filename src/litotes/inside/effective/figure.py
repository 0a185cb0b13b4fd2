"""effective: for every attention head, how long the part of its map is that does nothing, and how
far what is left looks like the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litotes.inside.drawing.head_maps import HeadMap, MapGroup, maps_figure, scale
from litotes.inside.effective.measure import Effective

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_DISTINCT = 0.5  # dimensions: where null spaces differ less, their map would show one colour


def draw_figure(result: Effective) -> Figure:
    share = HeadMap("Length of what does nothing", result.null_share)
    cosine = HeadMap("Likeness of both maps", result.cosine)
    negative = HeadMap("Share of the effective map below 0", result.negative)
    groups = [
        MapGroup((share,), "‖A − A⊥‖ / ‖A‖", scale([share], low=0)),
        MapGroup((cosine,), "cosine of A and A⊥", scale([cosine], high=1)),
        MapGroup((negative,), "share of Σ |A⊥|", scale([negative], low=0)),
    ]
    n_null = HeadMap("Dimension of what can hide", result.n_null)
    if max(n_null.known_values) - min(n_null.known_values) > _DISTINCT:
        limits = scale([n_null], low=0, step=1)
        groups.append(MapGroup((n_null,), "dimension, mean over texts", limits))
    return maps_figure(groups)
