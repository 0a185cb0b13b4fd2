"""A model folder is opened once; everything after that is handed the `ModelFolder`.

    name or path  →  open_model  →  ModelFolder: its path, the checked `litotes.json`, its parts
                                        →  load_model (torch)  or  OnnxRuntime (no torch)

Opening needs no torch, so that an exported model can answer at once. It checks that no link leads
out of the folder and that `litotes.json` can be read and names nothing outside; the hashes of the
large files are compared when these are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.names import is_plain_name
from litotes.core.storage import read_json_table, sha256_of
from litotes.core.values import Task
from litotes.core.version import __version__
from litotes.encoders.bundled import BUNDLED, bundled_weights
from litotes.model.builtin import resolve_model
from litotes.model.calibration import Calibration
from litotes.model.facts import check_facts

FORMAT = 1
DESCRIPTION = "litotes.json"
WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
HASHED = (WEIGHTS, TOKENIZER)
"""The files whose sha256 the description states."""

_ADVICE = "Copy the model folder again, or train the model again."


@dataclass(frozen=True)
class ModelFolder:
    """A model folder that has been opened.

    description: the content of its `litotes.json`.
    parts: where it holds a model per task, the folders of these models.
    """

    path: Path
    description: Mapping[str, Any]
    parts: tuple[ModelFolder, ...] = ()

    def __str__(self) -> str:
        return str(self.path)

    @property
    def models(self) -> tuple[ModelFolder, ...]:
        """The folders that hold weights: its parts, or the folder itself."""
        return self.parts or (self,)

    @property
    def tasks(self) -> dict[str, Task]:
        """What the model answers, by name, in the order of its description."""
        labels_by_task = self.description["tasks"].items()
        return {name: Task(name, tuple(labels)) for name, labels in labels_by_task}

    @property
    def calibration(self) -> dict[str, Calibration]:
        """What is done to the logits of each task that was calibrated."""
        by_task = self.description.get("calibration", {}).items()
        return {task: Calibration.from_json(content) for task, content in by_task}

    @property
    def stated_hashes(self) -> dict[str, str]:
        """The sha256 of its files by name, as the description states them."""
        return dict(self.description["files"])

    @property
    def large_files(self) -> list[Path]:
        """The files to hash before they are read, with those of the bundled encoder it rests on."""
        files = [self.path / name for name in HASHED]
        base = self.description.get("base")
        if isinstance(base, dict) and base.get("omitted") and base.get("name") in list(BUNDLED):
            files.append(bundled_weights(base["name"]))
        return files

    def damaged(self, reason: object) -> UserError:
        """The error for a description that can be read but makes no model."""
        return UserError(f"{self.path / DESCRIPTION}: damaged ({reason}). {_ADVICE}")


def open_model(model: str | Path | ModelFolder) -> ModelFolder:
    """Opens a model folder and checks it. model: a built-in model's name, or a folder.

    Hashes are not kept: a folder may be opened long before its files are read, and what is
    compared must be what is read.
    """
    if isinstance(model, ModelFolder):
        return model
    folder = _open(resolve_model(model))
    if "parts" not in folder.description:
        return folder
    names = folder.description["parts"]
    if not isinstance(names, list) or not names or not all(is_plain_name(name) for name in names):
        raise folder.damaged("its parts are not names")
    # a part of a part is not opened: a link back to its own folder would never end
    parts = tuple(_open(folder.path / name) for name in names)
    return ModelFolder(folder.path, folder.description, parts)


def is_model_folder(path: Path) -> bool:
    """Whether a model has been written there; its description comes last."""
    return (path / DESCRIPTION).is_file()


def hash_files(folders: Iterable[ModelFolder]) -> dict[Path, str]:
    """The sha256 of all large files these models are made of.

    Hashing leaves the interpreter free: torch can be imported meanwhile.
    """
    files: list[Path] = []
    for folder in folders:
        files += folder.large_files
    return {file: sha256_of(file) for file in dict.fromkeys(files) if file.is_file()}


def _open(path: Path) -> ModelFolder:
    """The folder without its parts."""
    _check_links(path)
    if not is_model_folder(path):
        raise UserError(
            f"{path} is not a model folder: there is no {DESCRIPTION}. Make one with `litotes"
            f" train RECIPE --out {path}`."
        )
    file = path / DESCRIPTION
    description = read_json_table(file, advice=_ADVICE)
    try:
        version = description["format"]
        _check_labels(description.get("tasks", {}))
        check_facts(description.get("facts", {}))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{file}: not readable ({error}). {_ADVICE}") from error
    if version != FORMAT:
        raise UserError(
            f"{file}: format {version}; this litotes ({__version__}) reads format {FORMAT}. Install"
            " the litotes that wrote it."
        )
    return ModelFolder(path, description)


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


def _check_labels(tasks: Mapping[str, list[str]]) -> None:
    """Labels are printed, and a terminal obeys some characters."""
    for labels in tasks.values():
        if not all(label.isprintable() for label in labels):
            raise ValueError("a label holds characters that cannot be printed")
