"""A small student of one or several large teachers."""

from litotes.training.distillation.distill import DistillResult, carry_out, distill
from litotes.training.distillation.plan import DistillRecipe, DistillSettings, plan_distillation

__all__ = [
    "DistillRecipe",
    "DistillResult",
    "DistillSettings",
    "carry_out",
    "distill",
    "plan_distillation",
]
