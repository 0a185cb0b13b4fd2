"""A model folder gains its ONNX file, if measuring against torch shows that it loses little enough.

model folder  →  model.onnx, in float32, int16 or int8  →  the same held-out texts asked of both
              →  accepted, with the loss written next to it, or refused
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.machine import n_cores
from litotes.core.numbers import confusion, macro_f1
from litotes.core.progress import Watch, ignore_progress, prefix_watch
from litotes.core.text import one_line
from litotes.core.values import Example, Task
from litotes.data.sources import load_with_test_part
from litotes.encoder.packing import encode_examples
from litotes.evaluation.scores import macro_f1_of
from litotes.exporting.model_graph import build_onnx, write_export
from litotes.model.calibration import Calibration, apply_to_each, thresholds_of
from litotes.model.checkpoint import Model, load_model
from litotes.model.exits import TABLE
from litotes.model.folder import HASHED, TRAINED_TEXTS, ModelFolder, open_model, whole_copy
from litotes.model.runtime import compute_outputs, static_tier
from litotes.prediction.onnx_file import FILE, INT16
from litotes.prediction.onnx_runtime import OnnxSession, Workers
from litotes.training.recipe import recipe_of
from litotes.training.training_data import prepare

ALLOWED = {"float32": 0.0, INT16: 0.005, "int8": 0.01}
"""Share of the labels that an export may change, by precision."""
MOST_TOSS_UPS = 5
"""How many times that share may change when toss-ups are counted as well."""
_COPIED = (*HASHED, TABLE, TRAINED_TEXTS, "README.md", "config.json")
"""What a copy of a model folder has besides its description and its manifest."""
_N_CALIBRATION_TEXTS = 128
"""Training texts that int8 reads: they show which of an encoder's channels are large, and which
vary together.
"""


@dataclass(frozen=True)
class ExportResult:
    """An export that was accepted. measured_on: the texts of `losses`."""

    file: Path
    precision: str
    n_bytes: int
    measured_on: str
    losses: tuple[ExportLoss, ...]

    def __repr__(self) -> str:
        file, tasks = str(self.file), [loss.task for loss in self.losses]
        return one_line(
            self, file=file, precision=self.precision, n_bytes=self.n_bytes, tasks=tasks
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"file": str(self.file)}


def export(
    model: str | Path,
    *,
    int8: bool = False,
    int16: bool = False,
    data: str | None = None,
    allowed: float | None = None,
    out: str | Path | None = None,
    watch: Watch = ignore_progress,
) -> list[ExportResult]:
    """Writes `model.onnx` into a model folder (or into a copy, `out`) and measures what it changes.

    int8: a quarter of the size, and faster. int16: half the size, computed in 32 bits. data: texts
    to measure on; None: texts the model was trained with, held out. allowed: the share of labels
    that may change; None: none, 0.5 % with int16, 1 % with int8. A result for each model inside.
    """
    if int8 and int16:
        raise UserError("An export has one precision: int8 or int16, not both.")
    precision = "int8" if int8 else ("int16" if int16 else "float32")
    with working_copy(model, None if out is None else str(out)) as folder:
        return export_models(folder, precision=precision, source=data, allowed=allowed, watch=watch)


def export_models(
    folder: str | Path | ModelFolder,
    *,
    precision: str = "float32",
    source: str | None = None,
    allowed: float | None = None,
    n_texts: int = 500,
    watch: Watch = ignore_progress,
) -> list[ExportResult]:
    """Exports the model of a folder, or all of its parts.

    source: where texts come from, for int8 to learn from (training split) and to measure on (test
    split); None: those of the model's own recipe, and then its reserved or held-out texts.
    allowed: the share of labels that may change; None: that of ALLOWED.
    """
    models = open_model(folder).models
    exports = []
    for part in models:
        part_watch = prefix_watch(watch, part.path.name)
        exports.append(
            export_model(part, precision, source=source, n_texts=n_texts, watch=part_watch)
        )
    check_losses([loss for result, _ in exports for loss in result.losses], precision, allowed)
    # Only now, when all of them are good enough, is anything written.
    for part, (result, content) in zip(models, exports, strict=True):
        lost = {loss.task: asdict(loss) for loss in result.losses}
        note = {"measured_on": result.measured_on, "loss": lost}
        write_export(part, content, precision, note)
    return [result for result, _ in exports]


def working_copy(
    model: str | Path | ModelFolder, out: str | None
) -> AbstractContextManager[ModelFolder]:
    """The folder itself, or a copy of it without its export, for a model that must stay as it is;
    what fails leaves no copy behind.
    """
    return whole_copy(model, out, names=_COPIED)


def export_model(
    folder: ModelFolder,
    precision: str,
    *,
    source: str | None,
    n_texts: int,
    watch: Watch = ignore_progress,
) -> tuple[ExportResult, bytes]:
    """Measures what an export of one model would be, and builds the file's content."""
    model = load_model(folder)
    training, measured, measured_on = choose_sample(model, source)
    training = training[:_N_CALIBRATION_TEXTS] if precision == "int8" else []
    watch("writing the file", 0, 1, "")
    texts = encode_examples(model.tokenizer, training)
    content = build_onnx(model, precision=precision, texts=texts, made_from=folder.stated_hashes)
    file = folder.path / FILE
    session = OnnxSession.from_bytes(file, content)
    losses = measure_losses(model, session, measured[:n_texts], watch)
    return ExportResult(file, precision, len(content), measured_on, tuple(losses)), content


