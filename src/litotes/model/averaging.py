"""One model out of several that began with the same encoder: the mean of their weights.

    w = (w₁ + … + wₙ) / n

Models fine-tuned from one start lie in one valley, and its middle answers texts of other kinds
better than its edges, at the cost of one (model soups: Wortsman et al. 2022, arXiv 2203.05482).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

import torch
from torch import Tensor

from litotes.core.errors import UserError
from litotes.model.checkpoint import Model


def average_models(models: Sequence[Model]) -> Model:
    """Tokenizer, tasks and facts are those of the first.

    Temperatures, thresholds and exits were fitted to weights that are no longer there: the mean has
    none.
    """
    if not models:
        raise UserError("There is no model to average. Give at least one.")
    first = models[0]
    states = [model.classifier.state_dict() for model in models]
    shapes = [{name: tensor.shape for name, tensor in state.items()} for state in states]
    kinds = {(model.base_sha256, model.classifier.head_name) for model in models}
    if len(kinds) > 1 or any(other != shapes[0] for other in shapes):
        raise UserError(
            "Only models of the same encoder, head and tasks have a mean. Average those that differ"
            " in seed, learning rate, epochs or lessons."
        )
    classifier = deepcopy(first.classifier)
    classifier.load_state_dict({name: _mean([s[name] for s in states]) for name in states[0]})
    return replace(first, classifier=classifier.eval(), calibration={}, exits=None, label_sets={})


def _mean(tensors: Sequence[Tensor]) -> Tensor:
    """In float64: where all are the same, so is their mean, to the last bit. What a model shares
    with its encoder is left out of its folder by that.
    """
    if not tensors[0].is_floating_point():
        return tensors[0]
    return torch.stack([tensor.double() for tensor in tensors]).mean(0).to(tensors[0].dtype)
