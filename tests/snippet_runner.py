"""Runs snippets as `python -W error -c PROGRAM` does, and commands as `litotes …` does, each in a
fork that has torch already.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

OUTPUT = "output.txt"
"""Where all that a fork writes on the terminal is, in the folder it runs in."""


def fork(target: Callable[..., None], folder: Path, *arguments: Any) -> int:
    """Runs target(*arguments) in the folder, in a process of its own; its exit code."""
    forks = multiprocessing.get_context("forkserver")
    process = forks.Process(target=_enter, args=(target, folder, *arguments))
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def _enter(target: Callable[..., None], folder: Path, *arguments: Any) -> None:
    os.chdir(folder)
    with Path(OUTPUT).open("wb") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    target(*arguments)


def run_program(program: str, max_pieces: int | None = None) -> None:
    """Never returns to what called it: for a fork.

    max_pieces: how much of a text encoders read, where nothing else is said.
    """
    if max_pieces is not None:
        _shorten(max_pieces)
    warnings.simplefilter("error")
    # a module without a file, as with -c: the processes that a program starts do not run it again
    main = sys.modules["__main__"] = ModuleType("__main__")
    sys.argv = ["-c"]
    exec(compile(program, "<snippet>", "exec", dont_inherit=True), main.__dict__)


def run_command(arguments: list[str]) -> None:
    """For a fork; its exit code is the command's."""
    from litotes.cli.main import main

    sys.exit(main(arguments))


def _shorten(max_pieces: int) -> None:
    from litotes.encoder import pretrained

    choose = pretrained.choose_max_pieces
    pretrained.choose_max_pieces = lambda wanted, possible: choose(wanted or max_pieces, possible)
