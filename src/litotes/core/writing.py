"""Writes a figure with the numbers it shows beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from litotes.core.figure import render_figure
from litotes.core.storage import write_bytes, write_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_figure(stem: Path, figure: Figure, content: Any, *, with_png: bool = True) -> bytes:
    """Writes STEM.svg, STEM.png and, in STEM.json, the numbers they show; returns the SVG."""
    svg = render_figure(figure, "svg")
    write_bytes(stem.with_name(f"{stem.name}.svg"), svg)
    if with_png:
        write_bytes(stem.with_name(f"{stem.name}.png"), render_figure(figure, "png"))
    write_json(stem.with_name(f"{stem.name}.json"), content)
    return svg
