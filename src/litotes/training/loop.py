"""The training loop: steps, epochs, early stopping, checkpoints.

A run is a pure function of its recipe: on a CPU the same recipe gives the same bytes, killed and
resumed or not.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from litotes.core.errors import Stopped, UserError
from litotes.core.progress import Watch, unwatched
from litotes.core.registry import pick
from litotes.core.storage import write_text
from litotes.data.corpus import Corpus
from litotes.model.classifier import Classifier
from litotes.training.balancing import BALANCINGS
from litotes.training.checkpoints import Checkpoints, RunState, RunTensors, trainable_parameters
from litotes.training.groups import GROUP_LOSSES, TaskBatch
from litotes.training.inputs import Inputs
from litotes.training.interruption import Interruption
from litotes.training.losses import task_weights, text_losses, text_weights, unlabelled
from litotes.training.optimizer import make_optimizer, set_learning_rate
from litotes.training.processes import Processes
from litotes.training.settings import TrainingSettings
from litotes.training.teacher import Teacher
from litotes.training.trackers import TRACKERS


@dataclass(frozen=True)
class RunContext:
    """What a loop works with beside the model and its texts."""

    device: torch.device
    folder: Path
    key: str  # of the recipe: checkpoints of another recipe are not resumed
    processes: Processes
    watch: Watch = unwatched
    corpus: Corpus | None = None  # texts in memory, in place of the recipe's source


class Loop:
    """Trains a classifier on the texts of a make_inputs.

    validate: gives the held-out score of the classifier as it is (higher is better; None: cannot be
    told); without it, or where it cannot tell, the last epoch is taken.
    teacher: answers to imitate beside the labels.
    """

    def __init__(
        self,
        classifier: Classifier,
        source: Inputs,
        settings: TrainingSettings,
        *,
        seed: int,
        context: RunContext,
        validate: Callable[[], float | None] | None = None,
        teacher: Teacher | None = None,
    ) -> None:
        self.classifier, self.source, self.settings = classifier, source, settings
        self.seed, self.context, self.validate, self.teacher = seed, context, validate, teacher
        n_tasks, device = len(classifier.tasks), context.device
        self.balancing = pick(BALANCINGS, settings.balancing, "balancing")(n_tasks).to(device)
        self.group_loss = GROUP_LOSSES[settings.groups](
            n_tasks, source.texts.n_groups, rate=settings.group_rate
        ).to(device)
        parameters = trainable_parameters(classifier) | trainable_parameters(
            self.balancing, "balancing."
        )
        self.tensors = RunTensors(
            parameters, dict(self.group_loss.named_buffers()), make_optimizer(parameters, settings)
        )
        weights = task_weights(
            source.texts.targets, classifier.tasks, balanced=settings.class_weights
        )
        self.weights = {task: weight.to(device) for task, weight in weights.items()}
        self.n_steps_an_epoch = -(-len(source.texts) // settings.batch_texts)
        self.n_steps = self.n_steps_an_epoch * settings.epochs
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
                for places in self._order()[self.state.place :]:
                    self._step(places)
                    self._maybe_save()
                    if interruption.wanted:
                        self._save()
                        where = f"Stopped after step {self.state.step} of {self.n_steps}."
                        raise Stopped(
                            f"{where} Start the command again to go on (train: with --resume)."
                        )
                self._end_epoch()
        if self.tensors.best:
            self.classifier.load_state_dict(self.tensors.best, strict=False)
        return self.state

    def _order(self) -> list[list[int]]:
        """The epoch's batches: the same for the same seed and epoch."""
        generator = torch.Generator().manual_seed(derive_seed(self.seed, "order", self.state.epoch))
        order = torch.randperm(len(self.source.texts), generator=generator).tolist()
        size = self.settings.batch_texts
        return [order[start : start + size] for start in range(0, len(order), size)]

    def _step(self, places: Sequence[int]) -> None:
        started = time.monotonic()
        processes, state, optimizer = self.context.processes, self.state, self.tensors.optimizer
        self.classifier.train()
        torch.manual_seed(derive_seed(self.seed, "step", state.step, processes.rank))
        set_learning_rate(optimizer, self.settings, step=state.step, n_steps=self.n_steps)
        self.classifier.encoder.set_progress(state.step / self.n_steps)
        optimizer.zero_grad(set_to_none=True)
        losses = self._losses(places, processes.share(places))
        loss = processes.total(float(torch.stack([value.detach() for value in losses]).sum()))
        if not math.isfinite(loss):
            raise UserError(
                f"The loss is {loss} at step {state.step + 1}: training diverged. Lower"
                " training.learning_rate."
            )
        parameters = list(self.tensors.parameters.values())
        self.balancing.backward(losses, parameters, processes=processes, step=state.step)
        if self.settings.max_gradient_norm:
            clip_grad_norm_(parameters, self.settings.max_gradient_norm)
        optimizer.step()
        state.loss_sum += loss
        state.step += 1
        state.place += 1
        state.seconds += time.monotonic() - started
        self.context.watch(
            "training",
            state.step,
            self.n_steps,
            f"epoch {state.epoch + 1}, loss {state.loss_sum / state.place:.3f}",
        )

    def _losses(self, places: Sequence[int], share: Sequence[int]) -> list[Tensor]:
        """This process's part of each task's loss."""
        device, texts = self.context.device, self.source.texts
        # fewer texts than processes: one text without weight keeps every parameter in the graph
        own = share or places[:1]
        logits = self._logits(own)
        whole_targets, own_targets, whole_groups = (
            texts.targets_of(places),
            texts.targets_of(own),
            texts.groups[list(places)],
        )
        losses = []
        for number, (task, values) in enumerate(logits.items()):
            one = (
                self._text_losses(task, values, own_targets[task].to(device), own)
                if share
                else values.float().sum(-1) * 0.0
            )
            weigh = self._weigh(task, whole_targets[task].to(device))
            by_group = torch.zeros(texts.n_groups, device=device).index_add(
                0, whole_groups.to(device), weigh
            )
            batch = TaskBatch(one, texts.groups[list(own)].to(device), by_group)
            losses.append(self.group_loss(number, batch, self.context.processes))
        return losses

    def _text_losses(
        self, task: str, logits: Tensor, targets: Tensor, places: Sequence[int]
    ) -> Tensor:
        """The loss of each text by its label and, where there is a teacher, by the teacher's
        answer. (text,)
        """
        by_label = text_losses(logits, targets, self.weights.get(task))
        if self.teacher is None:
            return by_label
        return self.teacher.mix_in(by_label, logits, places, task, self._weigh(task, targets))

    def _weigh(self, task: str, targets: Tensor) -> Tensor:
        """How much each text counts.

        A text without a label teaches nothing, unless a teacher has an answer to it. (text,)
        """
        weights = text_weights(targets, self.weights.get(task))
        return weights if self.teacher is None else torch.where(unlabelled(targets), 1.0, weights)

    def _logits(self, places: Sequence[int]) -> dict[str, Tensor]:
        with autocast(self.settings, self.context.device):
            return self.source.logits(self.classifier, places)

    def _end_epoch(self) -> None:
        state = self.state
        line: dict[str, float] = {
            "epoch": state.epoch + 1,
            "step": state.step,
            "loss": state.loss_sum / max(state.place, 1),
        }
        score = self._judge() if self.validate is not None else None
        if score is not None:
            line["held_out"] = score
        state.history.append(line)
        self.track(state.step, line)
        if self.context.processes.is_first:
            lines = "".join(json.dumps(one) + "\n" for one in state.history)
            write_text(self.context.folder / "history.jsonl", lines)
        state.epoch, state.place, state.loss_sum = state.epoch + 1, 0, 0.0
        state.finished = (
            state.epoch == self.settings.epochs or state.n_waited >= self.settings.patience
        )

    def _judge(self) -> float | None:
        """The held-out score of the epoch just done; the best epoch's weights are kept."""
        assert self.validate is not None
        state, score = self.state, self.validate()
        self.classifier.encoder.set_progress(state.step / self.n_steps)
        if score is None or not all(
            attention.weighting.is_settled for attention in self.classifier.encoder.attentions
        ):
            # Nothing to compare epochs by, or sparsity still rises: the latest is as good as any,
            # and nobody loses patience.
            self.tensors.keep_best()
            state.best_epoch = state.epoch + 1
        elif state.best_score is None or score > state.best_score:
            state.best_score, state.best_epoch, state.n_waited = score, state.epoch + 1, 0
            self.tensors.keep_best()
        else:
            state.n_waited += 1
        return score

    def _maybe_save(self) -> None:
        if time.monotonic() - self.saved_at >= self.settings.checkpoint_seconds:
            self._save()

    def _save(self) -> None:
        if self.context.processes.is_first:
            self.checkpoints.save(self.state, self.tensors)
        self.saved_at = time.monotonic()


def autocast(
    settings: TrainingSettings, device: torch.device
) -> torch.autocast | nullcontext[None]:
    """bfloat16 where the settings and the device allow it."""
    wanted = settings.precision == "bfloat16" or (
        settings.precision == "auto" and device.type == "cuda"
    )
    return torch.autocast(device.type, torch.bfloat16) if wanted else nullcontext()


def derive_seed(seed: int, *what: object) -> int:
    """A seed of its own for every purpose, the same on every machine."""
    digest = hashlib.sha256(repr((seed, *what)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1  # torch wants a signed 64-bit number
