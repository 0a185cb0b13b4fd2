"""Where an output may go: the one rule for everything that is written.

missing, or a plain file    it is replaced in one step (`storage`)
a link to either            its target is replaced; the link stays a link
a pipe, a character device  written to as a stream; nothing is replaced, nothing resumes
anything else               refused
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import BinaryIO

from litotes.core.errors import ReaderGone, UserError, write_errors

_CHOOSE = "Choose another --out."


@dataclass(frozen=True)
class Target:
    """Where the content of a file goes. path: without links, unless it is a stream."""

    path: Path
    is_stream: bool = False


def find_target(path: Path) -> Target:
    """Where to write what the user wants at `path`; refuses what must not be replaced."""
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
