"""The places where output may go, and files that are complete or not there.

missing, or a plain file    replaced in one step: staged next to it, flushed to disk, then renamed
a link to either            its target is replaced; the link stays a link
a pipe, a character device  written to as a stream; nothing is replaced, nothing resumes
anything else               refused

Files are staged in a folder of a random name that no one else may enter. A folder carries a
`manifest.json` with the sha256 of every file, so that a reader can tell a complete folder from what
a crash left. A folder that is written for hours is locked meanwhile, so that a second process
cannot write into it as well.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import shutil
import stat
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, BinaryIO

from litotes.core.errors import ReaderGone, UserError, write_errors
from litotes.core.json_text import load_json, to_json

_CHOOSE = "Choose another --out."


@dataclass(frozen=True)
class Target:
    """The place where the content of a file goes. path: without links, unless it is a stream."""

    path: Path
    is_stream: bool = False


def find_target(path: Path) -> Target:
    """Finds where to write what the user wants at `path`; refuses what must not be replaced."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return Target(_follow_dangling(path))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UserError(
                f"{path} is a link that leads back to itself. Remove it, or choose another --out."
            ) from error
        with write_errors(path):
            raise
    if stat.S_ISREG(found.st_mode):
        return Target(_follow(path, found))
    if stat.S_ISCHR(found.st_mode) or stat.S_ISFIFO(found.st_mode):
        return Target(path, is_stream=True)
    if stat.S_ISDIR(found.st_mode):
        raise UserError(f"--out needs the name of a file; {path} is a folder.")
    kind = "a block device" if stat.S_ISBLK(found.st_mode) else "a socket"
    raise UserError(f"{path} is {kind}, which no file may replace. {_CHOOSE}")


@contextmanager
def open_stream(path: Path) -> Iterator[BinaryIO]:
    """A pipe or character device, opened to be written to; never created."""
    try:
        with open(path, "wb", opener=_open_existing) as stream:
            mode = os.fstat(stream.fileno()).st_mode
            if not (stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):
                raise UserError(f"{path} is no longer the pipe or device that it was. {_CHOOSE}")
            yield stream
    except BrokenPipeError as error:
        raise ReaderGone from error


def make_folder(folder: Path, *, mode: int = 0o777) -> None:
    """Makes a folder, and those it lies in, unless it is there. mode: of the folder itself."""
    with write_errors(folder):
        try:
            folder.mkdir(mode, parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            obstacle = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
            kind = "a file" if obstacle.is_file() else "not a folder"
            raise UserError(f"{obstacle} is {kind}; --out needs a folder.") from error


@contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """Makes a folder, and those it lies in; those that are still empty at the end, because what
    should have filled them failed, are removed.
    """
    made = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    make_folder(folder)
    try:
        yield
    finally:
        for path in made:
            with suppress(OSError):  # it is not empty, or already gone
                path.rmdir()


def check_is_free(folder: Path) -> None:
    """Refuses a folder that holds something already."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not empty. Choose a new folder for --out.")


@contextmanager
def free_folder(folder: Path) -> Iterator[None]:
    """A folder to be filled: refused unless it is free; what fails leaves nothing of it behind."""
    check_is_free(folder)
    with new_folder(folder.parent):
        try:
            yield
        except BaseException:
            rmtree(folder.resolve(), ignore_errors=True)
            raise


def _open_existing(path: str, flags: int) -> int:
    return os.open(path, flags & ~(os.O_CREAT | os.O_TRUNC))


def _follow(path: Path, found: os.stat_result) -> Path:
    """The plain file itself, where the path may lead to it by links."""
    if not path.is_symlink():
        return path
    followed = Path(os.path.realpath(path))
    try:
        is_same = os.path.samestat(followed.stat(), found)
    except OSError:
        is_same = False
    if not is_same:  # an open file whose name is gone
        raise UserError(f"{path} leads to a file that has no name of its own. {_CHOOSE}")
    return followed


def _follow_dangling(path: Path) -> Path:
    """The path itself, or where a link leads that has no target yet."""
    if not path.is_symlink():
        return path
    followed = Path(os.path.realpath(path))
    if not followed.parent.is_dir():
        raise UserError(
            f"{path} is a link into a folder that is not there ({followed.parent}). Make that"
            " folder, or choose another --out."
        )
    return followed


STAGED = ".staged-"
"""The prefix in names of such folders."""
NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
"""The flags by which our own files are opened, where a system knows them."""


@contextmanager
def staging_folder(parent: Path) -> Iterator[Path]:
    """Makes a folder next to the target, on the same file system, that no one else may enter."""
    # made with mode 0700, and never where something is already
    folder = Path(mkdtemp(prefix=STAGED, dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_staged(file: Path, content: bytes) -> None:
    """Writes a new file to disk; until it is whole, no one else may read it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINKS
    with open(os.open(file, flags, 0o666), "wb") as stream:
        usual = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
        _set_mode(stream.fileno(), 0o600)
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
        _set_mode(stream.fileno(), usual)


def _set_mode(descriptor: int, mode: int) -> None:
    if sys.platform != "win32":
        with suppress(PermissionError):  # a file system without modes
            os.fchmod(descriptor, mode)


def clear_staged(parent: Path, *, below: bool = False) -> None:
    """Removes what an earlier crash left half-written in a folder where no one else is writing.

    below: in the folders inside it as well.
    """
    pattern = f"{STAGED}*"
    for path in list(parent.rglob(pattern) if below else parent.glob(pattern)):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

MANIFEST = "manifest.json"
LOCK = ".lock"
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
    """Encodes content as `write_json` writes it."""
    return (to_json(content, indent=2) + "\n").encode()


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
    """Tells whether every file of the manifest is there with the content it was written with."""
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


SWITCH = "LITOTES_HOME"


def data_folder() -> Path:
    """`$LITOTES_HOME`, or `litotes` where the system keeps a user's data; it need not be there."""
    if chosen := os.environ.get(SWITCH):
        return Path(chosen).expanduser()
    if os.name == "nt" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local) / "litotes"
    data = Path(os.environ.get("XDG_DATA_HOME", ""))
    # the XDG rules tell programs to ignore a relative path
    return (data if data.is_absolute() else _home() / ".local" / "share") / "litotes"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise UserError(
            f"This user has no home folder. Set {SWITCH} to a folder that may be written into."
        ) from error
