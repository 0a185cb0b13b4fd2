"""A model folder gains its ONNX file, and the loss against torch is measured before the file is
left there.

model folder → model.onnx, in float32 or int8 → the same held-out texts asked of both → accepted,
with the loss beside it, or refused
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.counts import confusion, macro_f1
from litotes.core.errors import UserError
from litotes.core.processor import n_cores
from litotes.core.progress import Watch, prefixed, unwatched
from litotes.core.storage import write_bytes
from litotes.core.values import Example, Task
from litotes.data.corpus import Corpus
from litotes.data.sources import load
from litotes.export.writing import write_export, written
from litotes.model.answering import logits_of
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import Model, load_model
from litotes.model.folder import DESCRIPTION, HASHED, ModelFolder, open_model
from litotes.runtime.onnx.file_check import checked
from litotes.runtime.onnx.file_format import FILE
from litotes.runtime.onnx.session import OnnxSession
from litotes.runtime.workers import Workers
from litotes.training.training_data import prepare
from litotes.training.recipe import recipe_of

ALLOWED = {"float32": 0.0, "int8": 0.01}
"""Share of the labels that an export may change, by precision."""
_N_SEEN = 64
"""Training texts that int8 looks at; which of an encoder's channels are large, a few dozen show."""
_CHUNK = 32


@dataclass(frozen=True)
class ExportLoss:
    """What the export changed in a task. largest_difference: of a probability, or of the number.
    macro_f1: None without gold labels.

    n_changed: labels that are others, or numbers that moved noticeably.
    """

    task: str
    n: int
    n_changed: int
    largest_difference: float
    macro_f1: float | None
    macro_f1_exported: float | None

    @property
    def changed(self) -> float:
        return self.n_changed / self.n


@dataclass(frozen=True)
class ExportResult:
    """An export that was accepted. measured_on: the texts of `losses`."""

    file: Path
    precision: str
    n_bytes: int
    measured_on: str
    losses: tuple[ExportLoss, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"file": str(self.file)}


def export_models(
    folder: str | Path | ModelFolder,
    *,
    precision: str = "float32",
    source: str | None = None,
    allowed: float | None = None,
    n_texts: int = 500,
    watch: Watch = unwatched,
) -> list[ExportResult]:
    """Exports the model of a folder, or all of its parts.

    source: where texts come from, to look at (training split) and to measure on (test split); None:
    those of the model's own recipe, and then its reserved or held-out texts. allowed: the share of
    labels that may change; None: that of ALLOWED.
    """
    made = [
        _made(part, precision, source, allowed, n_texts, prefixed(watch, part.path.name))
        for part in open_model(folder).models
    ]
    for exported, content in made:  # all of them are good
        note = {
            "measured_on": exported.measured_on,
            "loss": {loss.task: asdict(loss) for loss in exported.losses},
        }
        write_export(exported.file.parent, content, precision, note)
    return [exported for exported, _ in made]


@contextmanager
def working_copy(model: str | Path | ModelFolder, out: str | None) -> Iterator[ModelFolder]:
    """The folder itself, or a copy of it without its export, for a model that must stay as it is;
    what fails leaves no copy behind.
    """
    folder = open_model(model)
    if out is None:
        yield folder
        return
    _copy(folder, Path(out))
    try:
        yield open_model(Path(out))
    except BaseException:
        rmtree(out)
        raise


def _copy(folder: ModelFolder, out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} is not empty. Choose a new folder for --out.")
    for part in folder.models:
        copy = out / part.path.relative_to(folder.path)
        for name in (*HASHED, "README.md", "config.json", DESCRIPTION):
            file = part.path / name
            if file.is_file():
                write_bytes(copy / name, file.read_bytes())
    # last: a folder that has it is whole
    write_bytes(out / DESCRIPTION, (folder.path / DESCRIPTION).read_bytes())


def _made(
    folder: ModelFolder,
    precision: str,
    source: str | None,
    allowed: float | None,
    n_texts: int,
    watch: Watch,
) -> tuple[ExportResult, bytes]:
    """What an export would be, and the file's content."""
    model = load_model(folder)
    seen, measured, name = _texts(model, source)
    seen = seen[:_N_SEEN] if precision == "int8" else []
    watch("writing the file", 0, 1, "")
    looked_at = model.tokenizer.encode(
        [example.text for example in seen], [example.pair for example in seen]
    )
    content = written(model, precision=precision, texts=looked_at, made_from=folder.stated_hashes)
    session = OnnxSession.of(checked(folder.path / FILE, content))
    losses = _losses(model, session, measured[:n_texts], watch)
    _check(losses, precision, ALLOWED[precision] if allowed is None else allowed)
    return ExportResult(folder.path / FILE, precision, len(content), name, tuple(losses)), content


