"""The folder of a run: is it free, does it hold this very run already, or something else?

Everything is checked before work starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from litotes.core.errors import UserError
from litotes.core.storage import LOCK, MANIFEST, find_foreign_file
from litotes.model.folder import DESCRIPTION, TRAINED_TEXTS, is_model_folder
from litotes.training.checkpoints import Checkpoints

FIRST_FILES = {"recipe.json", "history.jsonl", "checkpoints", "tensorboard", "distillation", LOCK}
"""What a run that was killed before its first checkpoint may have left."""

LAST_FILES = {
    "scores.json",
    "model.safetensors",
    "tokenizer.json",
    "README.md",
    "config.json",
    "translations.jsonl",
    TRAINED_TEXTS,
    MANIFEST,
}
"""What a run that was killed in its very last moments may have left as well: litotes.json is
written after these.
"""


class _Trained(Protocol):
    @property
    def facts(self) -> Mapping[str, Any]: ...


AnyModel = TypeVar("AnyModel", bound=_Trained)


def find_finished_model(
    folder: Path,
    key: str,
    checkpoints: Checkpoints,
    *,
    resume: bool,
    load: Callable[[Path], AnyModel],
) -> AnyModel | None:
    """The model, if the folder already holds the run of this key. load: reads such a model."""
    found = checkpoints.stored_key()
    model: AnyModel | None = None
    if is_model_folder(folder):
        if not resume:
            raise UserError(
                f"{folder} already holds a trained model. Choose another --out, or take it as it is"
                " with --resume."
            )
        model = load(folder)
        found = str(model.facts.get("key"))
    elif found is not None and not resume:
        raise UserError(
            f"{folder} holds a run that was stopped. Go on with --resume, or choose another --out."
        )
    elif found is None and _holds_foreign_files(folder):
        raise UserError(
            f"{folder} holds files that are not of a run. Choose an empty or a new folder for"
            " --out."
        )
    if found is not None and found != key:
        raise UserError(
            f"{folder} holds a run of another recipe or on other data. Choose another --out, or"
            " start it as it was started."
        )
    return model


def check_parts_folder(folder: Path, tasks: Sequence[str]) -> None:
    """What lies in the folder of a run per task must be of such a run."""
    ours = {*tasks, DESCRIPTION, MANIFEST, "recipe.json", "scores.json"}
    is_other = folder.exists() and not folder.is_dir()
    if is_other or find_foreign_file(folder, ours) is not None:
        raise UserError(
            f"{folder} holds files that are not of a run with a model per task. Choose an empty or"
            " a new folder for --out."
        )


def _holds_foreign_files(folder: Path) -> bool:
    has_begun = (folder / "recipe.json").exists()
    ours = FIRST_FILES | LAST_FILES if has_begun else FIRST_FILES
    return find_foreign_file(folder, ours) is not None
