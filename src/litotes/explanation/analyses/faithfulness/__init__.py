"""Which attribution method's words are those the answers rest on."""

from litotes.explanation.analyses.analysis import Analysis
from litotes.explanation.analyses.faithfulness.figure import draw_figure
from litotes.explanation.analyses.faithfulness.measure import FaithfulnessMeasure
from litotes.explanation.analyses.faithfulness.section import write_section

ANALYSIS = Analysis(FaithfulnessMeasure, draw_figure, write_section)
