"""Which pieces and attention heads leave a pruned model at which layer."""

from litotes.explanation.analyses.analysis import Analysis
from litotes.explanation.analyses.trace.figure import draw_figure
from litotes.explanation.analyses.trace.measure import TraceMeasure
from litotes.explanation.analyses.trace.section import write_section

ANALYSIS = Analysis(TraceMeasure, draw_figure, write_section)
