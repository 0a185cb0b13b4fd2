"""Files that are whole or not there: staged beside their place, flushed to disk, then renamed.

A folder carries a `manifest.json` with the sha256 of every file, so that a reader can tell a whole folder from the rest of a crash.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
_STAGED = ".staged-"


def sha256_of(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_bytes(file: Path, content: bytes) -> None:
    """Replaces the file in one step."""
    file.parent.mkdir(parents=True, exist_ok=True)
    staged = file.with_name(f"{_STAGED}{file.name}")
    try:
        staged.write_bytes(content)
        _flush(staged)
        staged.replace(file)
    finally:
        staged.unlink(missing_ok=True)
    _flush(file.parent)


def write_text(file: Path, content: str) -> None:
    write_bytes(file, content.encode())


def write_json(file: Path, content: Any) -> None:
    write_text(file, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def write_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """Makes a folder whose files `fill` writes; it appears under its name only when all of it is on disk."""
    staged = folder.with_name(f"{_STAGED}{folder.name}")
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True)
    fill(staged)
    hashes = {path.name: sha256_of(path) for path in sorted(staged.iterdir())}
    (staged / MANIFEST).write_text(json.dumps(hashes, indent=2), "utf-8")
    for path in staged.iterdir():
        _flush(path)
    _flush(staged)
    staged.rename(folder)
    _flush(folder.parent)


def is_whole(folder: Path) -> bool:
    """Whether every file of the manifest is there with the content it was written with."""
    try:
        hashes = json.loads((folder / MANIFEST).read_text("utf-8"))
        return bool(hashes) and all(sha256_of(folder / name) == sha256 for name, sha256 in hashes.items())
    except (OSError, ValueError, AttributeError):
        return False


def remove_folder(folder: Path) -> None:
    """Deletes a folder so that a crash half-way never leaves a part of it under its name."""
    doomed = folder.with_name(f"{_STAGED}{folder.name}")
    shutil.rmtree(doomed, ignore_errors=True)
    folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def clear_staged(parent: Path) -> None:
    """Takes away what an earlier crash left half-written."""
    for path in parent.glob(f"{_STAGED}*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Asks the system to put a file (or a folder's list of names) onto the disk."""
    if path.is_dir() and os.name == "nt":
        return  # Windows cannot flush folders
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
