"""The manifest of a model folder: the sha256 of each of its files, and one of the list itself.

    manifest.json   {"files": {NAME: sha256, …}, "sha256": that of the list}

It is written before `litotes.json`, with the hash that file is going to have, so that a folder
with a description is whole. A file that decides an answer must be in the list. Other files (the
card, the scores) are listed too but not compared: people edit them, and no answer depends on them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.json_text import read_json_table
from litotes.core.storage import MANIFEST, sha256_of, write_json

ADVICE = "Copy the model folder again, or train the model again."


@dataclass(frozen=True)
class Manifest:
    """files: the sha256 by name."""

    files: Mapping[str, str]

    def check(self, file: Path, sha256: str) -> None:
        """Refuses a file that is not listed, or not with this sha256."""
        if file.name not in self.files:
            raise UserError(
                f"{file} is not in {MANIFEST}: litotes did not write it, or was stopped before the"
                " end. Copy the model folder again, or export the model again."
            )
        if self.files[file.name] != sha256:
            raise changed_file(file)

    def with_files(self, contents: Mapping[str, bytes]) -> Manifest:
        """With other files, or other contents of the same ones."""
        added = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        return Manifest({**self.files, **added})

    def only(self, names: Collection[str]) -> Manifest:
        return Manifest({name: sha256 for name, sha256 in self.files.items() if name in names})

    def as_json(self) -> dict[str, Any]:
        """The content of its file."""
        return _as_json(dict(sorted(self.files.items())))

    def write(self, folder: Path) -> None:
        write_json(folder / MANIFEST, self.as_json())


def changed_file(file: Path) -> UserError:
    """The error for a file that is not the one its folder was written with."""
    return UserError(f"{file} is missing or not the file that was saved. {ADVICE}")


def hash_folder(folder: Path) -> Manifest:
    """The files that are in a folder now, without hidden ones: locks, and what is half written."""
    files = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.name.startswith(".") and path.name != MANIFEST:
            files[path.name] = sha256_of(path)
    return Manifest(files)


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder; None: it has none."""
    file = folder / MANIFEST
    if not file.is_file():
        return None
    content = read_json_table(file, advice=ADVICE)
    files = content.get("files", {})
    is_list = isinstance(files, dict) and all(isinstance(one, str) for one in files.values())
    if not is_list or content != _as_json(files):
        raise UserError(f"{file}: damaged (its list does not have the sha256 it states). {ADVICE}")
    return Manifest(files)


def _as_json(files: Mapping[str, str]) -> dict[str, Any]:
    """With the sha256 of the list."""
    listed = json.dumps(files, sort_keys=True)
    return {"files": files, "sha256": hashlib.sha256(listed.encode()).hexdigest()}
