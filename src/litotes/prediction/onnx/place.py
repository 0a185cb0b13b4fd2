"""Where the ONNX file of a model is: in its folder, or, of the built-in model, beside it.

The built-in model's file is large and can be made from what the package has, so a source checkout
may lack it, or have one of an earlier model; neither counts as an export. A package has the file of
its current edition alone, which is no export of the earlier ones.
"""

from __future__ import annotations

from pathlib import Path

from litotes.core.json_text import parse_json, read_small_file
from litotes.model.builtin import is_builtin, light_folder
from litotes.model.folder import ModelFolder
from litotes.prediction.onnx.file_format import FILE, MADE_FROM, NOTE


def export_folder(folder: ModelFolder) -> Path:
    return light_folder() if is_builtin(folder.path) else folder.path


def has_export(folder: ModelFolder) -> bool:
    """Whether the folder has an exported file, or should have one."""
    if is_builtin(folder.path):
        return _is_made_from(folder, light_folder() / NOTE)
    is_listed = folder.manifest is not None and FILE in folder.manifest.files
    return is_listed or (folder.path / FILE).exists()


def _is_made_from(folder: ModelFolder, note: Path) -> bool:
    """Whether the note is of a file that was made from this very model."""
    if not note.is_file():
        return False
    try:
        stated = parse_json(read_small_file(note))
    except (OSError, ValueError):
        return True  # damaged, which opening it will say
    return isinstance(stated, dict) and stated.get(MADE_FROM) == folder.stated_hashes
