"""Seeing inside: what a model's attention does over a corpus, and what one answer rests on.

A new analysis is one file and one line in `ANALYSES`; `litotes analyze` and `litotes list analyses`
follow by themselves.
"""

from litotes.inside.analysis import Analysis
from litotes.inside.attribution.measure import AttributionAnalysis
from litotes.inside.change.measure import ChangeAnalysis
from litotes.inside.diversity.measure import DiversityAnalysis
from litotes.inside.effective.measure import EffectiveAnalysis
from litotes.inside.faithfulness.measure import FaithfulnessAnalysis
from litotes.inside.patterns.measure import PatternsAnalysis
from litotes.inside.token_types.measure import TokenTypesAnalysis
from litotes.inside.trace.measure import TraceAnalysis

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