def _check(losses: Sequence[ExportLoss], precision: str, limit: float) -> None:
    """limit: the share of answers that may change."""
    for loss in losses:
        if loss.n_changed > limit * loss.n + 1e-9:
            raise UserError(
                f"In {precision} {loss.n_changed} of {loss.n} answers of {loss.task} change"
                f" ({loss.changed:.1%}), more than the {limit:.1%} allowed: nothing was exported."
                f" Use float32, or allow it with --allow {ceil(loss.changed * 1000) / 10:g}."
            )


def _texts(model: Model, source: str | None) -> tuple[list[Example], list[Example], str]:
    """Texts to look at, texts to measure on, in an order drawn at random, and where they come from."""
    if source is not None:
        corpus = load(source)
        tasks = [name for name in model.classifier.tasks if name in corpus.tasks]
        train, test = (list(corpus.where(split=split)) for split in ("train", corpus.test_split()))
        name = (
            f"the test split of {corpus.name}"
            if tasks
            else f"the test split of {corpus.name}, which has no gold labels for this model"
        )
    elif "recipe" in model.facts:
        train, test, name = _of_recipe(model)
    else:
        raise UserError(
            "The model does not say what it was trained on: give texts to measure the export on"
            " with --data SOURCE."
        )
    if not train or not test:
        raise UserError(
            "An export needs training texts to look at and other texts to be measured on: choose"
            " another --data."
        )
    return (
        random.Random(0).sample(train, len(train)),
        random.Random(0).sample(test, len(test)),
        name,
    )


def _of_recipe(model: Model) -> tuple[list[Example], list[Example], str]:
    try:
        prepared = prepare(recipe_of(dict(model.facts["recipe"]), "the model's recipe"))
    except UserError as error:
        raise UserError(
            f"The texts the model was trained on are not there to measure the export on ({error})"
            " Give others: --data SOURCE."
        ) from error
    parts: tuple[tuple[str, Corpus | None], ...] = (
        ("reserved", prepared.reserved),
        ("held-out", prepared.held_out),
        ("test", prepared.test),
    )
    kind, chosen = next(((kind, part) for kind, part in parts if part is not None), ("", None))
    return (
        list(prepared.train),
        [] if chosen is None else list(chosen),
        f"{kind} texts of {prepared.whole.name}",
    )


def _losses(
    model: Model, session: OnnxSession, examples: Sequence[Example], watch: Watch
) -> list[ExportLoss]:
    pieces = model.tokenizer.encode(
        [example.text for example in examples], [example.pair for example in examples]
    )
    workers = Workers(session, n_cores())
    parts: list[tuple[Mapping[str, NDArray[Any]], Mapping[str, NDArray[Any]]]] = []
    for start in range(0, len(pieces), _CHUNK):
        chunk = pieces[start : start + _CHUNK]
        parts.append(
            (
                {task: logits.numpy() for task, logits in logits_of(model, chunk).items()},
                workers.logits(chunk),
            )
        )
        watch("measuring", min(start + _CHUNK, len(pieces)), len(pieces), "")
    losses = []
    for name, task in model.classifier.tasks.items():
        ours, theirs = (np.concatenate([part[side][name] for part in parts]) for side in (0, 1))
        losses.append(
            _loss(
                task,
                model.calibration_of(name),
                ours,
                theirs,
                [example.labels.get(name) for example in examples],
            )
        )
    return losses


def _loss(
    task: Task,
    calibration: Calibration,
    torch_logits: NDArray[Any],
    logits: NDArray[Any],
    gold: Sequence[Any],
) -> ExportLoss:
    """logits: (text, class). A number has changed when it moved by more than a hundredth of the
    range of all of them.
    """
    if not np.isfinite(logits).all():
        raise UserError(
            f"The exported file gives {task.name} answers that are no numbers: nothing was"
            " exported. Use the torch runtime."
        )
    if task.is_regression:
        moved = np.abs(torch_logits - logits)[:, 0]
        n_changed = int((moved > 0.01 * np.ptp(torch_logits) + 1e-4).sum())
        return ExportLoss(task.name, len(gold), n_changed, float(moved.max()), None, None)
    (expected, before), (labels, after) = calibration.apply(torch_logits), calibration.apply(logits)
    n_changed, largest = int((expected != labels).sum()), float(np.abs(before - after).max())
    known = np.array(
        [place for place, label in enumerate(gold) if label in task.labels], dtype=np.int64
    )
    if not len(known):
        return ExportLoss(task.name, len(gold), n_changed, largest, None, None)
    right = np.array([task.labels.index(gold[place]) for place in known])
    ours, theirs = (
        float(macro_f1(confusion(right, chosen[known], task.n_outputs)))
        for chosen in (expected, labels)
    )
    return ExportLoss(task.name, len(gold), n_changed, largest, ours, theirs)
