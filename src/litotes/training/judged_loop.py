"""Epochs judged on held-out texts: the best one's weights are kept, and training stops when no
better one comes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import nn

from litotes.core.progress import Milestone
from litotes.encoder.encoder import Encoder
from litotes.training.checkpoints import RunTensors
from litotes.training.epoch_loop import EpochLoop, RunContext, derive_seed
from litotes.training.settings import TrainingSettings


class JudgedLoop(EpochLoop):
    """Passes over `n_texts` texts in batches; a subclass says what a step is.

    validate: gives the held-out score of the model as it is (higher is better; None: the texts
    cannot tell); without it, or where it gives None, the last epoch is taken.
    """

    def __init__(
        self,
        model: nn.Module,
        encoder: Encoder,
        tensors: RunTensors,
        settings: TrainingSettings,
        *,
        n_texts: int,
        seed: int,
        context: RunContext,
        validate: Callable[[], float | None] | None,
    ) -> None:
        self.n_texts, self.validate = n_texts, validate
        n_steps = -(-n_texts // settings.batch_texts) * settings.epochs
        super().__init__(
            model, encoder, tensors, settings, n_steps=n_steps, seed=seed, context=context
        )

    @abstractmethod
    def _score_name(self) -> str:
        """What `validate` gives, in words."""

    def _epoch_batches(self) -> list[list[int]]:
        """The places of the texts of each batch: the same for the same seed and epoch."""
        seed = derive_seed(self.seed, "order", self.state.epoch)
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(self.n_texts, generator=generator).tolist()
        size = self.settings.batch_texts
        return [order[start : start + size] for start in range(0, len(order), size)]

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
            words += f", held-out {self._score_name()} {score:.3f}"
            if state.best_epoch == state.epoch + 1:
                words += " (best so far)"
            elif state.best_score is not None:
                words += f" (best: {state.best_score:.3f} in epoch {state.best_epoch})"
        self.context.watch("training", state.step, self.n_steps, Milestone(words))

    def _score_epoch(self, validate: Callable[[], float | None]) -> float | None:
        """The held-out score of the epoch just done; the best epoch's weights are kept."""
        state, score = self.state, validate()
        encoder = self.encoder
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
