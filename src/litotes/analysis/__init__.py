"""Seeing inside: what a model's attention does over a corpus, and what one answer rests on.

A new analysis is one file and one line in `ANALYSES`; `litotes analyze` and `litotes list analyses` follow by themselves.
"""

from litotes.analysis.analysis import Analysis
from litotes.analysis.change import ChangeAnalysis
from litotes.analysis.diversity import DiversityAnalysis
from litotes.analysis.effective import EffectiveAnalysis
from litotes.analysis.faithfulness import FaithfulnessAnalysis
from litotes.analysis.pattern_shares import PatternsAnalysis
from litotes.analysis.token_types import TokenTypesAnalysis
from litotes.analysis.trace import TraceAnalysis
from litotes.analysis.words import AttributionAnalysis

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
