"""What [CLS] looks at in the last layer, by type of piece."""

from litotes.explanation.analyses.analysis import Analysis
from litotes.explanation.analyses.token_types.figure import draw_figure
from litotes.explanation.analyses.token_types.measure import TokenTypesMeasure
from litotes.explanation.analyses.token_types.section import write_section

ANALYSIS = Analysis(TokenTypesMeasure, draw_figure, write_section)
