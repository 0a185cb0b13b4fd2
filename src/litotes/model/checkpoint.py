"""The model folder: what a run ends in and every consumer starts from.

    litotes.json        what the model is: encoder, head, tasks, calibration, data, recipe;
                        written last
    manifest.json       the hashes of all files (manifest.py)
    model.safetensors   encoder weights under the family's own names, and the heads under `heads.…`
    tokenizer.json      the pieces
    table.npy           what answers before the first layer, of a model with such an exit
    config.json         for `transformers`, when the folder holds a whole encoder
    README.md           the model card

A model whose lower layers are those of a bundled encoder keeps only what differs from it. A folder
may also hold several such folders, one per task: its `litotes.json` then names them as its `parts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors.torch import save as to_bytes
from torch import Tensor

from litotes.core.errors import UserError, reason_of
from litotes.core.storage import (
    MANIFEST,
    json_bytes,
    make_folder,
    write_bytes,
    write_json,
    write_text,
)
from litotes.core.text import one_line
from litotes.core.version import __version__
from litotes.encoder.config import config_from_spec, spec_from_json
from litotes.encoder.encoder import Encoder
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.model.calibration import Calibration
from litotes.model.classifier import Classifier
from litotes.model.description import FORMAT
from litotes.model.early_answers import EarlyExits
from litotes.model.folder import (
    DESCRIPTION,
    TOKENIZER,
    WEIGHTS,
    FileContent,
    ModelFolder,
    open_model,
    read_files,
)
from litotes.model.heads import HEADS
from litotes.model.label_sets import LabelSets
from litotes.model.manifest import hash_folder
from litotes.model.saved_tensors import (
    check_known,
    load_heads,
    saved_encoder,
    saved_tensors,
    saved_tokenizer,
    tensors_to_save,
    without_prefix,
)
from litotes.model.static_table import TABLE

_EXITS = "exits."


@dataclass(frozen=True)
class Model:
    """A classifier with its tokenizer, the calibration of its tasks, and what is known about it
    (`facts`: data, recipe, scores). exits: where texts leave early; None: none does.

    label_sets: the bounds by which its folder lets it say "unsure". They are those of the weights
    that were calibrated: `save_model` does not write them.
    """

    classifier: Classifier
    tokenizer: PieceTokenizer
    base: str
    base_sha256: str | None
    calibration: Mapping[str, Calibration] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    exits: EarlyExits | None = None
    label_sets: Mapping[str, LabelSets] = field(default_factory=dict)

    def __repr__(self) -> str:
        return one_line(self, base=self.base, tasks=list(self.classifier.tasks))

    def calibration_of(self, task: str) -> Calibration:
        """What is done to the logits of a task: nothing, where none was learned."""
        return self.calibration.get(task, Calibration())


def save_model(model: Model, folder: Path, *, card: str, compact: bool = False) -> None:
    """Writes the model folder; `litotes.json` comes last, so a folder that has it is whole.

    compact: matrices that a bundled encoder has as well are kept as steps away from it, a byte a
    weight (`encoders/difference.py`); a model of another encoder is kept whole.
    """
    make_folder(folder)
    for name in (DESCRIPTION, MANIFEST):
        (folder / name).unlink(missing_ok=True)
    tensors, omits_base = _tensors_to_save(model, compact=compact)
    write_bytes(folder / WEIGHTS, to_bytes(tensors, metadata={"format": "pt"}))
    write_text(folder / TOKENIZER, model.tokenizer.to_json())
    write_text(folder / "README.md", card)
    if model.exits is not None and model.exits.table is not None:
        write_bytes(folder / TABLE, model.exits.table.to_bytes())
    spec = model.classifier.encoder.spec
    if not omits_base and spec.is_plain:  # all that transformers can read
        write_json(folder / "config.json", config_from_spec(spec))
    write_description(folder, _describe(model, omits_base=omits_base))


def write_description(folder: Path, description: Mapping[str, Any]) -> None:
    """Writes the manifest of the folder and then, last, the description."""
    content = json_bytes(description)
    hash_folder(folder).with_files({DESCRIPTION: content}).write(folder)
    write_bytes(folder / DESCRIPTION, content)


def _tensors_to_save(model: Model, *, compact: bool) -> tuple[dict[str, Tensor], bool]:
    """The weights by the names they are saved under, and whether they need the bundled encoder."""
    kept, omits_base = tensors_to_save(
        model.classifier.encoder,
        model.classifier.heads,
        base_name=model.base,
        base_sha256=model.base_sha256,
        compact=compact,
    )
    if model.exits is not None:
        for name, tensor in model.exits.heads.state_dict().items():
            kept[f"{_EXITS}{name}"] = tensor.detach().cpu().clone()
    return kept, omits_base


def load_model(
    model: str | Path | ModelFolder, *, files: Mapping[Path, FileContent] | None = None
) -> Model:
    """Reads a model folder, in evaluation mode; every file is checked against its hash first.

    files: its large files, where `read_files` has read them already.
    """
    folder = open_model(model)
    if "parts" in folder.description:
        example = folder.path / "TASK"
        raise UserError(f"{folder} holds a model per task. Name one of them: {example}.")
    if files is None:
        files = read_files([folder])
    try:
        return _load(folder, files)
    except (
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RuntimeError,
        AssertionError,
    ) as error:
        raise folder.damaged(reason_of(error)) from error


def save_parts(parts: Sequence[str], folder: Path) -> None:
    """Makes a folder that holds a model folder per part answer as one model."""
    description = {"format": FORMAT, "litotes": __version__, "parts": list(parts)}
    write_description(folder, description)


def _load(folder: ModelFolder, files: Mapping[Path, FileContent]) -> Model:
    description = folder.description
    base, spec = description["base"], spec_from_json(description["encoder"])
    tensors = saved_tensors(folder, files)
    encoder = saved_encoder(folder, spec, tensors)
    classifier = _build_classifier(folder, encoder, tensors)
    exits = None
    if folder.exits is not None:
        heads = EarlyExits.for_classifier(classifier, folder.exits).heads
        heads.load_state_dict(without_prefix(tensors, _EXITS))
        exits = EarlyExits(heads, folder.exits, folder.read_table())
    tokenizer = saved_tokenizer(folder, spec, files)
    return Model(
        classifier,
        tokenizer,
        base["name"],
        base["sha256"],
        folder.calibration,
        description["facts"],
        exits,
        folder.label_sets,
    )


def _build_classifier(
    folder: ModelFolder, encoder: Encoder, tensors: Mapping[str, Tensor]
) -> Classifier:
    check_known(folder, "head", folder.description["head"], HEADS)
    classifier = Classifier(
        encoder,
        list(folder.tasks.values()),
        head=folder.description["head"],
        dropout=folder.description["dropout"],
    )
    load_heads(classifier.heads, tensors)
    return classifier.eval()


def _describe(model: Model, *, omits_base: bool) -> dict[str, Any]:
    """The content of `litotes.json`."""
    classifier = model.classifier
    tasks = {name: list(task.labels) for name, task in classifier.tasks.items()}
    calibration = {task: learned.as_json() for task, learned in model.calibration.items()}
    exits = {} if model.exits is None else {"exits": model.exits.rule.as_json()}
    names = [name for name, task in classifier.tasks.items() if task.multi_label]
    several = {"multi_label": names} if names else {}
    return {
        "format": FORMAT,
        "litotes": __version__,
        "tasks": tasks,
        **several,
        "head": classifier.head_name,
        "dropout": classifier.dropout,
        "calibration": calibration,
        "max_pieces": model.tokenizer.max_pieces,
        "encoder": classifier.encoder.spec.as_json(),
        "base": {"name": model.base, "sha256": model.base_sha256, "omitted": omits_base},
        "facts": dict(model.facts),
        **exits,
    }
