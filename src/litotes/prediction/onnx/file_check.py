"""Is this `model.onnx` one that litotes could have written?

This is asked before ONNX Runtime is given a single byte of it. A file may come from anywhere, and
ONNX can say more than a classifier needs: data in other files, functions, operators that read
files, endless loops. So the check does not look for what is known to be bad; whatever our exporter
does not write is refused (model_check.py). What a hostile author can still make is what any weights
can be: a model that answers nonsense, or slowly.

The bytes that were checked are kept (`CheckedFile.content`) and are what is run, so that the file
cannot be exchanged in between. They are read through symbolic links, also out of the folder: the
Hub's cache is made of such links, and it is the content that is judged. Needs neither onnx nor
torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from litotes.core.errors import UserError
from litotes.prediction.onnx.model_check import ModelCheck

MOST_BYTES = (1 << 31) - 1
"""Of a file: protobuf's own bound."""
MOST_LETTERS = 300
"""Of what is wrong with a file: names in it may be long."""


@dataclass(frozen=True)
class CheckedFile:
    """A file that may be run.

    content: its bytes. facts: what it says about itself. sha256: of the bytes, if it was computed.
    """

    path: Path
    content: bytes
    facts: Mapping[str, str]
    sha256: str = ""


def check_file(path: Path) -> CheckedFile:
    """Reads a file and checks it; folder_check.py asks whether it belongs to its folder."""
    return check_content(path, read_model_bytes(path))


def check_content(path: Path, content: bytes) -> CheckedFile:
    """Checks what was read from a file, or will be written to it."""
    try:
        return CheckedFile(path, content, ModelCheck().read_facts(memoryview(content)))
    except (ValueError, RecursionError) as error:
        reason = str(error)[:MOST_LETTERS]
        raise UserError(
            f"{path} is not a file that litotes exported, or not a whole one: {reason}. Export the"
            " model again."
        ) from error


def read_model_bytes(path: Path) -> bytes:
    """A file's content; not a folder, not a pipe, and nothing too large to be a model."""
    if not path.is_file():
        raise UserError(f"There is no {path}. Make it with `litotes export`.")
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise UserError(
                f"{path} has {size} bytes, more than an ONNX file can have. Export the model again."
            )
        with path.open("rb") as stream:
            return stream.read(size + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}).") from error
