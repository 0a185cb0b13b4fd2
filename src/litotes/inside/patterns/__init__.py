"""Which of five patterns an attention map has: a network's opinion, and one by rules.

>>> import torch
>>> from litotes.inside.patterns import classify
>>> classify(torch.eye(64)[None]).labels
['diagonal']
"""

from litotes.inside.patterns.classes import CLASSES
from litotes.inside.patterns.network import Patterns, classify
from litotes.inside.patterns.rules import Evidence, by_rules, evidence

__all__ = ["CLASSES", "Evidence", "Patterns", "by_rules", "classify", "evidence"]
