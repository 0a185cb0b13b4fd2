"""A model folder is opened once; everything after that is handed the `ModelFolder`.

    name or path  →  open_model  →  ModelFolder: its path, the checked `litotes.json`, its parts
                                        →  load_model (torch)  or  OnnxRuntime (no torch)

Opening needs no torch, so that an exported model can answer at once. It checks that no link leads
out of the folder, that `litotes.json` is the file of the manifest, can be read and names nothing
outside; the hashes of the other files are compared when these are read. What was hashed is what is
used: a file is read once, and its bytes are handed on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.json_text import parse_json, read_small_file
from litotes.core.registry import is_plain_name
from litotes.core.storage import MANIFEST, sha256_of
from litotes.core.text import one_line
from litotes.core.values import CLASSIFICATION, KINDS, TRANSLATION, Task
from litotes.core.version import __version__
from litotes.encoder.bundled import BUNDLED, bundled_weights
from litotes.encoder.config import spec_from_json
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.model.builtin import resolve_model
from litotes.model.calibration import Calibration
from litotes.model.description import FORMAT, OLD_FORMAT, check_description
from litotes.model.exits import Exits, exits_from_json
from litotes.model.facts import check_facts
from litotes.model.label_sets import LabelSets
from litotes.model.manifest import ADVICE, Manifest, changed_file, read_manifest
from litotes.model.static_table import TABLE, StaticTable, parse_table

DESCRIPTION = "litotes.json"
WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
HASHED = (WEIGHTS, TOKENIZER)
"""The files that every model folder states the sha256 of, whatever its format."""
MOST_KEPT_BYTES = 1 << 30
"""Of a file that is read once. A larger one is hashed and then mapped: it need not be in memory
twice.
"""


@dataclass(frozen=True)
class ModelFolder:
    """A model folder that has been opened.

    description: the content of its `litotes.json`.
    parts: where it holds a model per task, the folders of these models.
    manifest: the hashes of its files; None in a folder of the old format.
    """

    path: Path
    description: Mapping[str, Any]
    parts: tuple[ModelFolder, ...] = ()
    manifest: Manifest | None = None

    def __repr__(self) -> str:
        return one_line(self, path=str(self.path), tasks=list(self.tasks))

    def __str__(self) -> str:
        return str(self.path)

    @property
    def models(self) -> tuple[ModelFolder, ...]:
        """The folders that hold weights: its parts, or the folder itself."""
        return self.parts or (self,)

    @property
    def kind(self) -> str:
        """What it answers: a name of `KINDS`."""
        kind: str = self.description.get("kind", CLASSIFICATION)
        return kind

    @property
    def tasks(self) -> dict[str, Task]:
        """What the model answers, by name, in the order of its description."""
        several = self.description.get("multi_label", ())
        tasks = {}
        for name, labels in self.description["tasks"].items():
            tasks[name] = Task(name, tuple(labels), multi_label=name in several)
        return tasks

    @property
    def calibration(self) -> dict[str, Calibration]:
        """What is done to the logits of each task that was calibrated."""
        by_task = self.description.get("calibration", {}).items()
        return {task: Calibration.from_json(content) for task, content in by_task}

    @property
    def exits(self) -> Exits | None:
        """Where texts may leave early; None: every text goes to the end."""
        if "exits" not in self.description:
            return None
        n_layers = len(spec_from_json(self.description["encoder"]).walk)
        return exits_from_json(
            self.description["exits"], tasks=self.description["tasks"], n_layers=n_layers
        )

    @property
    def label_sets(self) -> dict[str, LabelSets]:
        """The bounds of each task that may be answered with "unsure"."""
        by_task = self.description.get("unsure", {}).items()
        return {task: LabelSets.from_json(content) for task, content in by_task}

    @property
    def stated_hashes(self) -> dict[str, str]:
        """The sha256 of weights and tokenizer, as the manifest or the old description states it."""
        if self.manifest is None:
            return dict(self.description["files"])
        return dict(self.manifest.only(HASHED).files)

    @property
    def large_files(self) -> list[Path]:
        """The files to hash before they are read, with those of the bundled encoder it rests on."""
        files = [self.path / name for name in HASHED]
        base = self.description.get("base")
        if isinstance(base, dict) and base.get("omitted") and base.get("name") in list(BUNDLED):
            files.append(bundled_weights(base["name"]))
        return files

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about the folder."""
        if self.manifest is not None:
            return ()
        return (
            f"{self} was written by an earlier litotes: no hash protects its {DESCRIPTION}, and"
            " damage to that file can go unnoticed.",
        )

    def read_tokenizer(self) -> PieceTokenizer:
        """The tokenizer alone, checked; the weights are not read."""
        file = self.path / TOKENIZER
        content = file.read_bytes()
        self.check_hash(TOKENIZER, hashlib.sha256(content).hexdigest())
        return PieceTokenizer(file, max_pieces=self.description["max_pieces"], content=content)

    def read_table(self) -> StaticTable | None:
        """What answers before the first layer, checked; None: nothing does."""
        if self.exits is None or not self.exits.has_table:
            return None
        try:
            content = (self.path / TABLE).read_bytes()
        except OSError as error:
            raise changed_file(self.path / TABLE) from error
        self.check_hash(TABLE, hashlib.sha256(content).hexdigest())
        n_outputs = {name: task.n_outputs for name, task in self.tasks.items()}
        n_pieces = spec_from_json(self.description["encoder"]).n_vocabulary
        try:
            return parse_table(content, n_pieces=n_pieces, n_outputs=n_outputs)
        except ValueError as error:
            raise self.damaged(error) from error

    def check_hash(self, name: str, sha256: str) -> None:
        """Refuses a file that is not the one of the manifest; the old format has none."""
        if self.manifest is not None:
            self.manifest.check(self.path / name, sha256)

    def damaged(self, reason: object) -> UserError:
        """The error for a description that can be read but makes no model."""
        return UserError(f"{self.path / DESCRIPTION}: damaged ({reason}). {ADVICE}")


