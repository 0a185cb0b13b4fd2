"""The model folder: what a run ends in and every consumer starts from.

    litotes.json        what the model is: encoder, head, tasks, calibration, data, recipe;
                        written last
    manifest.json       the hashes of all files (manifest.py)
    model.safetensors   encoder weights under the family's own names, and the heads under `heads.…`
    tokenizer.json      the pieces
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

import torch
from safetensors.torch import save as to_bytes
from torch import Tensor

from litotes.core.errors import UserError, reason_of
from litotes.core.one_line import one_line
from litotes.core.storage import MANIFEST, json_bytes, write_bytes, write_json, write_text
from litotes.core.targets import make_folder
from litotes.core.version import __version__
from litotes.encoders import pretrained
from litotes.encoders.bundled import BUNDLED, bundled_weights
from litotes.encoders.config import config_from_spec, spec_from_json
from litotes.encoders.difference import from_difference, to_difference
from litotes.encoders.spec import EncoderSpec
from litotes.encoders.weights import (
    check_fits,
    empty_encoder,
    extra_tensors,
    load_extra_tensors,
    load_family_tensors,
    read_tensors,
    to_family_tensors,
)
from litotes.model.calibration import Calibration
from litotes.model.classifier import Classifier
from litotes.model.description import FORMAT
from litotes.model.early_answers import EarlyExits
from litotes.model.folder import (
    DESCRIPTION,
    HASHED,
    TOKENIZER,
    WEIGHTS,
    FileContent,
    ModelFolder,
    open_model,
    read_files,
)
from litotes.model.label_sets import LabelSets
from litotes.model.manifest import changed_file, hash_folder
from litotes.text.tokenizer import PieceTokenizer

_HEADS, _EXITS = "heads.", "exits."


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
    weight (`encoders/difference.py`).
    """
    make_folder(folder)
    for name in (DESCRIPTION, MANIFEST):
        (folder / name).unlink(missing_ok=True)
    tensors, omits_base = _tensors_to_save(model, compact=compact)
    write_bytes(folder / WEIGHTS, to_bytes(tensors, metadata={"format": "pt"}))
    write_text(folder / TOKENIZER, model.tokenizer.to_json())
    write_text(folder / "README.md", card)
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
    base: dict[str, Tensor] = {}
    if model.base_sha256 is not None:
        base = pretrained.bundled_tensors(model.base, sha256=model.base_sha256)
    kept, n_omitted = {}, 0
    for name, tensor in to_family_tensors(model.classifier.encoder).items():
        if name in base and torch.equal(tensor, base[name]):  # training has left it as it was
            n_omitted += 1
        else:
            kept[name] = tensor
    if compact:
        kept = to_difference(kept, base)
    kept |= extra_tensors(model.classifier.encoder)
    for name, tensor in model.classifier.heads.state_dict().items():
        kept[f"{_HEADS}{name}"] = tensor.detach().cpu().clone()
    if model.exits is not None:
        for name, tensor in model.exits.heads.state_dict().items():
            kept[f"{_EXITS}{name}"] = tensor.detach().cpu().clone()
    return kept, compact or n_omitted > 0


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
    _check_hashes(folder, files)
    description = folder.description
    base, spec = description["base"], spec_from_json(description["encoder"])
    base_tensors = _base_tensors(base, files)
    weights, pieces = (folder.path / name for name in HASHED)
    tensors = from_difference(read_tensors(weights, files[weights].content), base_tensors)
    classifier = _build_classifier(folder, spec, base_tensors | tensors)
    exits = None
    if folder.exits is not None:
        exits = EarlyExits.for_classifier(classifier, folder.exits)
        exits.heads.load_state_dict(_without_prefix(tensors, _EXITS))
    max_pieces = int(description["max_pieces"])
    tokenizer = pretrained.read_tokenizer(
        folder.path, spec, max_pieces=max_pieces, content=files[pieces].content
    )
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
    folder: ModelFolder, spec: EncoderSpec, tensors: Mapping[str, Tensor]
) -> Classifier:
    n_bytes = sum(tensor.nbytes for tensor in tensors.values())
    check_fits(spec, n_bytes, str(folder))  # first: a description may ask for an endless encoder
    encoder = empty_encoder(spec)
    load_family_tensors(encoder, tensors, str(folder))
    load_extra_tensors(encoder, tensors)
    classifier = Classifier(
        encoder,
        list(folder.tasks.values()),
        head=folder.description["head"],
        dropout=folder.description["dropout"],
    )
    classifier.heads.load_state_dict(_without_prefix(tensors, _HEADS))
    return classifier.eval()


def _check_hashes(folder: ModelFolder, files: Mapping[Path, FileContent]) -> None:
    """The files must be those that the folder was written with."""
    stated = folder.stated_hashes
    if set(stated) != set(HASHED):
        listing = folder.path / (DESCRIPTION if folder.manifest is None else MANIFEST)
        raise UserError(
            f"{listing}: must give the hashes of {' and '.join(HASHED)}. Copy it again, or train"
            " the model again."
        )
    for name, sha256 in stated.items():
        file = folder.path / name
        if file not in files or files[file].sha256 != sha256:
            raise changed_file(file)


def _without_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The weights saved under a prefix, without it."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def _describe(model: Model, *, omits_base: bool) -> dict[str, Any]:
    """The content of `litotes.json`."""
    classifier = model.classifier
    tasks = {name: list(task.labels) for name, task in classifier.tasks.items()}
    calibration = {task: learned.as_json() for task, learned in model.calibration.items()}
    exits = {} if model.exits is None else {"exits": model.exits.rule.as_json()}
    return {
        "format": FORMAT,
        "litotes": __version__,
        "tasks": tasks,
        "head": classifier.head_name,
        "dropout": classifier.dropout,
        "calibration": calibration,
        "max_pieces": model.tokenizer.max_pieces,
        "encoder": classifier.encoder.spec.as_json(),
        "base": {"name": model.base, "sha256": model.base_sha256, "omitted": omits_base},
        "facts": dict(model.facts),
        **exits,
    }


def _base_tensors(base: Mapping[str, Any], files: Mapping[Path, FileContent]) -> dict[str, Tensor]:
    """The weights of the bundled encoder that a model was saved without; none, if it is whole."""
    if set(base) != {"name", "sha256", "omitted"} or not isinstance(base["omitted"], bool):
        raise ValueError(f"the base must have a name, a sha256 and omitted, not {base!r:.60}")
    if not base["omitted"]:
        return {}
    name = base["name"]
    # a model folder must not send us to other folders or to the network
    if name not in BUNDLED:
        raise UserError(
            f"This model is a difference from {name!r}, which is not a bundled encoder; it cannot"
            " be completed."
        )
    weights = files[bundled_weights(name)]
    pretrained.check_bundled(name, base["sha256"], found=weights.sha256)
    return read_tensors(bundled_weights(name), weights.content)
