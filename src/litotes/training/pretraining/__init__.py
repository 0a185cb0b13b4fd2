"""Masked-language modelling on unlabelled text: an encoder goes on learning, or starts new."""

from litotes.training.pretraining.recipe import PretrainRecipe, read_recipe
from litotes.training.pretraining.run import PretrainRun, pretrain

__all__ = ["PretrainRecipe", "PretrainRun", "pretrain", "read_recipe"]
