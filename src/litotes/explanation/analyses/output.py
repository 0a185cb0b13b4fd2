"""What `litotes analyze` writes into a folder."""

from __future__ import annotations

from pathlib import Path

from litotes.core.figures import save_figure
from litotes.core.storage import write_json, write_text
from litotes.explanation.analyses import ANALYSES
from litotes.explanation.analyses.analyze import CorpusAnalysis
from litotes.explanation.analyses.report import report_html


def write_analysis(analysis: CorpusAnalysis, folder: Path) -> None:
    """Writes analysis.json, each figure as SVG and as numbers, and the report that shows them."""
    pictures = {}
    for name, result in analysis.results.items():
        figure = ANALYSES[name].draw_figure(result)
        svg = save_figure(folder / name, figure, result.as_json(), with_png=False)
        pictures[name] = svg.decode("utf-8")
    write_text(folder / "report.html", report_html(analysis, pictures))
    write_json(folder / "analysis.json", analysis.as_json())
