"""One model out of several that began with the same encoder: the mean of their weights.

    w = s₁ w₁ + … + sₙ wₙ,   Σ s = 1; all the same unless shares are given

Models fine-tuned from one start lie in one valley, and its middle answers texts of other kinds
better than its edges, at the cost of one (model soups: Wortsman et al. 2022, arXiv 2203.05482;
between an earlier model and a later one: arXiv 2109.01903).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

from torch import Tensor

from litotes.core.errors import UserError
from litotes.model.checkpoint import Model


def average_models(models: Sequence[Model], shares: Sequence[float] | None = None) -> Model:
    """Tokenizer, tasks, pruning and facts are those of the first. shares: of the models, in all 1.

    Temperatures, thresholds and exits were fitted to weights that are no longer there: the mean has
    none.
    """
    first = models[0]
    states = [model.classifier.state_dict() for model in models]
    shapes = [{name: tensor.shape for name, tensor in state.items()} for state in states]
    kinds = {(model.base_sha256, model.classifier.head_name) for model in models}
    if len(kinds) > 1 or any(other != shapes[0] for other in shapes):
        raise UserError(
            "Only models of the same encoder, head and tasks have a mean. Average those that differ"
            " in seed, learning rate, epochs or lessons."
        )
    if shares is None:
        shares = [1 / len(models)] * len(models)
    classifier = deepcopy(first.classifier)
    classifier.load_state_dict(
        {name: _mean([state[name] for state in states], shares) for name in states[0]}
    )
    return replace(first, classifier=classifier.eval(), calibration={}, exits=None, label_sets={})


def _mean(tensors: Sequence[Tensor], shares: Sequence[float]) -> Tensor:
    """In float64. Where all are the same, so is their mean, to the last bit: what a model shares
    with its encoder is left out of its folder by that.
    """
    first, *others = tensors
    if not first.is_floating_point():
        return first
    mean = first.double()
    for tensor, share in zip(others, shares[1:], strict=True):
        mean += share * (tensor.double() - first.double())
    return mean.to(first.dtype)
