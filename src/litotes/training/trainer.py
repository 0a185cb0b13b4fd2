"""The trainer: steps in epochs, progress, history, checkpoints, Ctrl-C, whatever the objective.

A run is a pure function of its recipe: on a CPU the same recipe gives the same bytes, killed and
resumed or not. Randomness is no state: every step draws from a generator seeded by its number.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Self

import torch
from torch import Tensor

from litotes.core.errors import Stopped, UserError
from litotes.core.json_text import to_json
from litotes.core.progress import Milestone
from litotes.core.storage import write_text
from litotes.training.checkpoints import Checkpoints, RunState
from litotes.training.objective import Objective, RunContext
from litotes.training.optimizer import scale_rates

# Optional curves elsewhere, where a library for them is installed; history.jsonl is always written.

Track = Callable[[int, Mapping[str, float]], None]


@contextmanager
def _tensorboard(folder: Path) -> Iterator[Track]:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder / "tensorboard")) as writer:

        def track(step: int, values: Mapping[str, float]) -> None:
            for name, value in values.items():
                writer.add_scalar(name, value, step)
            writer.flush()

        yield track


@contextmanager
def _mlflow(folder: Path) -> Iterator[Track]:
    import mlflow

    def track(step: int, values: Mapping[str, float]) -> None:
        mlflow.log_metrics(dict(values), step=step)

    # left open, it would take in the metrics of whatever comes next in this process
    with mlflow.start_run(run_name=folder.name, nested=True):
        yield track


TRACKERS: dict[str, Callable[[Path], AbstractContextManager[Track]]] = {
    "tensorboard": _tensorboard,
    "mlflow": _mlflow,
}


@contextmanager
def open_tracker(name: str, folder: Path) -> Iterator[Track]:
    """Opens the tracker for the numbers of a run; with none, they go nowhere."""
    if name == "none":
        yield lambda step, values: None
        return
    with ExitStack() as stack:
        try:
            track = stack.enter_context(TRACKERS[name](folder))
        except ImportError as error:
            raise UserError(
                f'tracker = "{name}" needs its library: `pip install {name}`, or set tracker ='
                ' "none".'
            ) from error
        yield track


class Trainer:
    """Minimises an objective."""

    def __init__(self, objective: Objective, context: RunContext) -> None:
        self.objective, self.context = objective, context
        self.state, self.losses = RunState(), LateLosses()
        self.checkpoints = Checkpoints(context.folder / "checkpoints", key=context.key)
        # opened before the first step, so that a library that is missing is known at once
        tracker = objective.settings.tracker if context.processes.is_first else "none"
        self.opened = ExitStack()
        self.track = self.opened.enter_context(open_tracker(tracker, context.folder))
        self.saved_at = time.monotonic()

    def run(self, *, resume: bool = False) -> RunState:
        """Trains to the end and leaves the weights that were kept in the model.

        resume: goes on from the last whole checkpoint, if there is one.
        """
        objective, tensors = self.objective, self.objective.tensors
        if resume:
            self.state = self.checkpoints.load(tensors) or self.state
        self.context.processes.wait()
        for words in objective.opening():
            self._report(words)
        with self.opened, same_products_after(), Interruption() as interruption:
            if objective.judges_start and not self.state.history:
                self.record({"epoch": 0, "step": 0} | objective.judge(self.state))
            while not self.state.finished:
                for batch in objective.batches(self.state.epoch)[self.state.place :]:
                    self._step(batch)
                    self._save_in_time(interruption)
                self._end_epoch()
        if tensors.best:
            objective.model.load_state_dict(tensors.best, strict=False)
        return self.state

    def _save_in_time(self, interruption: Interruption) -> None:
        """Saves what is not to be lost, and stops where that was asked for."""
        unsaved = time.monotonic() - self.saved_at
        if unsaved >= self.objective.settings.checkpoint_seconds or interruption.wanted:
            self._save()
        if interruption.wanted:
            raise Stopped(
                f"Stopped after step {self.state.step} of {self.objective.n_steps}. Start the"
                " command again to go on (train and pretrain: with --resume)."
            )

    def _step(self, batch: Any) -> None:
        started, state, objective = time.monotonic(), self.state, self.objective
        objective.model.train()
        self._seed(objective.seed_of(state.step))
        scale_rates(objective.tensors.optimizer, objective.rate(state.step))
        objective.set_progress(state.step / objective.n_steps)
        self.losses.add(state.step, objective.take_step(batch, state.step))
        state.step += 1
        state.place += 1
        # several processes add theirs up on the host; a CPU has nothing to do meanwhile
        is_late = self.context.device.type == "cuda" and self.context.processes.n == 1
        self._read_losses(all_but=1 if is_late else 0)
        state.seconds += time.monotonic() - started
        n_read = state.place - len(self.losses.waiting)
        loss = f"loss {state.loss_sum / n_read:.3f}" if n_read else ""
        self._report(self._words(f"epoch {objective.epoch_of(state)}", loss))

    def _seed(self, seed: int) -> None:
        if self.context.device.type == "cpu":
            # torch.manual_seed would write down a traceback for every kind of device that is absent
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)

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
        """Judges the epoch just done, records it, and says whether it was the last."""
        state, objective = self.state, self.objective
        self._read_losses()
        loss = state.loss_sum / max(state.place, 1)
        found = objective.judge(state)
        self.record({"epoch": objective.epoch_of(state), "step": state.step, "loss": loss} | found)
        words = self._words(f"{objective.milestone(state)}: loss {loss:.3f}")
        if state.best_score is not None:
            is_best = state.best_epoch == state.epoch + 1
            others = f"best: {state.best_score:.3f} in epoch {state.best_epoch}"
            words += f" ({'best so far' if is_best else others})"
        self._report(Milestone(words))
        state.epoch, state.place, state.loss_sum = state.epoch + 1, 0, 0.0
        state.finished = state.finished or state.epoch >= objective.n_epochs

    def record(self, line: dict[str, Any]) -> None:
        """Adds a line to the history, here and where it is tracked."""
        self.state.history.append(line)
        self.track(self.state.step, line)
        if self.context.processes.is_first:
            lines = "".join(to_json(line) + "\n" for line in self.state.history)
            write_text(self.context.folder / "history.jsonl", lines)

    def _words(self, *words: str) -> str:
        """The words with what the history found last."""
        last = self.objective.describe(self.state.history[-1]) if self.state.history else ""
        return ", ".join(filter(None, (*words, last)))

    def _report(self, words: str) -> None:
        self.context.watch("training", self.state.step, self.objective.n_steps, words)

    def _save(self) -> None:
        self._read_losses()  # nothing that diverged is kept
        if self.context.processes.is_first:
            self.checkpoints.save(self.state, self.objective.tensors)
        self.saved_at = time.monotonic()


class LateLosses:
    """Reads losses after the device has been given the next step, so that it never stands idle."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[int, Tensor, torch.cuda.Event | None]] = deque()

    def add(self, step: int, loss: Tensor) -> None:
        """step: its number."""
        done = None
        if loss.is_cuda:
            # a copy: a recorded step writes the next loss to the same place
            copy = torch.empty((), dtype=loss.dtype, pin_memory=True)
            loss, done = copy.copy_(loss, non_blocking=True), torch.cuda.Event()
            done.record()
        self.waiting.append((step, loss, done))

    def read(self, *, all_but: int = 0) -> Iterator[tuple[int, float]]:
        """The numbers of steps and their losses, in order, up to the last `all_but`."""
        while len(self.waiting) > all_but:
            step, loss, done = self.waiting.popleft()
            if done is not None:
                done.synchronize()
            yield step, float(loss)


class Interruption(ExitStack):
    """While entered, the first Ctrl-C (or SIGTERM) only sets `wanted`; a second one interrupts at
    once.
    """

    wanted = False

    def __enter__(self) -> Self:
        # Python handles signals there alone
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.callback(signal.signal, number, signal.signal(number, self._ask))
        return super().__enter__()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.wanted:
            raise KeyboardInterrupt
        self.wanted = True


@contextmanager
def same_products_after() -> Iterator[None]:
    """Leaves oneDNN as it was. Where a processor has no bfloat16 products, torch leaves it for good
    after the first, in float32 as well: what the process computes later would be added up otherwise
    than in another.
    """
    was_enabled = torch.backends.mkldnn.enabled
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = was_enabled
