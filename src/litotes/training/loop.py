"""The training loop of a classifier: what a step is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from torch import Tensor

from litotes.core.progress import Milestone
from litotes.encoder.device_encoding import kernels_wanted, uses_kernels
from litotes.encoder.encoder import recompute
from litotes.encoder.packing import batches_by_budget
from litotes.model.classifier import Classifier
from litotes.training.checkpoints import RunState
from litotes.training.epoch_loop import RunContext
from litotes.training.held_out import score_name
from litotes.training.inputs import Inputs, PieceInputs
from litotes.training.judged_loop import JudgedLoop
from litotes.training.settings import TrainingSettings
from litotes.training.step import StepInputs, TrainingStep
from litotes.training.teacher import Teacher

if TYPE_CHECKING:
    from litotes.training.captured import CapturedSteps


COMPILING = "compiling kernels, about a minute the first time on a machine"


class Loop(JudgedLoop):
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
        self.classifier, self.inputs = classifier, inputs
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
            n_texts=len(inputs.texts),
            seed=seed,
            context=context,
            validate=validate,
        )

    def run(self) -> RunState:
        self._report_plain_steps()
        if uses_kernels(self.classifier.encoder) and not self.settings.recompute_activations:
            # until the first step is done this stands where its loss will
            self.context.watch("training", self.state.step, self.n_steps, COMPILING)
        return super().run()

    def _report_plain_steps(self) -> None:
        """Says which steps a GPU takes one by one because of the settings."""
        settings, device = self.settings, self.context.device
        if settings.recompute_activations and kernels_wanted(device):
            words = "activations are computed again: no kernels, no recorded steps"
        elif settings.pieces_at_once is not None and self.captured is not None:
            words = f"batches of more than {settings.pieces_at_once} pieces are not recorded"
        else:
            return
        self.context.watch("training", self.state.step, self.n_steps, Milestone(words))

    def _take_step(self, places: Sequence[int]) -> Tensor:
        """New weights; gives this process's part of the loss, on the device."""
        share = self.context.processes.share(places)
        # fewer texts than processes: one text without weight keeps every parameter in the graph
        parts = self._divide(share or places[:1])
        if self.captured is not None and self.captured.can_take and len(parts) == 1:
            loss = self.captured.take(places)
            if loss is not None:
                return loss
        send = self.task_losses.send
        batch = send(places)
        inputs = [
            StepInputs(partial(self._logits, part), batch, send(part if share else [-1]))
            for part in parts
        ]
        return self.step.take(*inputs, number=self.state.step)

    def _divide(self, places: Sequence[int]) -> list[Sequence[int]]:
        """Consecutive texts of at most `pieces_at_once` pieces; a longer text is alone."""
        limit = self.settings.pieces_at_once
        if limit is None:
            return [places]
        lengths = [len(self.inputs.texts.pieces[place].ids) for place in places]
        parts = batches_by_budget(lengths, max_texts=len(places), max_pieces=limit)
        return [[places[number] for number in part] for part in parts]

    def _logits(self, places: Sequence[int]) -> dict[str, Tensor]:
        with recompute(self.classifier.encoder, self.settings.recompute_activations):
            return self.inputs.logits(self.classifier, places)

    def _score_name(self) -> str:
        by_worst_group = self.settings.selection == "worst_group"
        return score_name(self.classifier.tasks.values(), worst_group=by_worst_group)


def captured_steps(
    step: TrainingStep, classifier: Classifier, inputs: Inputs
) -> CapturedSteps | None:
    """Steps that are recorded and replayed, where they can be."""
    if not isinstance(inputs, PieceInputs) or not uses_kernels(classifier.encoder):
        return None
    from litotes.training.captured import CapturedSteps, can_capture  # imports Triton

    return CapturedSteps(step, classifier, inputs.texts) if can_capture(classifier, step) else None
