"""Which of five patterns an attention map has: a network's opinion, and one by rules.

>>> import torch
>>> from litotes.analysis.patterns import classify
>>> classify(torch.eye(64)[None]).labels
['diagonal']
"""

from litotes.analysis.patterns.classes import CLASSES
from litotes.analysis.patterns.network import Patterns, classify
from litotes.analysis.patterns.rules import Evidence, by_rules, evidence

__all__ = ["CLASSES", "Evidence", "Patterns", "by_rules", "classify", "evidence"]
