"""Which attribution method's words are those the answers rest on."""

from litotes.inside.analysis import Analysis
from litotes.inside.faithfulness.figure import draw_figure
from litotes.inside.faithfulness.measure import FaithfulnessMeasure
from litotes.inside.faithfulness.section import write_section

ANALYSIS = Analysis(FaithfulnessMeasure, draw_figure, write_section)
