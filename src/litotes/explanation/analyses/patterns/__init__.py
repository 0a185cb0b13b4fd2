"""Which of five patterns an attention map has: a network's opinion, and one by rules.

>>> import torch
>>> from litotes.explanation.analyses.patterns import classify
>>> classify(torch.eye(64)[None]).labels
['diagonal']
"""

from litotes.explanation.analyses.analysis import Analysis
from litotes.explanation.analyses.patterns.classes import CLASSES
from litotes.explanation.analyses.patterns.figure import draw_figure
from litotes.explanation.analyses.patterns.measure import PatternsMeasure
from litotes.explanation.analyses.patterns.network import Patterns, classify
from litotes.explanation.analyses.patterns.rules import Evidence, by_rules, evidence
from litotes.explanation.analyses.patterns.section import write_section

ANALYSIS = Analysis(PatternsMeasure, draw_figure, write_section)

__all__ = ["ANALYSIS", "CLASSES", "Evidence", "Patterns", "by_rules", "classify", "evidence"]