@dataclass(frozen=True)
class FileContent:
    """What was read from a file, and its sha256. content: None of a file too large to be kept."""

    sha256: str
    content: bytes | None


def open_model(
    model: str | Path | ModelFolder, *, kinds: Collection[str] = (CLASSIFICATION,)
) -> ModelFolder:
    """Opens a model folder and checks it. model: a built-in model's name, or a folder.

    kinds: of models that the caller can use; others are refused.

    Its files are not hashed yet: a folder may be opened long before they are read, and what is
    compared must be what is read.
    """
    folder = model if isinstance(model, ModelFolder) else _open(resolve_model(model))
    if folder.kind not in kinds:
        raise UserError(_refusal(folder, kinds))
    if isinstance(model, ModelFolder) or "parts" not in folder.description:
        return folder
    names = folder.description["parts"]
    if not isinstance(names, list) or not names or not all(is_plain_name(name) for name in names):
        raise folder.damaged("its parts are not names")
    # a part of a part is not opened: a link back to its own folder would never end
    parts = tuple(_open(folder.path / name) for name in names)
    if any(part.kind != CLASSIFICATION for part in parts):
        raise folder.damaged("one of its parts does not label whole texts")
    return replace(folder, parts=parts)


def kind_of(model: str | Path) -> str:
    """The kind of a model, without a check: what cannot be read is reported by who opens it."""
    try:
        description = parse_json(read_small_file(resolve_model(model) / DESCRIPTION))
    except (OSError, ValueError):
        return CLASSIFICATION
    kind = description.get("kind") if isinstance(description, dict) else None
    return kind if isinstance(kind, str) else CLASSIFICATION


