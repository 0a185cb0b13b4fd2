"""diversity: how much the heads of a layer differ; how sure and how sparse each is; which of them
do one plain job.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from litotes.inside.diversity.measure import Diversity
from litotes.inside.drawing.canvas import Box, new_canvas
from litotes.inside.drawing.head_maps import (
    HeadMap,
    MapGroup,
    draw_groups,
    height_of,
    scale,
    width_of,
)
from litotes.inside.drawing.marks import Series, draw_series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TOP = 2.4  # inches


def draw_figure(result: Diversity) -> Figure:
    bands = [*_characters(result), *_jobs(result)]
    on = new_canvas(width_of(bands), _TOP + height_of(bands))
    ax = on.chart(Box(0, 0, on.width, _TOP))
    draw_series({"divergence": Series(result.divergence, result.divergence_half_width)}, ax)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("layer", fontsize=8)
    ax.set_ylabel("divergence, bits", fontsize=8)
    draw_groups(bands, on, top=_TOP)
    return on.picture


def _characters(result: Diversity) -> list[MapGroup]:
    """Each on its own scale.

    Density and α only where they say something: softmax leaves nothing out.
    """
    entropy, confidence = (
        HeadMap("Spread", result.entropy),
        HeadMap("Sureness: the largest weight", result.confidence),
    )
    bands = [
        MapGroup((entropy,), "entropy, bits a query", scale([entropy], low=0, step=0.5)),
        MapGroup((confidence,), "mean of the largest weight", scale([confidence], low=0)),
    ]
    if any(share is not None and share < 1 for share in chain.from_iterable(result.density)):
        bands.append(
            MapGroup((HeadMap("Density", result.density),), "share of weights above 0", (0, 1))
        )
    if result.alpha:
        bands.append(
            MapGroup(
                (HeadMap("α as learned", result.alpha),), "α (1: softmax, 2: sparsemax)", (1, 2)
            )
        )
    return bands


def _jobs(result: Diversity) -> list[MapGroup]:
    """Two and two on one scale, framed where a head does that job most of the time."""
    maps = []
    for job, values in {**result.positional, "pieces of a word": result.merging}.items():
        framed = [(head.layer, head.attention_head) for head in result.named if head.job == job]
        title = (
            "Looks at the rest of its word" if values is result.merging else f"Looks at the {job}"
        )
        maps.append(HeadMap(title, values, framed))
    units = ("share of queries", "share of queries or of weight")
    return [
        MapGroup((first, second), unit, (0, 1))
        for first, second, unit in zip(maps[::2], maps[1::2], units, strict=True)
    ]
