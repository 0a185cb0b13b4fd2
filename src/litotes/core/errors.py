"""Errors are sentences that say what to do: about a mistake, a file that cannot be written, a
package that is not installed.

The plain install answers; everything else is an extra of the package, `litotes[train]` and so on. A
package is looked for, not imported: that is quick, and nothing has been done when it is missing.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path


class UserError(Exception):
    """Something the user can put right.

    The command line prints it as one line and exits with code 2; every other exception is a bug and
    exits with 1.
    """


class Stopped(UserError):
    """The user asked to stop (Ctrl-C), which is not a failure: what is done is kept, and the same
    command continues from there.
    """


class ReaderGone(BrokenPipeError):
    """The reader of our output has closed it and wants no more, which is not a mistake."""


def reason_of(error: Exception) -> str:
    """Another library's error message, its first line; the name of the error if it has none."""
    message = str(error).strip()
    return message.splitlines()[0] if message else type(error).__name__


_MAKE_ROOM = "Make room on that disk, then start the same command again."
_WRITE_ADVICE = {
    "ENOSPC": _MAKE_ROOM,
    "EDQUOT": _MAKE_ROOM,
    "EFBIG": "Raise the limit on the size of a file (ulimit -f), or write less at once.",
    "EACCES": "Choose an --out in a folder that you may write into.",
    "EPERM": "Choose an --out in a folder that you may write into.",
    "EROFS": "Choose an --out on a file system that may be written to.",
    "EIO": "Check that disk, or choose an --out on another one.",
}


def write_failure(path: Path, reason: str, code: str = "") -> UserError:
    """The error for a file or folder that cannot be written. code: the system's, such as ENOSPC."""
    advice = _WRITE_ADVICE.get(code, "Check the path given, e.g. --out.")
    return UserError(f"{path} cannot be written ({reason}). {advice}")


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turns what the system says of a failed write into a sentence that names the path."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader has gone, which is no failure of ours
    except OSError as error:
        code = errno.errorcode.get(error.errno or 0, "")
        raise write_failure(path, error.strerror or str(error), code) from error


EXTRAS: dict[str, tuple[str, ...]] = {
    "train": ("torch", "safetensors", "scipy", "matplotlib", "onnx"),
    "figures": ("matplotlib",),
    "onnx": ("onnx",),
    "translate": ("sacrebleu",),
    "hub": ("huggingface_hub",),
    "serve": ("fastapi", "uvicorn", "httptools", "prometheus_client"),
}
"""The modules that each extra of pyproject.toml brings, as far as a command needs all of them."""


def has_extra(extra: str) -> bool:
    return _first_missing(extra) is None


def require_extra(extra: str, what: str, *, instead: str = "") -> None:
    """Refuses to go on without an extra. what: begins the sentence; instead: ends it."""
    missing = _first_missing(extra)
    if missing is not None:
        raise UserError(
            f"{what} needs the package {missing}: `pip install 'litotes[{extra}]'`{instead}."
        )


def _first_missing(extra: str) -> str | None:
    return next((module for module in EXTRAS[extra] if find_spec(module) is None), None)