class ExportRefused(UserError):
    """An export that changes too much. allowed: the percentage that would be enough."""

    def __init__(self, losses: Sequence[ExportLoss], precision: str, limit: float) -> None:
        self.allowed = ceil(max(map(_needed_limit, losses)) * 1000 - 1e-6) / 10
        changes = ", ".join(loss.in_words() for loss in losses)
        instead = "the torch runtime" if precision == "float32" else "float32"
        super().__init__(
            f"In {precision} {changes}, more than the {limit:.1%} allowed: nothing was exported."
            f" Use {instead}, or allow it with --allow {self.allowed:g}"
        )


def check_losses(
    losses: Sequence[ExportLoss], precision: str, allowed: float | None = None
) -> None:
    """allowed: the share of answers that may change; None: that of ALLOWED."""
    limit = ALLOWED[precision] if allowed is None else allowed
    if any(_needed_limit(loss) > limit + 1e-9 for loss in losses):
        raise ExportRefused(losses, precision, limit)


def _needed_limit(loss: ExportLoss) -> float:
    """Toss-ups are not counted: of two labels that the model finds equally likely either will do.

    That holds for a few: a model that is hardly decided about anything may be right all the same.
    """
    return max(loss.lost, loss.changed / MOST_TOSS_UPS)


# What an export changes: the same texts asked of torch and of the file

_CHUNK = 32
"""Texts asked at a time."""

TOSS_UP = 0.1
"""Two labels whose probabilities differ by less, 55 % against 45 %, are as good as equally likely.
"""

Array = NDArray[Any]
Logits = Mapping[str, Array]
"""By task, (text, class) each."""


@dataclass(frozen=True)
class ExportLoss:
    """The changes that the export made in a task.

    n_changed: labels that are others, or numbers that moved noticeably.
    largest_difference: of a probability, or of the number.
    macro_f1: None without gold labels.
    n_toss_ups: changed labels that torch itself preferred by less than TOSS_UP.
    """

    task: str
    n: int
    n_changed: int
    largest_difference: float
    macro_f1: float | None
    macro_f1_exported: float | None
    n_toss_ups: int = 0

    @property
    def changed(self) -> float:
        return self.n_changed / self.n

    @property
    def lost(self) -> float:
        """The share of answers that are others although torch was decided."""
        return (self.n_changed - self.n_toss_ups) / self.n

    def in_words(self) -> str:
        toss_ups = ""
        if self.n_toss_ups:
            toss_ups = f", {self.n_toss_ups} of them a toss-up"
        return (
            f"{self.n_changed} of {self.n} answers of {self.task} change"
            f" ({self.changed:.1%}{toss_ups})"
        )


def measure_losses(
    model: Model, session: OnnxSession, examples: Sequence[Example], watch: Watch
) -> list[ExportLoss]:
    """The loss in every task of the model."""
    pieces = encode_examples(model.tokenizer, examples)
    workers, tier = Workers(session, n_cores()), static_tier(model)
    before: list[Logits] = []
    after: list[Logits] = []
    for start in range(0, len(pieces), _CHUNK):
        chunk = pieces[start : start + _CHUNK]
        before.append(compute_outputs(model, chunk).logits)
        # a table answers before the file is asked, as it does in a runtime
        outputs = tier.answer(chunk, workers.compute) if tier else workers.compute(chunk)
        after.append(outputs.logits)
        watch("measuring", start + len(chunk), len(pieces), "")
    losses = []
    for name, task in model.classifier.tasks.items():
        gold = [example.labels.get(name) for example in examples]
        own = [np.concatenate([one[name] for one in side]) for side in (before, after)]
        losses.append(compare(task, model.calibration_of(name), own[0], own[1], gold))
    return losses


