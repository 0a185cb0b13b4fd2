"""How much the attention heads of a layer differ, and which have a clear role."""

from litotes.explanation.analyses.analysis import Analysis
from litotes.explanation.analyses.diversity.figure import draw_figure
from litotes.explanation.analyses.diversity.measure import DiversityMeasure
from litotes.explanation.analyses.diversity.section import write_section

ANALYSIS = Analysis(DiversityMeasure, draw_figure, write_section)
