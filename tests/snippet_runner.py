"""Runs the snippets of a page as `python -W error -c PROGRAM` does."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from types import ModuleType

OUTPUT = "output.txt"


def run_program(program: str, folder: Path) -> None:
    """Never returns to what called it: for a process of its own.

    folder: where it runs; all that it writes on the terminal is in output.txt there.
    """
    os.chdir(folder)
    with Path(OUTPUT).open("wb") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    warnings.simplefilter("error")
    # a module without a file, as with -c: the processes that a program starts do not run it again
    main = sys.modules["__main__"] = ModuleType("__main__")
    sys.argv = ["-c"]
    exec(compile(program, "<snippet>", "exec", dont_inherit=True), main.__dict__)
