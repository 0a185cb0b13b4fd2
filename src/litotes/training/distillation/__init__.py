"""A small student of one or several large teachers."""

from litotes.training.distillation.distill import DistillResult, carry_out, distill
from litotes.training.distillation.plan import plan_distillation
from litotes.training.distillation.settings import (
    DistillRecipe,
    DistillSettings,
    read_distill_recipe,
)

__all__ = [
    "DistillRecipe",
    "DistillResult",
    "DistillSettings",
    "carry_out",
    "distill",
    "plan_distillation",
    "read_distill_recipe",
]
