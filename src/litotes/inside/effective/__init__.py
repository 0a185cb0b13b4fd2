"""How much of the attention reaches the output."""

from litotes.inside.analysis import Analysis
from litotes.inside.effective.figure import draw_figure
from litotes.inside.effective.measure import EffectiveMeasure
from litotes.inside.effective.section import write_section

ANALYSIS = Analysis(EffectiveMeasure, draw_figure, write_section)
