"""From a dense model to the fastest pruned one within a loss."""

from litotes.prune.prune import prune
from litotes.prune.result import PruneResult, PruneSettings

__all__ = ["PruneResult", "PruneSettings", "prune"]
