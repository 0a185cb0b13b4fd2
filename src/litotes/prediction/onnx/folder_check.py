"""Does the `model.onnx` of a model folder belong to it? Five witnesses must agree:

    export.json        the sha256 of the file, written when the file was whole
    the file's facts   the sha256 of the weights and the tokenizer it was made from, and its tasks,
                       calibration and longest text
    litotes.json       the same of the model
    the files          what is really there
    manifest.json      the sha256 of all of them

Where ONNX Runtime answers, the weights are not read; but a folder whose files are of two models is
a mistake that the user should hear of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.json_text import from_json, parse_json, read_small_file
from litotes.core.storage import sha256_of
from litotes.model.folder import DESCRIPTION, HASHED, TOKENIZER, WEIGHTS, ModelFolder
from litotes.prediction.onnx.file_check import CheckedFile, check_content, read_model_bytes
from litotes.prediction.onnx.file_format import EXITS, FILE, HASH_OF, NOTE, SEVERAL
from litotes.prediction.onnx.place import export_folder

_ADVICE = "Copy the model folder again, or export the model again."


@dataclass(frozen=True)
class CheckedExport:
    """An export that belongs to its folder, and the content of the tokenizer next to it."""

    file: CheckedFile
    tokenizer: bytes


def check_folder(folder: ModelFolder) -> CheckedExport:
    """The export in a folder, if it is whole, ours, and made from the files next to it."""
    with checked_export(folder) as export:
        return export


@contextmanager
def checked_export(folder: ModelFolder) -> Iterator[CheckedExport]:
    """The same, for what takes time as well: hashes are computed beside the block, and compared
    when it ends. What it has made must not be used before that.

    Damage is reported as such, whatever else it led to within the block.
    """
    place = export_folder(folder)
    path, note = place / FILE, place / NOTE
    content = read_model_bytes(path)
    if not note.is_file():
        raise UserError(
            f"{path} was not finished: there is no {NOTE} next to it. Export the model again."
        )
    stated, hash_of_note = _read_note(note)
    tokenizer = _read_tokenizer(folder)
    file: CheckedFile | None = None
    # hashing leaves the interpreter free
    with ThreadPoolExecutor(1) as pool:
        hashing = pool.submit(_hash_files, folder, tokenizer, content)
        try:
            file = replace(check_content(path, content), sha256=stated)
            _check_description(file, folder.description)
            yield CheckedExport(file, tokenizer)
        finally:
            hashes = hashing.result()
            if hashes.pop(FILE) != stated:
                raise UserError(
                    f"{path} is not the file that was exported: {NOTE} has another sha256. Export"
                    " the model again."
                )
            if file is not None:
                _check_origin(file, hashes)
            if place == folder.path:  # else its note alone has the sha256
                hashes |= {FILE: stated, NOTE: hash_of_note}
            for name, found in hashes.items():
                folder.check_hash(name, found)


def _hash_files(folder: ModelFolder, tokenizer: bytes, content: bytes) -> dict[str, str]:
    """The sha256 of all that the export depends on, by name. content: of the exported file."""
    hashes = {WEIGHTS: _hash_weights(folder), TOKENIZER: hashlib.sha256(tokenizer).hexdigest()}
    # the largest last: it needs the interpreter no more, which opening the file may keep
    return hashes | {FILE: hashlib.sha256(content).hexdigest()}


def _hash_weights(folder: ModelFolder) -> str:
    """Empty where there are none."""
    file = folder.path / WEIGHTS
    return sha256_of(file) if file.is_file() else ""


def _read_tokenizer(folder: ModelFolder) -> bytes:
    """Empty where there is none."""
    file = folder.path / TOKENIZER
    return file.read_bytes() if file.is_file() else b""


def _read_note(note: Path) -> tuple[str, str]:
    """The sha256 that the note states of the file, and that of the note itself."""
    try:
        content = read_small_file(note)
        stated = parse_json(content)
        if not isinstance(stated, dict):
            raise ValueError("not a table")
    except (OSError, ValueError) as error:
        raise UserError(f"{note}: not readable ({error}). {_ADVICE}") from error
    return str(stated.get("sha256")), hashlib.sha256(content).hexdigest()


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
    for name in (EXITS, SEVERAL):
        stated = _fact(file, name) if name in file.facts else None
        if stated != description.get(name):
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
