"""Which pieces and attention heads leave a pruned model at which layer."""

from litotes.inside.analysis import Analysis
from litotes.inside.trace.figure import draw_figure
from litotes.inside.trace.measure import TraceMeasure
from litotes.inside.trace.section import write_section

ANALYSIS = Analysis(TraceMeasure, draw_figure, write_section)
