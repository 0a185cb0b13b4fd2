"""From a dense model to the fastest pruned one within a loss."""

from litotes.pruning.prune import prune
from litotes.pruning.result import PruneResult, PruneSettings

__all__ = ["PruneResult", "PruneSettings", "prune"]
