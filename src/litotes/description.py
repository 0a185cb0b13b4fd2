"""`litotes.json` says what a model folder holds. Reading it needs no torch: a model that answers without torch is there at once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from litotes import __version__
from litotes.errors import UserError

FORMAT = 1
DESCRIPTION = "litotes.json"
HASHED = ("model.safetensors", "tokenizer.json")
"""The files whose sha256 stands in it."""


def read_description(folder: Path) -> dict[str, Any]:
    file = folder / DESCRIPTION
    if not file.is_file():
        raise UserError(f"{folder} is not a model folder: there is no {DESCRIPTION}. Make one with `litotes train RECIPE --out {folder}`.")
    try:
        description = json.loads(file.read_text("utf-8"))
        version = description["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{file}: not readable ({error}). Copy the model folder again, or train anew.") from error
    if version != FORMAT:
        raise UserError(f"{file}: format {version}; this litotes ({__version__}) reads format {FORMAT}. Install the litotes that wrote it.")
    return dict(description)


def folders_of(folder: Path) -> tuple[Path, ...]:
    """The folder itself, or those of its parts: a folder may hold a model per task."""
    parts = read_description(folder).get("parts")
    if parts is None:
        return (folder,)
    if not isinstance(parts, list) or not all(isinstance(part, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", part) for part in parts):
        raise UserError(f"{folder / DESCRIPTION}: damaged (its parts are no names). Copy the model folder again, or train anew.")
    return tuple(folder / part for part in parts)