def compare(
    task: Task, calibration: Calibration, torch_logits: Array, logits: Array, gold: Sequence[Any]
) -> ExportLoss:
    """The loss in one task. logits: (text, class)"""
    if not np.isfinite(logits).all():
        raise UserError(
            f"The exported file gives {task.name} answers that are not numbers: nothing was"
            " exported. Use the torch runtime."
        )
    if task.is_regression:
        # a number has changed when it moved by more than a hundredth of the range of all of them
        moved = np.abs(torch_logits[:, 0] - logits[:, 0])
        n_changed = int((moved > 0.01 * np.ptp(torch_logits[:, 0]) + 1e-4).sum())
        return ExportLoss(task.name, len(moved), n_changed, float(moved.max()), None, None)
    apply = apply_to_each if task.multi_label else Calibration.apply
    labels_before, before = apply(calibration, torch_logits)
    labels_after, after = apply(calibration, logits)
    differs: Any = labels_before != labels_after  # (text,), or (text, class)
    # by how much torch preferred its label to the other one: where a threshold decides, twice the
    # distance from it, which is the same for a threshold of one half
    if task.multi_label:
        margins = 2 * np.abs(before - thresholds_of(calibration, task.n_outputs))
    elif calibration.threshold is not None:
        margins = 2 * np.abs(before[:, 1] - calibration.threshold)
    else:
        rows = np.arange(len(before))
        margins = before[rows, labels_before] - before[rows, labels_after]
    is_toss_up: Any = margins < TOSS_UP
    if task.multi_label:  # a text has changed when one of its labels has
        is_toss_up, differs = is_toss_up.all(1, where=differs), differs.any(1)
    known = [place for place, one in enumerate(gold) if _is_known(task, one)]
    scores = [
        _macro_f1(task, one[known], [gold[place] for place in known]) if known else None
        for one in (labels_before, labels_after)
    ]
    return ExportLoss(
        task.name,
        n=len(gold),
        n_changed=int(differs.sum()),
        largest_difference=float(np.abs(before - after).max()),
        macro_f1=scores[0],
        macro_f1_exported=scores[1],
        n_toss_ups=int((differs & is_toss_up).sum()),
    )


def _is_known(task: Task, gold: Any) -> bool:
    return gold is not None if task.multi_label else gold in task.labels


def _macro_f1(task: Task, given: Array, gold: Sequence[Any]) -> float:
    if not task.multi_label:
        right = np.array([task.labels.index(one) for one in gold])
        return float(macro_f1(confusion(right, given, task.n_outputs)))
    is_right = np.array([[label in one for label in task.labels] for one in gold])
    return float(macro_f1_of(np.stack([is_right & given, given, is_right]).sum(1)))


# Which texts an export learns from and is measured on

Sample = tuple[list[Example], list[Example], str]
"""Training texts, from which int8 learns the range of activations, other texts to measure the loss
on, and where those come from.
"""


def choose_sample(model: Model, source: str | None) -> Sample:
    """source: where texts come from; None: those of the model's own recipe. In an order drawn at
    random, the same one every time.
    """
    if source is not None:
        training, measured, name = _from_source(model, source)
    elif "recipe" in model.facts:
        training, measured, name = _from_recipe(model)
    else:
        raise UserError(
            "The model does not say what it was trained on: give texts to measure the export on"
            " with --data SOURCE."
        )
    if not training or not measured:
        raise UserError(
            "An export needs training texts to look at and other texts to be measured on: choose"
            " another --data."
        )
    training, measured = (random.Random(0).sample(one, len(one)) for one in (training, measured))
    return training, measured, name


def _from_source(model: Model, source: str) -> Sample:
    corpus = load_with_test_part(source)
    name = f"the test split of {corpus.name}"
    if not any(task in corpus.tasks for task in model.classifier.tasks):
        name += ", which has no gold labels for this model"
    training = list(corpus.where(split="train"))
    return training, list(corpus.where(split=corpus.test_split())), name


def _from_recipe(model: Model) -> Sample:
    try:
        data = prepare(recipe_of(dict(model.facts["recipe"]), "the model's recipe"))
    except UserError as error:
        raise UserError(
            f"The texts the model was trained on are not available to measure the export on"
            f" ({error}) Give others: --data SOURCE."
        ) from error
    # the first of these that there is: none of them was learned from
    parts = {"reserved": data.reserved, "held-out": data.held_out, "test": data.test}
    for kind, corpus in parts.items():
        if corpus is not None:
            return list(data.train), list(corpus), f"{kind} texts of {data.whole.name}"
    return list(data.train), [], ""
