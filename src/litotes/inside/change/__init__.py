"""How far fine-tuning moved the attention."""

from litotes.inside.analysis import Analysis
from litotes.inside.change.figure import draw_figure
from litotes.inside.change.measure import ChangeMeasure
from litotes.inside.change.section import write_section

ANALYSIS = Analysis(ChangeMeasure, draw_figure, write_section)
