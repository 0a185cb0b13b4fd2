"""From a dense model to the fastest pruned one within a loss."""

from litotes.pruning.prune import prune
from litotes.pruning.result import Pruned, PruneSettings

__all__ = ["PruneSettings", "Pruned", "prune"]
