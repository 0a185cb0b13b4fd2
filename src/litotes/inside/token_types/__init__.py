"""What [CLS] looks at in the last layer, by type of piece."""

from litotes.inside.analysis import Analysis
from litotes.inside.token_types.figure import draw_figure
from litotes.inside.token_types.measure import TokenTypesMeasure
from litotes.inside.token_types.section import write_section

ANALYSIS = Analysis(TokenTypesMeasure, draw_figure, write_section)
