"""diversity: how much the heads of a layer differ; how sure and how sparse each is; which of them
have a clear role.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from litotes.explanation.analyses.diversity.measure import Diversity
from litotes.explanation.analyses.drawing.canvas import Box, new_canvas
from litotes.explanation.analyses.drawing.head_maps import (
    HeadMap,
    MapGroup,
    draw_groups,
    groups_height,
    groups_width,
    single_map,
)
from litotes.explanation.analyses.drawing.marks import Series, draw_series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TOP = 2.4  # inches


def draw_figure(result: Diversity) -> Figure:
    groups = [*_head_properties(result), *_roles(result)]
    canvas = new_canvas(groups_width(groups), _TOP + groups_height(groups))
    ax = canvas.chart(Box(0, 0, canvas.width, _TOP))
    draw_series({"divergence": Series(result.divergence, result.divergence_half_width)}, ax)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("layer", fontsize=8)
    ax.set_ylabel("divergence, bits", fontsize=8)
    draw_groups(groups, canvas, top=_TOP)
    return canvas.figure


def _head_properties(result: Diversity) -> list[MapGroup]:
    """Each on its own scale.

    Density and α only where they say something: softmax leaves nothing out.
    """
    sureness, unit = "Sureness: the largest weight", "mean of the largest weight"
    groups = [
        single_map("Spread", result.entropy, "entropy, bits a query", low=0, step=0.5),
        single_map(sureness, result.confidence, unit, low=0, high=1),
    ]
    density = HeadMap("Density", result.density)
    if any(share < 1 for share in density.known_values):
        groups.append(MapGroup((density,), "share of weights above 0", (0, 1)))
    if result.alpha:
        alpha = HeadMap("α as learned", result.alpha)
        groups.append(MapGroup((alpha,), "α (1: softmax, 2: sparsemax)", (1, 2)))
    return groups


def _roles(result: Diversity) -> list[MapGroup]:
    """Two and two on one scale, framed where a head has that role most of the time."""
    maps = []
    for role, values in chain(result.positional.items(), [("pieces of a word", result.merging)]):
        framed = [(head.layer, head.attention_head) for head in result.named if head.job == role]
        target = "rest of its word" if values is result.merging else role
        maps.append(HeadMap(f"Looks at the {target}", values, framed))
    previous, same, following, merging = maps
    return [
        MapGroup((previous, same), "share of queries", (0, 1)),
        MapGroup((following, merging), "share of queries or of weight", (0, 1)),
    ]
