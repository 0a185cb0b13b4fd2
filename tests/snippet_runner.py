"""Runs one program after another as `python -W error -c PROGRAM` would, without importing torch
each time.

    python -W error snippet_runner.py

Reads one JSON object a line, `{"folder": …, "program": …}`, and answers each with one line,
`{"code": …, "output": …}`. Every program runs in a fork of its own, in its folder, as `__main__`.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from importlib import import_module
from pathlib import Path
from types import ModuleType

IMPORTED_ONCE = (
    "litotes.bench",
    "litotes.export.export",
    "litotes.inside.analyze",
    "litotes.predict.predictor",
    "litotes.service",
    "litotes.study.execute",
    "litotes.training.run",
)
"""What most programs need. None of it starts a thread, so that a fork is a whole process."""


def run_apart(folder: Path, program: str) -> tuple[int, str]:
    """The exit code of the program, and all that it wrote."""
    output = folder / "output.txt"
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        with output.open("wb") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        os._exit(run(program))
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), output.read_text("utf-8", errors="replace")


def run(program: str) -> int:
    # a module without a file, as with -c: the processes a program starts do not run it again
    main = sys.modules["__main__"] = ModuleType("__main__")
    sys.path[0], sys.argv = "", ["-c"]
    try:
        exec(compile(program, "<snippet>", "exec", dont_inherit=True), main.__dict__)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def serve() -> None:
    for name in IMPORTED_ONCE:
        import_module(name)
    for line in sys.stdin:
        asked = json.loads(line)
        code, output = run_apart(Path(asked["folder"]), asked["program"])
        sys.stdout.write(json.dumps({"code": code, "output": output}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
