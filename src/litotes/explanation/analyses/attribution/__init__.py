"""Which words push towards which label, and how far the attribution methods agree."""

from litotes.explanation.analyses.analysis import Analysis
from litotes.explanation.analyses.attribution.figure import draw_figure
from litotes.explanation.analyses.attribution.measure import AttributionMeasure
from litotes.explanation.analyses.attribution.section import write_section

ANALYSIS = Analysis(AttributionMeasure, draw_figure, write_section)
