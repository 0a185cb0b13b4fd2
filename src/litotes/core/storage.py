"""Files that are complete or not there: staged next to their place, flushed to disk, then renamed.

They are staged in a folder of a random name that nobody else may enter. What may be replaced, and
what is written to as a stream, is decided by `targets`.

A folder carries a `manifest.json` with the sha256 of every file, so that a reader can tell a
complete folder from what a crash left. A folder that is written for hours is locked meanwhile, so
that a second process cannot write into it as well.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import stat
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError, write_errors
from litotes.core.json_text import from_json, to_json
from litotes.core.staging import NO_LINKS, STAGED, clear_staged, staging_folder, write_staged
from litotes.core.targets import find_target, make_folder, new_folder, open_stream

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

MANIFEST = "manifest.json"
LOCK = ".lock"
MOST_JSON_BYTES = 1 << 26
"""Of a file that is read whole: a description may hold a recipe and scores."""
_FAR = 1 << 30  # Windows locks bytes, not files: one far behind the text, which stays readable


def sha256_of(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_bytes(file: Path, content: bytes) -> None:
    """Replaces the file in one step, or writes to the pipe or device that is there."""
    target = find_target(file)
    with write_errors(file):
        if target.is_stream:
            with open_stream(file) as stream:
                stream.write(content)
            return
        folder = target.path.parent
        make_folder(folder)
        with staging_folder(folder) as staging:
            staged = staging / target.path.name
            write_staged(staged, content)
            staged.replace(target.path)
        _flush(folder)


def write_text(file: Path, content: str) -> None:
    write_bytes(file, content.encode())


def write_json(file: Path, content: Any) -> None:
    write_bytes(file, json_bytes(content))


def json_bytes(content: Any) -> bytes:
    """What `write_json` writes."""
    return (to_json(content, indent=2) + "\n").encode()


def read_small_file(file: Path) -> bytes:
    """The content of a file that is kept whole; one that is too large is a ValueError."""
    n_bytes = file.stat().st_size
    if n_bytes > MOST_JSON_BYTES:
        raise ValueError(f"{n_bytes} bytes")
    return file.read_bytes()


def parse_json(content: bytes) -> Any:
    """What is not JSON is a ValueError."""
    return from_json(content.decode("utf-8"))


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
    make_folder(folder.parent)
    with write_errors(folder), staging_folder(folder.parent) as staging:
        staged = staging / folder.name
        staged.mkdir()
        fill(staged)
        hashes = {path.name: sha256_of(path) for path in sorted(staged.iterdir())}
        (staged / MANIFEST).write_text(to_json(hashes, indent=2), "utf-8")
        for path in staged.iterdir():
            _flush(path)
        _flush(staged)
        staged.rename(folder)
        _flush(folder.parent)


def is_complete(folder: Path) -> bool:
    """Whether every file of the manifest is there with the content it was written with."""
    try:
        stated = load_json(folder / MANIFEST)
        if any(Path(name).name != name for name in stated):  # a file elsewhere
            return False
        found = {name: sha256_of(folder / name) for name in stated}
    except (OSError, ValueError, TypeError):
        return False
    return bool(stated) and found == stated


def remove_folder(folder: Path) -> None:
    """Deletes a folder so that a crash half-way never leaves a part of it under its name."""
    with write_errors(folder), staging_folder(folder.parent) as staging:
        folder.rename(staging / folder.name)


def find_foreign_file(
    folder: Path, ours: Collection[str], pattern: re.Pattern[str] | None = None
) -> str | None:
    """A name in the folder that is neither one of ours nor fits the pattern; None: all are ours.

    Half-written files are ours. A folder that is not there holds nothing.
    """
    if not folder.is_dir():
        return None
    for name in sorted(path.name for path in folder.iterdir()):
        is_ours = name in ours or name.startswith(STAGED)
        fits = pattern is not None and pattern.fullmatch(name) is not None
        if not is_ours and not fits:
            return name
    return None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keeps every other process that asks for the same lock out of a folder, which is made if it is
    not there, and removed if nothing was written into it. What a crash left half-written in it is
    removed.

    The lock is the system's own, on `folder/.lock`: it ends with the process that holds it, however
    that ends. The file is removed while the lock is still held, and a process that gets a lock
    checks that its file is still the one under that name: a removal and a newcomer cannot cross.
    (Windows cannot remove an open file; there it is removed afterwards.)
    """
    with new_folder(folder):
        file = folder / LOCK
        descriptor = _open_locked(file)
        try:
            clear_staged(folder)
            yield
        finally:
            if sys.platform != "win32":
                file.unlink(missing_ok=True)
            os.close(descriptor)
            if sys.platform == "win32":
                with suppress(OSError):  # opened by another process meanwhile
                    file.unlink()


def open_own_file(file: Path, flags: int) -> int:
    """The descriptor of a plain file of ours in a folder that others may know: created if it is not
    there, and refused where somebody else has put a link or another file in its place.
    """
    with write_errors(file):
        if file.is_symlink():
            raise UserError(_not_ours(file, "is a link"))
        descriptor = os.open(file, flags | os.O_CREAT | NO_LINKS, 0o666)
    found = os.fstat(descriptor)
    is_plain = stat.S_ISREG(found.st_mode) and found.st_nlink <= 1
    if not is_plain or not _is_owned(file, found):
        os.close(descriptor)
        reason = "belongs to another user" if is_plain else "is no plain file, or has two names"
        raise UserError(_not_ours(file, reason))
    return descriptor


def make_own_folder(folder: Path) -> None:
    """Makes a folder that only we may enter, under a name that others may know; refused where
    somebody else has put a link or a folder there.
    """
    if folder.is_symlink():
        raise UserError(_not_ours(folder, "is a link"))
    make_folder(folder, mode=0o700)
    if not _is_owned(folder, folder.stat()):
        raise UserError(_not_ours(folder, "belongs to another user"))


def _is_owned(path: Path, found: os.stat_result) -> bool:
    # a network file system may give what we make to another user, then all of it to the same
    return os.name == "nt" or found.st_uid in (os.geteuid(), path.parent.stat().st_uid)


def _not_ours(path: Path, reason: str) -> str:
    return f"{path} {reason}, where litotes keeps its own. Remove it, or choose another --out."


def _open_locked(file: Path) -> int:
    """The descriptor of the open, locked file, whose text says who holds it."""
    while True:
        descriptor = open_own_file(file, os.O_RDWR)
        try:
            _acquire_lock(descriptor, file.parent)
            is_in_place = os.path.samestat(os.fstat(descriptor), file.stat())
        except FileNotFoundError:  # the last holder removed it after we opened it
            is_in_place = False
        except BaseException:
            os.close(descriptor)
            raise
        if is_in_place:
            with write_errors(file):
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
