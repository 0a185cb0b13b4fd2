"""Seeing inside: what a model's attention does over a corpus, and what its answers rest on.

An analysis is a folder with three chapters, `measure`, `figure` and `section`, which its
`__init__.py` gathers. A new one is one folder and one line in `ANALYSES`: `litotes analyze`, its
report, `litotes list analyses` and the contract tests follow by themselves.
"""

from litotes.explanation.analyses import (
    attribution,
    change,
    diversity,
    effective,
    faithfulness,
    patterns,
    token_types,
    trace,
)
from litotes.explanation.analyses.analysis import Analysis

ANALYSES: dict[str, Analysis] = {
    "effective": effective.ANALYSIS,
    "patterns": patterns.ANALYSIS,
    "token_types": token_types.ANALYSIS,
    "change": change.ANALYSIS,
    "diversity": diversity.ANALYSIS,
    "trace": trace.ANALYSIS,
    "attribution": attribution.ANALYSIS,
    "faithfulness": faithfulness.ANALYSIS,
}
"""In the order in which the report reads."""
