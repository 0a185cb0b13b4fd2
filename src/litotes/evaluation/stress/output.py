"""What `litotes stress` writes into a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from litotes.core.figures import save_figure
from litotes.core.storage import write_text
from litotes.data.rewrites.rewrite import Rewrite
from litotes.evaluation.stress.figure import figure
from litotes.evaluation.stress.measure import FEWEST
from litotes.evaluation.stress.page import page_html
from litotes.evaluation.stress.result import StressResult


def write_stress(result: StressResult, rewrites: Mapping[str, Rewrite], folder: Path) -> None:
    """Writes stress.json, the figure as stress.svg and stress.png, and the page stress.html."""
    picture = figure(result, fewest=FEWEST)
    svg = save_figure(folder / "stress", picture, result.as_json())
    write_text(folder / "stress.html", page_html(result, rewrites, svg.decode("utf-8")))
