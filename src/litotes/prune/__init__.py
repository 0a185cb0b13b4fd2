"""From a dense model to the fastest pruned one within a loss."""

from litotes.prune.prune import prune
from litotes.prune.result import Pruned, PruneSettings

__all__ = ["PruneSettings", "Pruned", "prune"]
