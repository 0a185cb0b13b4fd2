"""Before a student learns answers, its encoder may learn to compute as its teachers do.

Every text is shown by a teacher that was not trained on it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from litotes.core.errors import Stopped, UserError
from litotes.core.machine import choose_device
from litotes.core.progress import Milestone, Watch
from litotes.core.values import Example
from litotes.encoder.encoder import Encoder
from litotes.encoder.packing import TextSet, make_text_set
from litotes.encoder.pretrained import Pretrained
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.model.checkpoint import load_model
from litotes.training.checkpoints import Checkpoints, RunState, RunTensors, trainable_parameters
from litotes.training.distillation.imitation import IMITATIONS, Imitation
from litotes.training.objective import autocast, derive_seed
from litotes.training.optimizer import make_optimizer, set_learning_rate
from litotes.training.recipe import TrainingSettings
from litotes.training.trainer import Interruption, same_products_after


@dataclass(frozen=True)
class Matching:
    """What is imitated, for how long, and which teacher's model folder shows which texts."""

    kind: str
    settings: TrainingSettings
    seed: int
    key: str
    shown: tuple[tuple[Path, tuple[Example, ...]], ...]


@dataclass(frozen=True)
class _Lesson:
    """A teacher's encoder, and the same texts in its pieces and in the student's."""

    teacher: Encoder
    theirs: TextSet
    own: TextSet


def match_encoder(
    student: Pretrained, matching: Matching, folder: Path, *, device: str | None, watch: Watch
) -> None:
    """Trains the student's encoder in place; a stopped one goes on. folder: of its checkpoints."""
    chosen = choose_device(device)
    lessons = _make_lessons(student.tokenizer, matching, chosen)
    student.encoder.to(chosen).train()
    torch.manual_seed(derive_seed(matching.seed, "maps"))
    spec = lessons[0].teacher.spec
    imitation = IMITATIONS[matching.kind](student.encoder.spec, spec).to(chosen)
    loop = _Loop(student.encoder, imitation, lessons, matching, folder, chosen)
    loop.run(watch)
    student.encoder.cpu().eval()


def _make_lessons(
    tokenizer: PieceTokenizer, matching: Matching, device: torch.device
) -> list[_Lesson]:
    """The texts that both cut into the same pieces, with the teacher that shows them."""
    lessons, n_texts = [], 0
    for folder, examples in matching.shown:
        model = load_model(folder)
        aligned = aligned_texts(examples, tokenizer, model.tokenizer)
        n_texts += len(examples)
        if aligned:
            theirs, own = (make_text_set(aligned, (), one) for one in (model.tokenizer, tokenizer))
            encoder = model.classifier.encoder.to(device).eval().requires_grad_(False)
            lessons.append(_Lesson(encoder, theirs, own))
    check_aligned(sum(len(lesson.own) for lesson in lessons), n_texts)
    return lessons


def check_aligned(n_aligned: int, n_texts: int) -> None:
    """Refuses a student that cuts most texts into other pieces than its teacher."""
    if n_aligned < n_texts / 2:
        raise UserError(
            f"distill.match needs the same pieces in teacher and student, and only {n_aligned} of"
            f" {n_texts} texts have them. Set distill.match = none, or choose a student with the"
            " teacher's tokenizer."
        )


def aligned_texts(
    examples: Sequence[Example], one: PieceTokenizer, other: PieceTokenizer
) -> list[Example]:
    """The texts that both tokenizers cut at the same places."""
    texts, pairs = [one.text for one in examples], [one.pair for one in examples]
    cuts = []
    for tokenizer in (one, other):
        read = tokenizer.read(texts, pairs)
        cuts.append([(len(text.pieces.ids), text.words) for text in read])
    return [
        example for example, mine, theirs in zip(examples, *cuts, strict=True) if mine == theirs
    ]


class _Loop:
    """Epochs of batches, each of texts that one teacher shows."""

    def __init__(
        self,
        encoder: Encoder,
        imitation: Imitation,
        lessons: Sequence[_Lesson],
        matching: Matching,
        folder: Path,
        device: torch.device,
    ) -> None:
        self.encoder, self.imitation, self.lessons = encoder, imitation, lessons
        self.matching, self.settings, self.device = matching, matching.settings, device
        parameters = trainable_parameters(encoder, "encoder.")
        parameters |= trainable_parameters(imitation, "heads.")
        self.tensors = RunTensors(parameters, {}, make_optimizer(parameters, self.settings))
        self.checkpoints = Checkpoints(folder, key=matching.key)
        size = self.settings.batch_texts
        self.n_in_epoch = sum(-(-len(lesson.own) // size) for lesson in lessons)
        self.state = self.checkpoints.load(self.tensors) or RunState()
        self.saved_at = time.monotonic()

    def run(self, watch: Watch) -> None:
        n_steps = self.n_in_epoch * self.settings.epochs
        with same_products_after(), Interruption() as interruption:
            for epoch in range(self.state.step // self.n_in_epoch, self.settings.epochs):
                for lesson, places in self._batches(epoch)[self.state.step % self.n_in_epoch :]:
                    loss = self._step(lesson, places, n_steps)
                    self._report(loss, n_steps, watch)
                    self._save_when_due(at_once=interruption.wanted)
                    if interruption.wanted:
                        raise Stopped(
                            f"Stopped after step {self.state.step} of {n_steps} of matching. Start"
                            " the command again to go on."
                        )
        self.checkpoints.clear()

    def _report(self, loss: float, n_steps: int, watch: Watch) -> None:
        note, step = f"distance {loss:.4f}", self.state.step
        if step % self.n_in_epoch == 0:
            epoch = step // self.n_in_epoch
            note = Milestone(f"epoch {epoch} of {self.settings.epochs}: {note}")
        watch(f"matching {self.matching.kind}", step, n_steps, note)

    def _save_when_due(self, *, at_once: bool) -> None:
        if at_once or time.monotonic() - self.saved_at >= self.settings.checkpoint_seconds:
            self.checkpoints.save(self.state, self.tensors)
            self.saved_at = time.monotonic()

    def _step(self, lesson: _Lesson, places: list[int], n_steps: int) -> float:
        step = self.state.step
        torch.manual_seed(derive_seed(self.matching.seed, "match", step))
        optimizer = self.tensors.optimizer
        set_learning_rate(optimizer, self.settings, step=step, n_steps=n_steps)
        optimizer.zero_grad(set_to_none=True)
        own, theirs = (part.batch(places, self.device) for part in (lesson.own, lesson.theirs))
        with autocast(self.settings, self.device):
            with torch.no_grad():
                wanted = self.imitation.look(lesson.teacher, theirs)
            found = self.imitation.look(self.encoder, own)
            loss = self.imitation(found, wanted, own.layout)
        loss.backward()
        optimizer.step()
        self.state.step += 1
        return float(loss.detach())

    def _batches(self, epoch: int) -> list[tuple[_Lesson, list[int]]]:
        """The batches of an epoch: the same for the same seed."""
        generator = random.Random(derive_seed(self.matching.seed, "order", epoch))
        size = self.settings.batch_texts
        batches: list[tuple[_Lesson, list[int]]] = []
        for lesson in self.lessons:
            order = generator.sample(range(len(lesson.own)), len(lesson.own))
            starts = range(0, len(order), size)
            batches += [(lesson, order[start : start + size]) for start in starts]
        generator.shuffle(batches)
        return batches
