"""A trainer's objective: batches, losses, a judge. One file and one line for each (`run.py`)."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import Parameter
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from litotes.core.progress import Watch, ignore_progress
from litotes.encoder.encoder import Encoder
from litotes.encoder.packing import batches_by_budget
from litotes.training.balancing import Balancing, Total
from litotes.training.checkpoints import RunState, RunTensors, trainable_parameters
from litotes.training.optimizer import make_optimizer, rate_factor
from litotes.training.processes import Processes
from litotes.training.recipe import RunSettings

ALONE = Processes()


@dataclass(frozen=True)
class RunContext:
    """The context of a run: device, folder, processes, and whom to tell how far it is."""

    device: torch.device
    folder: Path
    key: str = ""  # of the recipe and the texts: checkpoints of others are not resumed
    processes: Processes = ALONE
    watch: Watch = ignore_progress


class Objective(ABC):
    """A model that learns, what it learns from, and how an epoch of it is judged.

    `losses` says what is learned; all else is what most objectives want.

    encoder: the one inside the model. settings: the `[training]` table. lengths: the pieces of each
    text. n_steps: of the whole run; None: as many as the epochs have. buffers: what is stored with
    the weights at checkpoints. validate: gives the held-out score of the model as it is (higher is
    better; None: the texts cannot tell); without it the last epoch is taken.
    """

    score_name = "score"  # what `validate` gives, in words
    judges_start = False  # whether the model is judged before the first step, too

    def __init__(
        self,
        model: nn.Module,
        encoder: Encoder,
        settings: Any,
        context: RunContext,
        *,
        seed: int,
        lengths: Sequence[int] = (),
        n_steps: int | None = None,
        n_epochs: int | None = None,
        balancing: Balancing | None = None,
        buffers: Mapping[str, Tensor] | None = None,
        validate: Callable[[], float | None] | None = None,
    ) -> None:
        self.model, self.encoder, self.settings = model, encoder, settings
        self.device, self.processes = context.device, context.processes
        self.seed, self.lengths, self.validate = seed, lengths, validate
        self.n_epochs = n_epochs or settings.epochs
        if n_steps is None:
            n_steps = -(-len(lengths) // settings.batch_texts) * self.n_epochs
        self.n_steps = n_steps
        self.balancing = balancing or Total(1)
        parameters = trainable_parameters(model)
        parameters |= trainable_parameters(self.balancing, "balancing.")
        self.tensors = RunTensors(parameters, dict(buffers or {}), self.make_optimizer(parameters))

    def batches(self, epoch: int) -> Sequence[Any]:
        """The batches of an epoch, from 0: the same for the same seed."""
        seed = derive_seed(self.seed, "order", epoch)
        return shuffled(len(self.lengths), self.settings.batch_texts, seed)

    @abstractmethod
    def losses(self, batch: Any, step: int) -> Iterator[Sequence[Tensor]]:
        """This process's part of each task's loss, for one part of its texts after the other.

        Parts are computed as they are asked for, and add up to the loss of the whole batch over
        all parts and processes: what normalises it is that of the whole batch.
        """

    def make_optimizer(self, parameters: Mapping[str, Parameter]) -> Optimizer:
        """Each group has its rate at the top of the schedule as `base_rate`."""
        return make_optimizer(parameters, self.settings)

    def rate(self, step: int) -> float:
        """The share of the highest learning rates that step `step` (from 0) takes; a function of
        the step alone, so that resuming needs no state.
        """
        return rate_factor(self.settings, step=step, n_steps=self.n_steps)

    def seed_of(self, step: int) -> int:
        """The seed of all that is drawn in a step."""
        return derive_seed(self.seed, "step", step, self.processes.rank)

    def share(self, batch: Sequence[Any]) -> tuple[Sequence[Any], float]:
        """This process's part of a batch, and what its loss counts: fewer texts than processes
        leave one without weight, which keeps every parameter in the graph.
        """
        own = self.processes.share(batch)
        return (own, 1.0) if own else (batch[:1], 0.0)

    def divide(self, places: Sequence[int], lengths: Sequence[int]) -> list[list[int]]:
        """Consecutive texts of at most `pieces_at_once` pieces; a longer text is alone.

        lengths: of all texts, by place.
        """
        own = [lengths[place] for place in places]
        most = self.settings.pieces_at_once or sum(own)
        parts = batches_by_budget(own, max_texts=len(own), max_pieces=most)
        return [[places[number] for number in part] for part in parts]

    def set_progress(self, share: float) -> None:
        """Tells the model which share of the steps is done: sparsity may rise meanwhile."""
        self.encoder.set_progress(share)

    def take_step(self, batch: Any, step: int) -> Tensor:
        """New weights; gives this process's part of the loss, on the device."""
        return self.update(self.losses(batch, step), step)

    def update(self, parts: Iterable[Sequence[Tensor]], step: int) -> Tensor:
        """A step of the optimizer down the losses of all parts and processes.

        Nothing here waits for the device, where the balancing `repeats`.
        """
        optimizer, parameters = self.tensors.optimizer, list(self.tensors.parameters.values())
        optimizer.zero_grad(set_to_none=True)
        totals: list[Tensor] = []

        def watched() -> Iterator[Sequence[Tensor]]:
            for losses in parts:
                totals.append(torch.stack([loss.detach() for loss in losses]).sum())
                yield losses

        self.balancing.backward(watched(), parameters, processes=self.processes, step=step)
        if self.settings.max_gradient_norm:
            clip_grad_norm_(parameters, self.settings.max_gradient_norm)
        optimizer.step()
        return torch.stack(totals).sum()

    def judge(self, state: RunState) -> dict[str, float]:
        """Judges the epoch just done: what the history says of it besides its loss.

        The weights that the run shall end with are kept: here those of the best epoch.
        """
        if self.validate is None:
            return {}
        score, epoch = self.validate(), state.epoch + 1
        self.set_progress(state.step / self.n_steps)
        if score is None or not self.is_settled:
            # Nothing to compare epochs by, or sparsity still rises: the latest is as good as any,
            # and waiting for a better one has not begun.
            self.tensors.keep_best()
            state.best_epoch = epoch
        elif state.best_score is None or score > state.best_score:
            state.best_score, state.best_epoch, state.n_waited = score, epoch, 0
            self.tensors.keep_best()
        else:
            state.n_waited += 1
            state.finished = state.n_waited >= self.settings.patience
        return {} if score is None else {"held_out": score}

    @property
    def is_settled(self) -> bool:
        """True if every weighting has the form that it will keep."""
        return all(attention.weighting.is_settled for attention in self.encoder.attentions)

    def epoch_of(self, state: RunState) -> int:
        """The number of the epoch under way, from 1, as people are told it."""
        return state.epoch + 1

    def milestone(self, state: RunState) -> str:
        """Says where the run stands at the end of an epoch."""
        return f"epoch {state.epoch + 1} of {self.n_epochs}"

    def describe(self, line: Mapping[str, Any]) -> str:
        """Describes what the last line of the history found; empty where it found nothing."""
        return f"held-out {self.score_name} {line['held_out']:.3f}" if "held_out" in line else ""

    def opening(self) -> list[str]:
        """Lists what is to be said before the first step."""
        return []

    def autocast(self) -> torch.autocast | nullcontext[None]:
        return autocast(self.settings, self.device)


def shuffled(n: int, size: int, seed: int) -> list[list[int]]:
    """The places of `n` texts in batches of `size`, in an order drawn by the seed."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed)).tolist()
    return [order[start : start + size] for start in range(0, n, size)]


def derive_seed(seed: int, *what: object) -> int:
    """A seed of its own for every purpose, the same on every machine."""
    digest = hashlib.sha256(repr((seed, *what)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1  # torch wants a signed 64-bit number


def autocast(settings: RunSettings, device: torch.device) -> torch.autocast | nullcontext[None]:
    """bfloat16 where the settings and the device allow it."""
    is_default = settings.precision == "auto" and device.type == "cuda"
    if is_default or settings.precision == "bfloat16":
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()
