"""From a dense model to the fastest pruned one within a loss; early exits for a trained one."""

from litotes.pruning.choice import PruneResult, carry_out, prune
from litotes.pruning.plan import PruneSettings, plan_pruning

__all__ = ["PruneResult", "PruneSettings", "carry_out", "plan_pruning", "prune"]
