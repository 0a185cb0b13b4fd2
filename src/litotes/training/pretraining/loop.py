"""The loop of a pretraining: texts masked anew at every step, perplexity measured now and then.

Where a classifier has epochs, here are stretches of equal length, each ending with a measurement;
passes over the texts do not matter to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from litotes.core.progress import Milestone
from litotes.core.values import MISSING
from litotes.encoder.packing import batches_by_budget
from litotes.training.checkpoints import RunTensors, trainable_parameters
from litotes.training.epoch_loop import EpochLoop, RunContext, derive_seed
from litotes.training.objective import autocast
from litotes.training.optimizer import make_optimizer
from litotes.training.pretraining.blocks import Reader
from litotes.training.pretraining.language_model import LanguageModel
from litotes.training.pretraining.masking import MaskedText, Masker, pack_masked
from litotes.training.pretraining.perplexity import HeldOut, Measurement
from litotes.training.pretraining.recipe import PretrainRecipe


class PretrainLoop(EpochLoop):
    """Trains a language model on what `reader` reads; measures it on `held_out`."""

    def __init__(
        self,
        model: LanguageModel,
        reader: Reader,
        masker: Masker,
        held_out: HeldOut,
        recipe: PretrainRecipe,
        *,
        context: RunContext,
    ) -> None:
        self.language_model, self.reader = model, reader
        self.masker, self.held_out = masker, held_out
        settings = recipe.training.as_training()
        self.pieces_at_once = recipe.training.pieces_at_once
        self.steps_a_pass = -(-len(reader.blocks) // settings.batch_texts)
        n_steps = recipe.training.steps or self.steps_a_pass * settings.epochs
        self.n_stretches = min(recipe.training.reports, n_steps)
        parameters = trainable_parameters(model)
        tensors = RunTensors(parameters, {}, make_optimizer(parameters, settings))
        super().__init__(
            model,
            model.encoder,
            tensors,
            settings,
            n_steps=n_steps,
            seed=recipe.seed,
            context=context,
        )

    def measure_start(self) -> None:
        """The first line of the history: the model as it comes."""
        if not self.state.history:
            self._record(self._line(self._measure()))

    def _epoch_batches(self) -> list[list[int]]:
        """The places of the blocks of each batch of the stretch under way."""
        first, last = self._bounds(self.state.epoch), self._bounds(self.state.epoch + 1)
        batches = []
        number, order = -1, [0]
        for step in range(first, last):
            if step // self.steps_a_pass != number:
                number = step // self.steps_a_pass
                order = self._order(number)
            start = step % self.steps_a_pass * self.settings.batch_texts
            batches.append(order[start : start + self.settings.batch_texts])
        return batches

    def _bounds(self, stretch: int) -> int:
        """The first step of a stretch."""
        return stretch * self.n_steps // self.n_stretches

    def _order(self, number: int) -> list[int]:
        """The blocks in the order of one pass over them."""
        seed = derive_seed(self.seed, "order", number)
        generator = torch.Generator().manual_seed(seed)
        order: list[int] = torch.randperm(len(self.reader.blocks), generator=generator).tolist()
        return order

    def _take_step(self, places: Sequence[int]) -> Tensor:
        # every process draws all, so that all agree on what is chosen
        seed = derive_seed(self.seed, "mask", self.state.step)
        texts = read_masked(self.reader, self.masker, places, seed=seed)
        self.tensors.optimizer.zero_grad(set_to_none=True)
        total = self._add_gradients(texts)
        self._update_weights()
        return total

    def _add_gradients(self, texts: Sequence[MaskedText]) -> Tensor:
        """Those of this process's share of the texts; gives its part of the loss."""
        share = self.context.processes.share(texts)
        # fewer texts than processes: one text without weight keeps every parameter in the graph
        own, weight = (share, 1.0) if share else (texts[:1], 0.0)
        lengths = [len(text.ids) for text in own]
        at_once = self.pieces_at_once or sum(lengths)
        total = torch.zeros((), device=self.context.device)
        for part in batches_by_budget(lengths, max_texts=len(own), max_pieces=at_once):
            loss = weight * self._loss([own[number] for number in part], batch=texts)
            loss.backward()
            total += loss.detach()
        return total

    def _loss(self, texts: Sequence[MaskedText], *, batch: Sequence[MaskedText]) -> Tensor:
        """What the texts add to the mean over the batch's chosen pieces, and to that over its
        pairs.
        """
        masked = pack_masked(texts, self.context.device)
        with autocast(self.settings, self.context.device):
            guesses = self.language_model(masked)
        n_chosen = sum(len(text.places) for text in batch)
        total = functional.cross_entropy(guesses.pieces.float(), masked.targets, reduction="sum")
        loss = total / max(n_chosen, 1)
        if guesses.follows is not None:
            n_pairs = sum(text.follows != MISSING for text in batch)
            total = functional.cross_entropy(
                guesses.follows.float(), masked.follows, ignore_index=MISSING, reduction="sum"
            )
            loss = loss + total / max(n_pairs, 1)
        return loss

    def _end_epoch(self) -> None:
        state = self.state
        self._read_losses()
        found = self._measure()
        loss = state.loss_sum / max(state.place, 1)
        self._record(self._line(found) | {"loss": loss})
        words = f"step {state.step} of {self.n_steps}: loss {loss:.3f}{self._last_score()}"
        self.context.watch("training", state.step, self.n_steps, Milestone(words))
        state.epoch, state.place, state.loss_sum = state.epoch + 1, 0, 0.0
        state.finished = state.epoch >= self.n_stretches

    def _measure(self) -> Measurement:
        self.encoder.set_progress(self.state.step / self.n_steps)
        return self.held_out.measure(self.language_model)

    def _line(self, found: Measurement) -> dict[str, float]:
        line = {
            "step": self.state.step,
            "perplexity": found.perplexity,
            "accuracy": found.accuracy,
        }
        if found.next_sentence is not None:
            line["next_sentence"] = found.next_sentence
        return line

    def _epoch_name(self) -> str:
        return f"epoch {(self.state.step - 1) // self.steps_a_pass + 1}"

    def _last_score(self) -> str:
        return f", held-out perplexity {self.state.history[-1]['perplexity']:.2f}"


def read_masked(
    reader: Reader, masker: Masker, places: Sequence[int], *, seed: int
) -> list[MaskedText]:
    """Blocks with pieces to guess; the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    texts = [reader.read(place, generator) for place in places]
    return masker.mask_texts(texts, generator)
