"""A corpus of texts: what a model's attention does over it, and what its answers rest on.

A new analysis is one file (`analysis.py` says what stands in it) with its words next to it, and one
line in `ANALYSES`: `litotes analyze`, its report, `litotes list analyses` and the contract tests
follow by themselves.
"""

from litotes.explanation.analyses.analysis import Analysis
from litotes.explanation.analyses.attribution import AttributionAnalysis
from litotes.explanation.analyses.change import ChangeAnalysis
from litotes.explanation.analyses.diversity import DiversityAnalysis
from litotes.explanation.analyses.effective import EffectiveAnalysis
from litotes.explanation.analyses.faithfulness import FaithfulnessAnalysis
from litotes.explanation.analyses.patterns import PatternsAnalysis
from litotes.explanation.analyses.token_types import TokenTypesAnalysis
from litotes.explanation.analyses.trace import TraceAnalysis

ANALYSES: dict[str, type[Analysis]] = {
    "effective": EffectiveAnalysis,
    "patterns": PatternsAnalysis,
    "token_types": TokenTypesAnalysis,
    "change": ChangeAnalysis,
    "diversity": DiversityAnalysis,
    "trace": TraceAnalysis,
    "attribution": AttributionAnalysis,
    "faithfulness": FaithfulnessAnalysis,
}
"""In the order in which the report reads."""
