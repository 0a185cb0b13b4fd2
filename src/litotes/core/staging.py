"""Where files are kept until they are whole: a folder beside the target, of a random name, that
nobody else may enter.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

STAGED = ".staged-"
"""How the names of such folders begin."""
NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
"""How files of our own are opened, as far as a system knows these flags."""


@contextmanager
def staging_folder(parent: Path) -> Iterator[Path]:
    """A new folder beside the target, on the same file system, that nobody else may enter."""
    # made with mode 0700, and never where something is already
    folder = Path(mkdtemp(prefix=STAGED, dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_staged(file: Path, content: bytes) -> None:
    """Writes a new file to disk; until it is whole, nobody else may read it."""
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
    """Removes what an earlier crash left half-written in a folder where nobody else is writing.

    below: in the folders inside it as well.
    """
    pattern = f"{STAGED}*"
    for path in list(parent.rglob(pattern) if below else parent.glob(pattern)):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
