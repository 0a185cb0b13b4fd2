"""Files that are complete or not there: staged next to their place, flushed to disk, then renamed.

A folder carries a `manifest.json` with the sha256 of every file, so that a reader can tell a
complete folder from what a crash left. A folder that is written for hours is locked meanwhile, so
that a second process cannot write into it as well.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

MANIFEST = "manifest.json"
LOCK = ".lock"
MOST_JSON_BYTES = 1 << 26
"""Of a file that is read whole: a description may hold a recipe and scores."""
_STAGED = ".staged-"
_FAR = 1 << 30  # Windows locks bytes, not files: one far behind the text, which stays readable


def sha256_of(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_bytes(file: Path, content: bytes, *, writer: str = "") -> None:
    """Replaces the file in one step.

    writer: a different name for each of several processes that may write it at the same time.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    staged = file.with_name(f"{_STAGED}{writer}{file.name}")
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
    write_bytes(file, json_bytes(content))


def json_bytes(content: Any) -> bytes:
    """What `write_json` writes."""
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def read_small_file(file: Path) -> bytes:
    """The content of a file that is kept whole; one that is too large is a ValueError."""
    n_bytes = file.stat().st_size
    if n_bytes > MOST_JSON_BYTES:
        raise ValueError(f"{n_bytes} bytes")
    return file.read_bytes()


def parse_json(content: bytes) -> Any:
    """What is not JSON is a ValueError."""
    try:
        return json.loads(content.decode("utf-8"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def load_json(file: Path) -> Any:
    """The content of a JSON file that may hold anything; what is not JSON is a ValueError."""
    return parse_json(read_small_file(file))


def read_json(file: Path, *, advice: str) -> Any:
    """The same where the user can help: what cannot be read is an error with advice what to do."""
    try:
        return load_json(file)
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: not readable ({error}). {advice}") from error


def read_json_table(file: Path, *, advice: str) -> dict[str, Any]:
    """The same of a file that must hold a table of names and values."""
    content = read_json(file, advice=advice)
    if not isinstance(content, dict):
        raise UserError(f"{file}: not readable (not a table). {advice}")
    return content


def write_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """Makes a folder whose files `fill` writes; it appears under its name only when everything is
    on disk.
    """
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


def is_complete(folder: Path) -> bool:
    """Whether every file of the manifest is there with the content it was written with."""
    try:
        stated = load_json(folder / MANIFEST)
        found = {name: sha256_of(folder / name) for name in stated}
    except (OSError, ValueError, TypeError):
        return False
    return bool(stated) and found == stated


def remove_folder(folder: Path) -> None:
    """Deletes a folder so that a crash half-way never leaves a part of it under its name."""
    doomed = folder.with_name(f"{_STAGED}{folder.name}")
    shutil.rmtree(doomed, ignore_errors=True)
    folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def clear_staged(parent: Path) -> None:
    """Removes what an earlier crash left half-written."""
    for path in parent.glob(f"{_STAGED}*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def find_foreign_file(
    folder: Path, ours: Collection[str], pattern: re.Pattern[str] | None = None
) -> str | None:
    """A name in the folder that is neither one of ours nor fits the pattern; None: all are ours.

    Half-written files are ours. A folder that is not there holds nothing.
    """
    if not folder.is_dir():
        return None
    for name in sorted(path.name for path in folder.iterdir()):
        is_ours = name in ours or name.startswith(_STAGED)
        fits = pattern is not None and pattern.fullmatch(name) is not None
        if not is_ours and not fits:
            return name
    return None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keeps every other process that asks for the same lock out of a folder, which is made if it is
    not there.

    The lock is the system's own, on `folder/.lock`: it ends with the process that holds it, however
    that ends. The file is removed while the lock is still held, and a process that gets a lock
    checks that its file is still the one under that name: a removal and a newcomer cannot cross.
    (Windows cannot remove an open file; there it is removed afterwards.)
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UserError(f"{folder} is a file; --out needs a folder.") from error
    file = folder / LOCK
    descriptor = _open_locked(file)
    try:
        yield
    finally:
        if sys.platform != "win32":
            file.unlink(missing_ok=True)
        os.close(descriptor)
        if sys.platform == "win32":
            with suppress(OSError):  # opened by another process meanwhile
                file.unlink()


def _open_locked(file: Path) -> int:
    """The descriptor of the open, locked file, whose text says who holds it."""
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _acquire_lock(descriptor, file.parent)
            is_in_place = os.path.samestat(os.fstat(descriptor), file.stat())
        except FileNotFoundError:  # the last holder removed it after we opened it
            is_in_place = False
        except BaseException:
            os.close(descriptor)
            raise
        if is_in_place:
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.write(descriptor, f"PID {os.getpid()} on {platform.node()}".encode())
            return descriptor
        os.close(descriptor)


def _acquire_lock(descriptor: int, folder: Path) -> None:
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, _FAR, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError) as error:
        os.lseek(descriptor, 0, os.SEEK_SET)
        holder = os.read(descriptor, 200).decode(errors="replace") or "just started"
        raise UserError(
            f"{folder} is being written by another process ({holder}). Wait for it, or choose"
            " another --out."
        ) from error
    except OSError as error:
        raise UserError(
            f"{folder} cannot be locked ({error.strerror}). Choose an --out on another file system."
        ) from error


def _flush(path: Path) -> None:
    """Makes the system write a file (or a folder's list of names) to disk."""
    if path.is_dir() and os.name == "nt":
        return  # Windows cannot flush folders
    # Windows flushes only what may be written
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
