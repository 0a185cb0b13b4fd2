"""From a dense model to the fastest pruned one within a loss."""

from litotes.pruning.plan import plan_pruning
from litotes.pruning.prune import carry_out, prune
from litotes.pruning.result import PruneResult, PruneSettings

__all__ = ["PruneResult", "PruneSettings", "carry_out", "plan_pruning", "prune"]
