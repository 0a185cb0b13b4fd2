"""The training loop of a classifier: epochs judged on held-out texts, early stopping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from litotes.core.progress import Milestone
from litotes.encoders.device_encoding import uses_kernels
from litotes.model.classifier import Classifier
from litotes.training.epoch_loop import EpochLoop, RunContext, derive_seed
from litotes.training.held_out import score_name
from litotes.training.inputs import Inputs, PieceInputs
from litotes.training.settings import TrainingSettings
from litotes.training.step import StepInputs, TrainingStep
from litotes.training.teacher import Teacher

if TYPE_CHECKING:
    from litotes.training.captured import CapturedSteps


class Loop(EpochLoop):
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
        self.classifier, self.inputs, self.validate = classifier, inputs, validate
        self.step = TrainingStep.of(
            classifier,
            inputs.texts,
            settings,
            device=context.device,
            processes=context.processes,
            teacher=teacher,
        )
        self.task_losses = self.step.task_losses
        self.captured = captured_steps(self.step, classifier, inputs)
        super().__init__(
            classifier,
            classifier.encoder,
            self.step.tensors,
            settings,
            n_steps=-(-len(inputs.texts) // settings.batch_texts) * settings.epochs,
            seed=seed,
            context=context,
        )

    def _epoch_batches(self) -> list[list[int]]:
        """The places of the texts of each batch: the same for the same seed and epoch."""
        seed = derive_seed(self.seed, "order", self.state.epoch)
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(self.inputs.texts), generator=generator).tolist()
        size = self.settings.batch_texts
        return [order[start : start + size] for start in range(0, len(order), size)]

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
        self._record(line)
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

    def _last_score(self) -> str:
        history = self.state.history
        if not history or "held_out" not in history[-1]:
            return ""
        return f", held-out {history[-1]['held_out']:.3f}"


def captured_steps(
    step: TrainingStep, classifier: Classifier, inputs: Inputs
) -> CapturedSteps | None:
    """Steps that are recorded and replayed, where they can be."""
    if not isinstance(inputs, PieceInputs) or not uses_kernels(classifier.encoder):
        return None
    from litotes.training.captured import CapturedSteps, can_capture  # imports Triton

    return CapturedSteps(step, classifier, inputs.texts) if can_capture(classifier, step) else None
