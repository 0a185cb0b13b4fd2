"""How much of the attention reaches the output."""

from litotes.explanation.analyses.analysis import Analysis
from litotes.explanation.analyses.effective.figure import draw_figure
from litotes.explanation.analyses.effective.measure import EffectiveMeasure
from litotes.explanation.analyses.effective.section import write_section

ANALYSIS = Analysis(EffectiveMeasure, draw_figure, write_section)
