"""The training loop: steps, epochs, early stopping, checkpoints.

A run is a pure function of its recipe: on a CPU the same recipe gives the same bytes, killed and
resumed or not.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from litotes.core.errors import Stopped, UserError
from litotes.core.json_text import to_json
from litotes.core.progress import Milestone, Watch, ignore_progress
from litotes.core.storage import write_text
from litotes.data.corpus import Corpus
from litotes.encoders.device_encoding import uses_kernels
from litotes.model.classifier import Classifier
from litotes.training.checkpoints import Checkpoints, RunState
from litotes.training.held_out import score_name
from litotes.training.inputs import Inputs, PieceInputs
from litotes.training.interruption import Interruption
from litotes.training.late_losses import LateLosses
from litotes.training.lessons import Lessons
from litotes.training.optimizer import set_learning_rate
from litotes.training.processes import Processes
from litotes.training.settings import TrainingSettings
from litotes.training.step import StepInputs, TrainingStep
from litotes.training.teacher import Teacher
from litotes.training.trackers import TRACKERS

if TYPE_CHECKING:
    from litotes.training.captured import CapturedSteps


@dataclass(frozen=True)
class RunContext:
    """Where a loop runs: device, folder, processes, and whom to tell how far it is."""

    device: torch.device
    folder: Path
    key: str  # of the recipe: checkpoints of another recipe are not resumed
    processes: Processes
    watch: Watch = ignore_progress
    corpus: Corpus | None = None  # texts in memory, in place of the recipe's source
    lessons: Lessons | None = None  # answers of teachers to learn from besides the labels


class Loop:
    """Trains a classifier on the texts of `inputs`.

    validate: gives the held-out score of the classifier as it is (higher is better; None: the texts
    cannot tell); without it, or where it gives None, the last epoch is taken.
    teacher: answers to imitate in addition to the labels.
    """

    def __init__(
        self,
        classifier: Classifier,
        inputs: Inputs,
        settings: TrainingSettings,
        *,
        seed: int,
        context: RunContext,
        validate: Callable[[], float | None] | None = None,
        teacher: Teacher | None = None,
    ) -> None:
        self.classifier, self.inputs, self.settings = classifier, inputs, settings
        self.seed, self.context, self.validate = seed, context, validate
        self.step = TrainingStep.of(
            classifier,
            inputs.texts,
            settings,
            device=context.device,
            processes=context.processes,
            teacher=teacher,
        )
        self.task_losses, self.tensors = self.step.task_losses, self.step.tensors
        self.captured = captured_steps(self.step, classifier, inputs)
        self.losses = LateLosses()
        self.n_steps = -(-len(inputs.texts) // settings.batch_texts) * settings.epochs
        self.state = RunState()
        self.checkpoints = Checkpoints(context.folder / "checkpoints", key=context.key)
        self.track = TRACKERS[settings.tracker](context.folder)
        self.saved_at = time.monotonic()

    def resume(self) -> None:
        """Goes on from the last whole checkpoint, if there is one."""
        self.state = self.checkpoints.load(self.tensors) or self.state

    def run(self) -> RunState:
        """Trains to the end and leaves the best weights in the classifier."""
        with Interruption() as interruption:
            while not self.state.finished:
                for places in self._epoch_batches()[self.state.place :]:
                    self._step(places)
                    self._save_when_due()
                    if interruption.wanted:
                        self._save()
                        raise Stopped(
                            f"Stopped after step {self.state.step} of {self.n_steps}. Start the"
                            " command again to go on (train: with --resume)."
                        )
                self._end_epoch()
        if self.tensors.best:
            self.classifier.load_state_dict(self.tensors.best, strict=False)
        return self.state

    def _epoch_batches(self) -> list[list[int]]:
        """The places of the texts of each batch: the same for the same seed and epoch."""
        seed = derive_seed(self.seed, "order", self.state.epoch)
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(self.inputs.texts), generator=generator).tolist()
        size = self.settings.batch_texts
        return [order[start : start + size] for start in range(0, len(order), size)]

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
        so_far = f"epoch {state.epoch + 1}"
        if (n_read := state.place - len(self.losses)) > 0:
            so_far += f", loss {state.loss_sum / n_read:.3f}"
        if state.history and "held_out" in state.history[-1]:
            so_far += f", held-out {state.history[-1]['held_out']:.3f}"
        self.context.watch("training", state.step, self.n_steps, so_far)

    def _set_up_step(self) -> None:
        """Sets what depends on the step's number alone: randomness, learning rate, progress."""
        step, rank = self.state.step, self.context.processes.rank
        self.classifier.train()
        torch.manual_seed(derive_seed(self.seed, "step", step, rank))
        optimizer = self.tensors.optimizer
        set_learning_rate(optimizer, self.settings, step=step, n_steps=self.n_steps)
        self.classifier.encoder.set_progress(step / self.n_steps)

    def _take_step(self, places: Sequence[int]) -> Tensor:
        """New weights; gives this process's part of the loss, on the device."""
        if self.captured is not None and self.captured.can_take:
            loss = self.captured.take(places)
            if loss is not None:
                return loss
        share = self.context.processes.share(places)
        # fewer texts than processes: one text without weight keeps every parameter in the graph
        own = share or places[:1]
        send = self.task_losses.send
        inputs = StepInputs(
            logits=lambda: self.inputs.logits(self.classifier, own),
            batch=send(places),
            own=send(share or [-1]),
        )
        return self.step.take(inputs, number=self.state.step)

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

    def _end_epoch(self) -> None:
        state = self.state
        self._read_losses()
        line: dict[str, float] = {
            "epoch": state.epoch + 1,
            "step": state.step,
            "loss": state.loss_sum / max(state.place, 1),
        }
        score = None if self.validate is None else self._score_epoch(self.validate)
        if score is not None:
            line["held_out"] = score
        state.history.append(line)
        self.track(state.step, line)
        self._write_history()
        self._report_epoch(line["loss"], score)
        state.epoch, state.place, state.loss_sum = state.epoch + 1, 0, 0.0
        was_last = state.epoch >= self.settings.epochs
        state.finished = was_last or state.n_waited >= self.settings.patience

    def _report_epoch(self, loss: float, score: float | None) -> None:
        state, settings = self.state, self.settings
        words = f"epoch {state.epoch + 1} of {settings.epochs}: loss {loss:.3f}"
        if score is not None:
            by_worst_group = settings.selection == "worst_group"
            name = score_name(self.classifier.tasks.values(), worst_group=by_worst_group)
            words += f", held-out {name} {score:.3f}"
            if state.best_epoch == state.epoch + 1:
                words += " (best so far)"
            elif state.best_score is not None:
                words += f" (best: {state.best_score:.3f} in epoch {state.best_epoch})"
        self.context.watch("training", state.step, self.n_steps, Milestone(words))

    def _write_history(self) -> None:
        if self.context.processes.is_first:
            lines = "".join(to_json(line) + "\n" for line in self.state.history)
            write_text(self.context.folder / "history.jsonl", lines)

    def _score_epoch(self, validate: Callable[[], float | None]) -> float | None:
        """The held-out score of the epoch just done; the best epoch's weights are kept."""
        state, score = self.state, validate()
        encoder = self.classifier.encoder
        encoder.set_progress(state.step / self.n_steps)
        is_settled = all(attention.weighting.is_settled for attention in encoder.attentions)
        if score is None or not is_settled:
            # Nothing to compare epochs by, or sparsity still rises: the latest is as good as any,
            # and waiting for a better one has not begun.
            self.tensors.keep_best()
            state.best_epoch = state.epoch + 1
        elif state.best_score is None or score > state.best_score:
            state.best_score, state.best_epoch, state.n_waited = score, state.epoch + 1, 0
            self.tensors.keep_best()
        else:
            state.n_waited += 1
        return score

    def _save_when_due(self) -> None:
        if time.monotonic() - self.saved_at >= self.settings.checkpoint_seconds:
            self._save()

    def _save(self) -> None:
        self._read_losses()  # nothing that diverged is kept
        if self.context.processes.is_first:
            self.checkpoints.save(self.state, self.tensors)
        self.saved_at = time.monotonic()


def captured_steps(
    step: TrainingStep, classifier: Classifier, inputs: Inputs
) -> CapturedSteps | None:
    """Steps that are recorded and replayed, where they can be."""
    if not isinstance(inputs, PieceInputs) or not uses_kernels(classifier.encoder):
        return None
    from litotes.training.captured import CapturedSteps, can_capture  # imports Triton

    return CapturedSteps(step, classifier, inputs.texts) if can_capture(classifier, step) else None


def derive_seed(seed: int, *what: object) -> int:
    """A seed of its own for every purpose, the same on every machine."""
    digest = hashlib.sha256(repr((seed, *what)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1  # torch wants a signed 64-bit number
