"""The folder of a run: is it free, does it hold this very run already, or something else?

Everything is checked before work starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from litotes.core.errors import UserError
from litotes.core.storage import find_foreign_file
from litotes.model.folder import is_model_folder
from litotes.training.checkpoints import Checkpoints
from litotes.training.course import FIRST_FILES, LAST_FILES


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


def _holds_foreign_files(folder: Path) -> bool:
    has_begun = (folder / "recipe.json").exists()
    ours = FIRST_FILES | LAST_FILES if has_begun else FIRST_FILES
    return find_foreign_file(folder, ours) is not None
