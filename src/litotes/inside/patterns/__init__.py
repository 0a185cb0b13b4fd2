"""Which of five patterns an attention map has: a network's opinion, and one by rules.

>>> import torch
>>> from litotes.inside.patterns import classify
>>> classify(torch.eye(64)[None]).labels
['diagonal']
"""

from litotes.inside.analysis import Analysis
from litotes.inside.patterns.classes import CLASSES
from litotes.inside.patterns.figure import draw_figure
from litotes.inside.patterns.measure import PatternsMeasure
from litotes.inside.patterns.network import Patterns, classify
from litotes.inside.patterns.rules import Evidence, by_rules, evidence
from litotes.inside.patterns.section import write_section

ANALYSIS = Analysis(PatternsMeasure, draw_figure, write_section)

__all__ = ["ANALYSIS", "CLASSES", "Evidence", "Patterns", "by_rules", "classify", "evidence"]
