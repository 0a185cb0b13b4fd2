"""The loop of a translation training.

    loss = −Σ_t Σ_v q_t(v) log p(v | y_<t, x),   q_t = (1 − ε) [v = y_t] + ε / vocabulary

with label smoothing ε, and the rate of Vaswani et al. 2017 (arXiv 1706.03762, §5.3):

    rate(step) = highest · min(step / warm-up, √(warm-up / step))

The weights that are kept are the mean of those after the last epochs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter, functional
from torch.optim import AdamW, Optimizer

from litotes.core.progress import Milestone
from litotes.training.checkpoints import RunTensors, trainable_parameters
from litotes.training.epoch_loop import EpochLoop, RunContext, derive_seed
from litotes.training.objective import autocast
from litotes.training.optimizer import scale_rates
from litotes.training.translation.model import EncoderDecoder
from litotes.training.translation.pairs import PairSet
from litotes.training.translation.recipe import TranslationRecipe, TranslationTraining

BETAS, EPSILON = (0.9, 0.98), 1e-9


class TranslationLoop(EpochLoop):
    """Trains on the pairs of `train`; measures the loss on those of `valid`."""

    def __init__(
        self,
        model: EncoderDecoder,
        train: PairSet,
        valid: PairSet,
        recipe: TranslationRecipe,
        *,
        context: RunContext,
    ) -> None:
        self.translation, self.train, self.valid = model, train, valid
        self.own = recipe.training
        self.n_batches = len(train.batches(self.own.batch_pieces))
        parameters = trainable_parameters(model)
        tensors = RunTensors(parameters, {}, make_optimizer(parameters, self.own))
        super().__init__(
            model,
            model.encoder,
            tensors,
            self.own.as_training(),
            n_steps=self.n_batches * self.own.epochs,
            seed=recipe.seed,
            context=context,
        )

    def _epoch_batches(self) -> list[list[int]]:
        seed = derive_seed(self.seed, "order", self.state.epoch)
        return self.train.batches(self.own.batch_pieces, seed=seed)

    def _set_up_step(self) -> None:
        super()._set_up_step()
        factor = rate_factor(self.state.step, self.own.warmup_steps)
        scale_rates(self.tensors.optimizer, factor)
        self.translation.set_progress(self.state.step / self.n_steps)

    def _take_step(self, places: Sequence[int]) -> Tensor:
        share = self.context.processes.share(places)
        # fewer pairs than processes: one without weight keeps every parameter in the graph
        own, weight = (share, 1.0) if share else (places[:1], 0.0)
        n_guessed = sum(len(self.train.targets[place]) - 1 for place in places)
        self.tensors.optimizer.zero_grad(set_to_none=True)
        total = self._loss_sum(self.train, own, smoothing=self.own.label_smoothing)
        loss = weight * total / n_guessed
        loss.backward()
        self._update_weights()
        return loss.detach()

    def _loss_sum(self, pairs: PairSet, places: Sequence[int], *, smoothing: float = 0.0) -> Tensor:
        """Over all pieces of some pairs."""
        batch = pairs.pack(places, self.context.device)
        with autocast(self.settings, self.context.device):
            logits = self.translation(batch.sources, batch.pieces, batch.layout)
        return functional.cross_entropy(
            logits.float(), batch.next_pieces, reduction="sum", label_smoothing=smoothing
        )

    def _end_epoch(self) -> None:
        state = self.state
        self._read_losses()
        loss = state.loss_sum / max(state.place, 1)
        line: dict[str, Any] = {"epoch": state.epoch + 1, "step": state.step, "loss": loss}
        line["seconds"] = state.seconds
        if len(self.valid):
            line["valid_loss"] = self.measure()
        state.epoch, state.place, state.loss_sum = state.epoch + 1, 0, 0.0
        state.finished = state.epoch >= self.own.epochs
        self._record(line)
        self._add_to_mean()
        words = f"epoch {state.epoch} of {self.own.epochs}: loss {loss:.3f}{self._last_score()}"
        self.context.watch("training", state.step, self.n_steps, Milestone(words))

    def _add_to_mean(self) -> None:
        """The mean of the weights after the last epochs, one more at a time."""
        n_averaged = min(self.own.averaged, self.own.epochs)
        number = self.state.epoch - (self.own.epochs - n_averaged)  # from 1
        if number < 1:
            return
        if number == 1:
            self.tensors.keep_best()
            return
        for name, parameter in self.tensors.parameters.items():
            mean = self.tensors.best[name].to(parameter.device)
            self.tensors.best[name] = mean + (parameter.detach() - mean) / number

    @torch.no_grad()
    def measure(self) -> float:
        """The mean loss of a piece of the validation pairs, without smoothing."""
        self.translation.eval()
        total, n_guessed = 0.0, 0
        for places in self.valid.batches(2 * self.own.batch_pieces):
            total += float(self._loss_sum(self.valid, places))
            n_guessed += sum(len(self.valid.targets[place]) - 1 for place in places)
        return total / max(n_guessed, 1)

    def _last_score(self) -> str:
        if not self.state.history or "valid_loss" not in self.state.history[-1]:
            return ""
        loss = self.state.history[-1]["valid_loss"]
        return f", validation loss {loss:.3f} (perplexity {math.exp(min(loss, 50)):.1f})"


def rate_factor(step: int, n_warmup: int) -> float:
    """The share of the highest rate at step `step`, from 0."""
    return min((step + 1) / n_warmup, math.sqrt(n_warmup / (step + 1)))


def make_optimizer(parameters: Mapping[str, Parameter], settings: TranslationTraining) -> Optimizer:
    """Adam with the paper's averages; biases and norms are not decayed."""
    groups: dict[tuple[float, float], list[Parameter]] = {}
    for name, parameter in parameters.items():
        is_weighting = ".weighting." in name
        rate = settings.weighting_learning_rate if is_weighting else None
        decay = settings.weight_decay if parameter.ndim > 1 else 0.0
        groups.setdefault((rate or settings.learning_rate, decay), []).append(parameter)
    on_cuda = all(parameter.is_cuda for parameter in parameters.values())
    return AdamW(
        [
            {"params": chosen, "lr": rate, "base_rate": rate, "weight_decay": decay}
            for (rate, decay), chosen in groups.items()
        ],
        betas=BETAS,
        eps=EPSILON,
        fused=on_cuda,
    )
