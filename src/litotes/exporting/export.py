"""A model folder gains its ONNX file, if measuring against torch shows that it loses little enough.

model folder  →  model.onnx, in float32, int16 or int8  →  the same held-out texts asked of both
              →  accepted, with the loss written next to it, or refused
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.progress import Watch, ignore_progress, prefix_watch
from litotes.core.storage import free_folder, write_bytes
from litotes.core.text import one_line
from litotes.encoder.packing import encode_examples
from litotes.exporting.loss import ExportLoss, measure_losses
from litotes.exporting.model_graph import build_onnx, write_export
from litotes.exporting.sample import choose_sample
from litotes.model.builtin import is_builtin, name_of
from litotes.model.checkpoint import load_model
from litotes.model.exits import TABLE
from litotes.model.folder import DESCRIPTION, HASHED, TRAINED_TEXTS, ModelFolder, open_model
from litotes.prediction.onnx_file import FILE, INT16
from litotes.prediction.onnx_runtime import OnnxSession

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

    def note(self) -> dict[str, Any]:
        """What is written next to the file."""
        losses = {loss.task: asdict(loss) for loss in self.losses}
        return {"measured_on": self.measured_on, "loss": losses}


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
        write_export(part, content, precision, result.note())
    return [result for result, _ in exports]


@contextmanager
def working_copy(model: str | Path | ModelFolder, out: str | None) -> Iterator[ModelFolder]:
    """The folder itself, or a copy of it without its export, for a model that must stay as it is;
    what fails leaves no copy behind.
    """
    folder = open_model(model)
    if out is None:
        if is_builtin(folder.path):
            raise UserError(
                f"An export is written into the folder of its model, and {name_of(folder.path)} is"
                " not yours: copy it by --out FOLDER."
            )
        yield folder
        return
    copy = Path(out)
    with free_folder(copy):
        _copy(folder, copy)
        yield open_model(copy)


def _copy(folder: ModelFolder, out: Path) -> None:
    for part in folder.models:
        _copy_files(part, out / part.path.relative_to(folder.path), _COPIED)
    if folder.parts:
        _copy_files(folder, out, ())


def _copy_files(folder: ModelFolder, out: Path, names: Sequence[str]) -> None:
    """With the hashes as they are stated: damage stays to be noticed in the copy."""
    present = [name for name in names if (folder.path / name).is_file()]
    for name in present:
        write_bytes(out / name, (folder.path / name).read_bytes())
    if folder.manifest is not None:
        folder.manifest.only((*present, DESCRIPTION)).write(out)
    # last: a folder that has it is whole
    write_bytes(out / DESCRIPTION, (folder.path / DESCRIPTION).read_bytes())


def export_model(
    folder: ModelFolder,
    precision: str,
    *,
    source: str | None,
    n_texts: int,
    watch: Watch = ignore_progress,
) -> tuple[ExportResult, bytes]:
    """What an export of one model would be, and the file's content."""
    model = load_model(folder)
    sample = choose_sample(model, source)
    training = sample.training[:_N_CALIBRATION_TEXTS] if precision == "int8" else []
    watch("writing the file", 0, 1, "")
    texts = encode_examples(model.tokenizer, training)
    content = build_onnx(model, precision=precision, texts=texts, made_from=folder.stated_hashes)
    file = folder.path / FILE
    session = OnnxSession.from_bytes(file, content)
    losses = measure_losses(model, session, sample.measured[:n_texts], watch)
    return ExportResult(file, precision, len(content), sample.name, tuple(losses)), content


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