def _refusal(folder: ModelFolder, kinds: Collection[str]) -> str:
    """Why a model cannot be used here, and where it can."""
    answers = KINDS[folder.kind]
    if folder.kind == CLASSIFICATION:
        return f"{folder} answers {answers}; a model of kind {' or '.join(kinds)} is needed here."
    return (
        f"{folder} is a {folder.kind} model: it answers {answers}, which is not supported here."
        " `litotes predict`, `evaluate` and `explain` take it; in Python, `litotes.Tagger`."
    )


def is_model_folder(path: Path) -> bool:
    """Whether a model has been written there; its description comes last."""
    return (path / DESCRIPTION).is_file()


def read_files(folders: Iterable[ModelFolder]) -> dict[Path, FileContent]:
    """All large files these models are made of, each read once.

    Reading and hashing leave the interpreter free: torch can be imported meanwhile.
    """
    files = [file for folder in folders for file in folder.large_files]
    return {file: _read_file(file) for file in dict.fromkeys(files) if file.is_file()}


def _read_file(file: Path) -> FileContent:
    if file.stat().st_size > MOST_KEPT_BYTES:
        return FileContent(sha256_of(file), None)
    content = file.read_bytes()
    return FileContent(hashlib.sha256(content).hexdigest(), content)


def _open(path: Path) -> ModelFolder:
    """The folder without its parts."""
    description, manifest = read_description(path)
    if description.get("kind") == TRANSLATION:
        raise UserError(
            f"{path} holds a translation model, which gives no labels. Ask it with `litotes"
            " translate` (--explain shows what it looked at) or `litotes interpret`; it cannot be"
            " pruned, exported, served or evaluated."
        )
    file = path / DESCRIPTION
    try:
        check_description(description)
        check_facts(description.get("facts", {}))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{file}: not readable ({error}). {ADVICE}") from error
    return ModelFolder(path, description, manifest=manifest)


def read_description(path: Path) -> tuple[dict[str, Any], Manifest | None]:
    """What the `litotes.json` of a folder says, checked against its hash, and the manifest.

    Its keys are not checked yet: they depend on the kind of model.
    """
    _check_links(path)
    if not is_model_folder(path):
        raise UserError(
            f"{path} is not a model folder: there is no {DESCRIPTION}. Make one with `litotes"
            f" train RECIPE --out {path}`."
        )
    file, manifest = path / DESCRIPTION, read_manifest(path)
    try:
        content = read_small_file(file)
        if manifest is not None:
            manifest.check(file, hashlib.sha256(content).hexdigest())
        description = parse_json(content)
        if not isinstance(description, dict):
            raise ValueError("not a table")
        _check_format(description["format"], file, manifest)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{file}: not readable ({error}). {ADVICE}") from error
    return description, manifest


def _check_format(version: object, file: Path, manifest: Manifest | None) -> None:
    if version not in (OLD_FORMAT, FORMAT):
        raise UserError(
            f"{file}: format {version}; this litotes ({__version__}) reads formats {OLD_FORMAT} and"
            f" {FORMAT}. Install the litotes that wrote it."
        )
    if version == FORMAT and manifest is None:
        raise UserError(f"{file.with_name(MANIFEST)} is missing. {ADVICE}")


def _check_links(folder: Path) -> None:
    """A model folder must not lead elsewhere: its links stay inside, or end where the cache of the
    Hub keeps its files.
    """
    if not folder.is_dir():
        return
    here = folder.resolve()
    allowed = (here, here.parent.parent / "blobs")
    for path in folder.iterdir():
        if path.is_symlink() and not any(_target(path).is_relative_to(place) for place in allowed):
            raise UserError(
                f"{path} is a link that leads out of the model folder. Copy what it leads to into"
                " the folder, if you trust it."
            )
        if not path.is_file() and not path.is_dir():
            raise UserError(f"{path} is not an ordinary file. Take it out of the model folder.")


def _target(link: Path) -> Path:
    try:
        return link.resolve()
    except (OSError, RuntimeError):  # a link to itself
        return Path(link.anchor)
