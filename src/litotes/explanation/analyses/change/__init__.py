"""How far fine-tuning moved the attention."""

from litotes.explanation.analyses.analysis import Analysis
from litotes.explanation.analyses.change.figure import draw_figure
from litotes.explanation.analyses.change.measure import ChangeMeasure
from litotes.explanation.analyses.change.section import write_section

ANALYSIS = Analysis(ChangeMeasure, draw_figure, write_section)
