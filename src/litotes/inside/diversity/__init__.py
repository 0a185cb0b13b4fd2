"""How much the attention heads of a layer differ, and which have a clear role."""

from litotes.inside.analysis import Analysis
from litotes.inside.diversity.figure import draw_figure
from litotes.inside.diversity.measure import DiversityMeasure
from litotes.inside.diversity.section import write_section

ANALYSIS = Analysis(DiversityMeasure, draw_figure, write_section)
