"""What every training loop does: steps in epochs, progress, checkpoints, Ctrl-C.

A run is a pure function of its recipe: on a CPU the same recipe gives the same bytes, killed and
resumed or not.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from litotes.core.errors import Stopped, UserError
from litotes.core.json_text import to_json
from litotes.core.storage import write_text
from litotes.encoder.encoder import Encoder
from litotes.training.checkpoints import Checkpoints, RunState, RunTensors
from litotes.training.objective import derive_seed
from litotes.training.optimizer import set_learning_rate
from litotes.training.recipe import TrainingSettings
from litotes.training.trackers import TRACKERS
from litotes.training.trainer import Interruption, LateLosses, RunContext, same_products_after

__all__ = ["EpochLoop", "RunContext", "derive_seed"]


class EpochLoop(ABC):
    """Trains a model around an encoder; a subclass says what a step is and what ends an epoch."""

    def __init__(
        self,
        model: nn.Module,
        encoder: Encoder,
        tensors: RunTensors,
        settings: TrainingSettings,
        *,
        n_steps: int,
        seed: int,
        context: RunContext,
    ) -> None:
        self.model, self.encoder, self.tensors = model, encoder, tensors
        self.settings, self.n_steps, self.seed = settings, n_steps, seed
        self.context = context
        self.losses = LateLosses()
        self.state = RunState()
        self.checkpoints = Checkpoints(context.folder / "checkpoints", key=context.key)
        # opened before the first step, so that a library that is missing is known at once
        tracker = settings.tracker if context.processes.is_first else "none"
        self.opened = ExitStack()
        self.track = self.opened.enter_context(TRACKERS[tracker](context.folder))
        self.saved_at = time.monotonic()

    @abstractmethod
    def _epoch_batches(self) -> list[list[int]]:
        """The places of the texts of each batch: the same for the same seed and epoch."""

    @abstractmethod
    def _take_step(self, places: Sequence[int]) -> Tensor:
        """New weights; gives this process's part of the loss, on the device."""

    @abstractmethod
    def _end_epoch(self) -> None:
        """Judges the epoch just done, records it, and says whether it was the last."""

    @abstractmethod
    def _last_score(self) -> str:
        """What was found last on the held-out texts, in words; nothing at the beginning."""

    def _epoch_name(self) -> str:
        return f"epoch {self.state.epoch + 1}"

    def resume(self) -> None:
        """Goes on from the last whole checkpoint, if there is one."""
        self.state = self.checkpoints.load(self.tensors) or self.state

    def run(self) -> RunState:
        """Trains to the end and leaves the best weights in the model."""
        with self.opened, same_products_after(), Interruption() as interruption:
            while not self.state.finished:
                for places in self._epoch_batches()[self.state.place :]:
                    self._step(places)
                    self._save_when_due()
                    if interruption.wanted:
                        self._save()
                        raise Stopped(
                            f"Stopped after step {self.state.step} of {self.n_steps}. Start the"
                            " command again to go on (train and pretrain: with --resume)."
                        )
                self._end_epoch()
        if self.tensors.best:
            self.model.load_state_dict(self.tensors.best, strict=False)
        return self.state

    def _step(self, places: Sequence[int]) -> None:
        started = time.monotonic()
        state = self.state
        self._set_up_step()
        self.losses.add(state.step, self._take_step(places))
        state.step += 1
        state.place += 1
        # several processes add theirs up on the host; a CPU has nothing to do meanwhile
        is_late = self.context.device.type == "cuda" and self.context.processes.n == 1
        self._read_losses(all_but=1 if is_late else 0)
        state.seconds += time.monotonic() - started
        self._report_step()

    def _report_step(self) -> None:
        state = self.state
        so_far = self._epoch_name()
        if (n_read := state.place - len(self.losses)) > 0:
            so_far += f", loss {state.loss_sum / n_read:.3f}"
        self.context.watch("training", state.step, self.n_steps, so_far + self._last_score())

    def _set_up_step(self) -> None:
        """Sets what depends on the step's number alone: randomness, learning rate, progress."""
        step, rank = self.state.step, self.context.processes.rank
        self.model.train()
        self._seed(derive_seed(self.seed, "step", step, rank))
        optimizer = self.tensors.optimizer
        set_learning_rate(optimizer, self.settings, step=step, n_steps=self.n_steps)
        self.encoder.set_progress(step / self.n_steps)

    def _seed(self, seed: int) -> None:
        if self.context.device.type == "cpu":
            # torch.manual_seed would write down a traceback for every kind of device that is absent
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)

    def _update_weights(self) -> None:
        """A step of the optimizer by the gradients of all processes together."""
        parameters = list(self.tensors.parameters.values())
        self.context.processes.add_up(parameter.grad for parameter in parameters)
        if self.settings.max_gradient_norm:
            clip_grad_norm_(parameters, self.settings.max_gradient_norm)
        self.tensors.optimizer.step()

    def _read_losses(self, *, all_but: int = 0) -> None:
        """Adds up the losses that are there, over all processes; each must be a number."""
        for step, own in self.losses.read(all_but=all_but):
            total = self.context.processes.total(own)
            if not math.isfinite(total):
                raise UserError(
                    f"The loss is {total} at step {step + 1}: training diverged. Lower"
                    " training.learning_rate."
                )
            self.state.loss_sum += total

    def _record(self, line: dict[str, Any]) -> None:
        """Adds a line to the history, here and where it is tracked."""
        self.state.history.append(line)
        self.track(self.state.step, line)
        if self.context.processes.is_first:
            lines = "".join(to_json(line) + "\n" for line in self.state.history)
            write_text(self.context.folder / "history.jsonl", lines)

    def _save_when_due(self) -> None:
        if time.monotonic() - self.saved_at >= self.settings.checkpoint_seconds:
            self._save()

    def _save(self) -> None:
        self._read_losses()  # nothing that diverged is kept
        if self.context.processes.is_first:
            self.checkpoints.save(self.state, self.tensors)
        self.saved_at = time.monotonic()
