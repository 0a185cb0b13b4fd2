"""All encoders that have a name: which are on this machine, and whether they are whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from litotes.core.errors import UserError
from litotes.core.registry import unknown_name
from litotes.encoder import pretrained
from litotes.encoder.bundled import BUNDLED, bundled_folder, installed_folder
from litotes.encoder.fetchable import (
    FETCHABLE,
    NEEDED,
    describe_fetchable,
    fetched_folder,
    find_damage,
    own_folder,
    require_fetched,
)
from litotes.encoder.packing import pack

SENTENCE = "Lovely queue, I only aged a year in it."


@dataclass(frozen=True)
class NamedEncoder:
    """An encoder that can be named in a recipe. folder: None where it was not fetched."""

    name: str
    folder: Path | None
    n_download: int
    hub_name: str
    about: str

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "folder": None if self.folder is None else str(self.folder),
            "download_bytes": self.n_download,
            "hub": self.hub_name,
            "about": self.about,
        }


def named_encoders() -> Iterator[NamedEncoder]:
    for name, wanted in FETCHABLE.items():
        hub_name = f"{wanted.hub_name}@{wanted.revision or 'REVISION'}"
        folder, about = find_folder(name), describe_fetchable(name)
        yield NamedEncoder(name, folder, wanted.n_download, hub_name, about)


def is_here(name: str) -> bool:
    """Whether this is the name of an encoder that can be loaded without a network."""
    return name in FETCHABLE and find_folder(name) is not None


def find_folder(name: str) -> Path | None:
    """Where the encoder is: in an installed package, or where it was fetched to; None: nowhere."""
    installed = installed_folder(name) if name in BUNDLED else None
    return installed or fetched_folder(name)


def check_name(name: str) -> None:
    """Refuses a name that no encoder has."""
    if name not in FETCHABLE:
        raise UserError(unknown_name(name, FETCHABLE, "encoder"))


@dataclass(frozen=True)
class CheckedEncoder:
    """A whole encoder, the files whose hashes were compared, and the states (piece, width) of one
    sentence.
    """

    name: str
    folder: Path
    n_files: int
    n_pieces: int
    width: int

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "folder": str(self.folder),
            "files_verified": self.n_files,
            "states": [self.n_pieces, self.width],
        }


def check_encoder(name: str) -> CheckedEncoder:
    """Compares the hashes of what is there and computes the hidden states of one sentence."""
    check_name(name)
    folder = bundled_folder(name) if name in BUNDLED else require_fetched(name)
    n_files = _check_files(name, folder)
    loaded = pretrained.load(name)
    with torch.no_grad():
        hidden = loaded.encoder(pack(loaded.tokenizer.encode([SENTENCE]))).hidden
    if not hidden.isfinite().all():
        raise UserError(f"The encoder {name!r} computes numbers that are not finite.")
    return CheckedEncoder(name, folder, n_files, *hidden.shape)


def _check_files(name: str, folder: Path) -> int:
    """How many were compared; the Hub's cache has only those that are read."""
    wanted = FETCHABLE[name]
    files = list(wanted.files) if folder == own_folder(name) else list(NEEDED)
    damaged = find_damage(folder, wanted, files=files)
    if damaged:
        first = ""
        if name in BUNDLED and folder == installed_folder(name):  # it comes before what is fetched
            first = f"Uninstall it: `pip uninstall {wanted.packages[0].name}`. Then "
        run = f"{first}run" if first else "Run"
        raise UserError(
            f"{folder}: {', '.join(damaged)} missing or damaged. {run} `litotes encoders get"
            f" {name}`."
        )
    return len(files)
