"""`litotes.json` says what a model folder holds.

Reading it needs no torch: a model that answers without torch is there at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.storage import sha256_of
from litotes.core.version import __version__
from litotes.encoders.bundled import BUNDLED, bundled_weights

FORMAT = 1
DESCRIPTION = "litotes.json"
HASHED = ("model.safetensors", "tokenizer.json")
"""The files whose sha256 stands in it."""


_MOST_BYTES = 1 << 26


def read_description(folder: Path) -> dict[str, Any]:
    check_links(folder)
    file = folder / DESCRIPTION
    if not file.is_file():
        raise UserError(
            f"{folder} is not a model folder: there is no {DESCRIPTION}. Make one with `litotes"
            f" train RECIPE --out {folder}`."
        )
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise ValueError(f"{file.stat().st_size} bytes")
        description = json.loads(file.read_text("utf-8"))
        version = description["format"]
        _check_words(description.get("tasks", {}))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(
            f"{file}: not readable ({error}). Copy the model folder again, or train anew."
        ) from error
    if version != FORMAT:
        raise UserError(
            f"{file}: format {version}; this litotes ({__version__}) reads format {FORMAT}. Install"
            " the litotes that wrote it."
        )
    return dict(description)


def hashes_of(folders: Sequence[Path]) -> dict[Path, str]:
    """The sha256 of all large files these models are made of.

    Hashing leaves the interpreter free: torch can be imported meanwhile.
    """
    files: list[Path] = []
    for folder in folders:
        files += [folder / name for name in HASHED]
        base = read_description(folder).get("base")
        if isinstance(base, dict) and base.get("omitted") and base.get("name") in BUNDLED:
            files.append(bundled_weights(base["name"]))
    return {file: sha256_of(file) for file in dict.fromkeys(files) if file.is_file()}


def check_links(folder: Path) -> None:
    """A model folder must not send us elsewhere: links stay in it, or lead to where the cache of
    the Hub keeps its files.
    """
    if not folder.is_dir():
        return
    here = folder.resolve()
    for path in folder.iterdir():
        if path.is_symlink() and not any(
            _resolved(path).is_relative_to(place) for place in (here, here.parent.parent / "blobs")
        ):
            raise UserError(
                f"{path} is a link that leads out of the model folder. Copy what it leads to into"
                " the folder, if you trust it."
            )
        if not path.is_file() and not path.is_dir():
            raise UserError(f"{path} is no ordinary file. Take it out of the model folder.")


def _resolved(link: Path) -> Path:
    try:
        return link.resolve()
    except (OSError, RuntimeError):  # a link to itself
        return Path(link.anchor)


def hashes_in(folder: Path) -> dict[str, str]:
    """The sha256 of its files, as the description has them: `load_model` has compared them with the
    files, which takes a while.
    """
    return dict(read_description(folder)["files"])


def _check_words(tasks: dict[str, list[str]]) -> None:
    """Labels are printed; a terminal obeys some characters."""
    for labels in tasks.values():
        if not all(label.isprintable() for label in labels):
            raise ValueError("a label holds characters that cannot be printed")


def folders_of(folder: Path) -> tuple[Path, ...]:
    """The folder itself, or those of its parts: a folder may hold a model per task."""
    parts = read_description(folder).get("parts")
    if parts is None:
        return (folder,)
    if (
        not isinstance(parts, list)
        or not parts
        or not all(
            isinstance(part, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", part)
            for part in parts
        )
    ):
        raise UserError(
            f"{folder / DESCRIPTION}: damaged (its parts are no names). Copy the model folder"
            " again, or train anew."
        )
    return tuple(folder / part for part in parts)
