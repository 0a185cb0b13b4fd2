"""A model folder that gains bounds for "unsure", and copies of folders that must stay as they are.

The manifest is written before the description, as by a training: a folder whose description has
been replaced half-way is refused, and never answers with other bounds than those it was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.storage import MANIFEST, free_folder, json_bytes, write_bytes
from litotes.model.builtin import is_builtin
from litotes.model.folder import DESCRIPTION, ModelFolder, open_model
from litotes.model.label_sets import LabelSets


def write_label_sets(folder: ModelFolder, label_sets: Mapping[str, LabelSets]) -> None:
    """Replaces the bounds of a folder that holds weights; with none, it answers as before."""
    description = dict(folder.description)
    description.pop("unsure", None)
    if label_sets:
        description["unsure"] = {task: sets.as_json() for task, sets in label_sets.items()}
    content = json_bytes(description)
    if folder.manifest is not None:
        folder.manifest.with_files({DESCRIPTION: content}).write(folder.path)
    write_bytes(folder.path / DESCRIPTION, content)


@contextmanager
def whole_copy(
    model: str | Path | ModelFolder, out: Path | None, *, more: Sequence[Path] = ()
) -> Iterator[ModelFolder]:
    """The folder itself, or a copy with all of its files; what fails leaves no copy behind.

    more: files from elsewhere that the copy gains.
    """
    folder = open_model(model)
    if out is None:
        if is_builtin(folder.path):
            raise UserError(
                "The bounds are written into the folder of the model, and the built-in one is not"
                " yours: copy it by --out FOLDER."
            )
        yield folder
        return
    with free_folder(out):
        for part in folder.parts:
            _copy_files(part.path, out / part.path.relative_to(folder.path))
        _copy_files(folder.path, out)
        contents = {file.name: file.read_bytes() for file in more}
        for name, content in contents.items():
            write_bytes(out / name, content)
        if folder.manifest is not None and contents:
            folder.manifest.with_files(contents).write(out)
        yield open_model(out)


def _copy_files(folder: Path, out: Path) -> None:
    """With the hashes as they are stated: damage stays to be noticed in the copy."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    last = (MANIFEST, DESCRIPTION)  # a folder that has them is whole
    for file in sorted(files, key=lambda file: file.name in last):
        if not file.name.startswith("."):
            write_bytes(out / file.name, file.read_bytes())
