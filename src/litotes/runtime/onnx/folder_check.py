"""Does the `model.onnx` of a model folder belong to it? Four witnesses must agree:

    export.json        the sha256 of the file, written when the file was whole
    the file's facts   the sha256 of the weights and the tokenizer it was made from, and its tasks,
                       calibration and longest text
    litotes.json       the same of the model
    the files          what is really there

Where ONNX Runtime answers, the weights are not read; but a folder whose files are of two models is
a mistake that the user should hear of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from litotes.core.errors import UserError
from litotes.core.json_text import from_json
from litotes.core.storage import read_json_table, sha256_of
from litotes.model.folder import DESCRIPTION, HASHED, ModelFolder
from litotes.runtime.onnx.file_check import CheckedFile, check_content, read_model_bytes
from litotes.runtime.onnx.file_format import FILE, HASH_OF, NOTE

_ADVICE = "Copy the model folder again, or export the model again."


def check_folder(folder: ModelFolder) -> CheckedFile:
    """The export in a folder, if it is whole, ours, and made from the files next to it."""
    path, note = folder.path / FILE, folder.path / NOTE
    content = read_model_bytes(path)
    if not note.is_file():
        raise UserError(
            f"{path} was not finished: there is no {NOTE} next to it. Export the model again."
        )
    present = [name for name in HASHED if (folder.path / name).is_file()]
    # hashing leaves the interpreter free, so that two large files take the time of one
    with ThreadPoolExecutor(len(HASHED)) as pool:
        hashes = pool.map(sha256_of, (folder.path / name for name in present))
        sha256 = hashlib.sha256(content).hexdigest()
        if sha256 != read_json_table(note, advice=_ADVICE).get("sha256"):
            raise UserError(
                f"{path} is not the file that was exported: {NOTE} has another sha256. Export the"
                " model again."
            )
        file = replace(check_content(path, content), sha256=sha256)
        _check_description(file, folder.description)
        _check_origin(file, dict(zip(present, hashes, strict=True)))
    return file


def _check_origin(file: CheckedFile, hashes: Mapping[str, str]) -> None:
    """hashes: those of the files next to it."""
    for name in HASHED:
        if f"{HASH_OF}{name}" not in file.facts:
            raise UserError(
                f"{file.path} does not say which {name} it was made from. Export the model again."
            )
        if file.facts[f"{HASH_OF}{name}"] != hashes.get(name):
            raise UserError(
                f"{file.path} was not made from the {name} next to it. Export the model again."
            )


def _check_description(file: CheckedFile, description: Mapping[str, Any]) -> None:
    for name in ("tasks", "calibration"):
        if name not in description or _fact(file, name) != description[name]:
            raise UserError(
                f"{file.path} and the {DESCRIPTION} next to it disagree about {name}. Export the"
                " model again."
            )
    longest = description.get("max_pieces")
    if not isinstance(longest, int) or not 1 <= longest <= int(file.facts["max_pieces"]):
        raise UserError(
            f"{file.path} reads {file.facts['max_pieces']} pieces, the {DESCRIPTION} next to it"
            f" promises {longest}. Export the model again."
        )


def _fact(file: CheckedFile, name: str) -> Any:
    try:
        return from_json(file.facts[name])
    except (KeyError, ValueError) as error:
        raise UserError(f"{file.path} does not say its {name}. Export the model again.") from error
