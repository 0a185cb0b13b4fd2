"""effective: for every attention head, how long the part of its map is that does nothing, and how
far what is left looks like the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from litotes.explanation.analyses.drawing.head_maps import HeadMap, maps_figure, single_map
from litotes.explanation.analyses.effective.measure import Effective

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_DISTINCT = 0.5  # dimensions: where null spaces differ less, their map would show one colour


def draw_figure(result: Effective) -> Figure:
    groups = [
        single_map(
            "Length of what does nothing", result.null_share, "‖A − A⊥‖ / ‖A‖", low=0, high=1
        ),
        single_map("Likeness of both maps", result.cosine, "cosine of A and A⊥", low=0, high=1),
        single_map(
            "Share of the effective map below 0", result.negative, "share of Σ |A⊥|", low=0, high=1
        ),
    ]
    title, unit = "Dimension of what can hide", "dimension, mean over texts"
    known = HeadMap(title, result.n_null).known_values
    if max(known) - min(known) > _DISTINCT:
        groups.append(single_map(title, result.n_null, unit, low=0, step=1))
    return maps_figure(groups)
