"""Which words push towards which label, and how far the attribution methods agree."""

from litotes.inside.analysis import Analysis
from litotes.inside.attribution.figure import draw_figure
from litotes.inside.attribution.measure import AttributionMeasure
from litotes.inside.attribution.section import write_section

ANALYSIS = Analysis(AttributionMeasure, draw_figure, write_section)
