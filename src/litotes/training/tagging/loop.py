"""The training loop of a model of words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from litotes.model.classifier import WordModel
from litotes.training.checkpoints import RunTensors, trainable_parameters
from litotes.training.epoch_loop import RunContext
from litotes.training.judged_loop import JudgedLoop
from litotes.training.objective import autocast
from litotes.training.optimizer import make_optimizer
from litotes.training.tagging.losses import label_weights, span_loss, tag_loss, total_weight
from litotes.training.tagging.recipe import WordRecipe
from litotes.training.tagging.word_set import WordSet


def score_name(recipe: WordRecipe) -> str:
    """What epochs are judged by: where labels are weighed, rare ones count as much as others."""
    if recipe.kind == "span":
        return "overlap F1"
    return "macro-F1" if recipe.training.class_weights else "accuracy"


class WordLoop(JudgedLoop):
    """Trains a model of words on the windows of `words`."""

    def __init__(
        self,
        network: WordModel,
        words: WordSet,
        recipe: WordRecipe,
        *,
        context: RunContext,
        validate: Callable[[], float | None] | None,
    ) -> None:
        self.network, self.words, self.recipe = network, words, recipe
        settings = recipe.training.as_training()
        parameters = trainable_parameters(network)
        self.weights: Tensor | None = None
        if network.kind == "tagging":
            balanced = recipe.training.class_weights
            weights = label_weights(torch.cat(words.targets), network.task, balanced=balanced)
            self.weights = weights.to(context.device)
        super().__init__(
            network,
            network.encoder,
            RunTensors(parameters, {}, make_optimizer(parameters, settings)),
            settings,
            n_texts=len(words),
            seed=recipe.seed,
            context=context,
            validate=validate,
        )

    def _score_name(self) -> str:
        return score_name(self.recipe)

    def _take_step(self, places: Sequence[int]) -> Tensor:
        share = self.context.processes.share(places)
        # fewer texts than processes: one without weight keeps every parameter in the graph
        own, weight = (share, 1.0) if share else (places[:1], 0.0)
        self.tensors.optimizer.zero_grad(set_to_none=True)
        normaliser = total_weight(self._targets(places), self.weights)
        loss = weight * self._loss(own) / normaliser
        loss.backward()
        self._update_weights()
        return loss.detach()

    def _targets(self, places: Sequence[int]) -> Tensor:
        return self.words.targets_of(places).to(self.context.device, non_blocking=True)

    def _loss(self, places: Sequence[int]) -> Tensor:
        """The sum of the losses of these windows."""
        words = self.words.batch(places, self.context.device)
        with autocast(self.settings, self.context.device):
            logits = self.network(words)
        if self.weights is None:
            return span_loss(logits, self._targets(places), words.places.texts)
        return tag_loss(logits, self._targets(places), self.weights)
