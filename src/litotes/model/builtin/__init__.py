"""The model that comes with the package: `litotes predict "…"` needs no other, and no network.

    builtin      the current edition
    builtin@1    an edition by its number; an earlier one stays for a release

`edition_1/` and its like are model folders like any other, kept as their differences from the
bundled encoder; docs/reference/builtin.md tells how they were made. `light/` has the ONNX file of
the current edition, which needs neither torch nor the bundled encoder: `make light` writes it, and
every wheel has it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from litotes.core.errors import UserError

BUILTIN = "builtin"
EDITIONS: tuple[int, ...] = (5,)
"""Those that the package has, each in its folder; the last is the current one, `builtin`."""
LIGHT_VARIABLE = "LITOTES_LIGHT"
"""Names another folder than `light/`, for a package that cannot be written to."""
_HERE = Path(__file__).parent
_NUMBERED = re.compile(rf"{BUILTIN}@[^/\\]*")


def built_in_models() -> dict[str, str]:
    """The names a model may be given by, and what each is."""
    about = (
        "sentiment and sarcasm, learned from tweets, reviews, editorials and texts written for it;"
        " a first look anywhere, an expert nowhere"
    )
    *earlier, current = EDITIONS
    models = {BUILTIN: about}
    models |= {_name(edition): "an earlier edition, run by torch" for edition in earlier}
    return models | {_name(current): f"the same: {BUILTIN} is edition {current}"}


def resolve_model(model: str | Path) -> Path:
    """The folder of a built-in model's name, or the folder itself.

    Only a string is looked up: a `Path`, or "./builtin", is a folder whatever it is called.
    """
    if not isinstance(model, str):
        return Path(model)
    if model == BUILTIN:
        return edition_folder(EDITIONS[-1])
    for edition in EDITIONS:
        if model == _name(edition):
            return edition_folder(edition)
    if _NUMBERED.fullmatch(model):
        raise UserError(
            f"There is no built-in model {model}: known are {', '.join(built_in_models())}; a"
            f" folder of that name is ./{model}."
        )
    return Path(model)


def edition_folder(edition: int) -> Path:
    """Locates the files of an edition, which may not be there yet."""
    return _HERE / f"edition_{edition}"


def is_builtin(folder: Path) -> bool:
    """Tells whether this is the folder of a built-in model, of any edition."""
    return folder in map(edition_folder, EDITIONS)


def name_of(folder: Path) -> str:
    """Names a model in a sentence: the built-in one by its name, any other by its path."""
    names = (name for name in built_in_models() if folder == resolve_model(name))
    return next(names, str(folder))


def light_folder() -> Path:
    """Locates the ONNX file of a built-in model, if there is one."""
    return Path(os.environ.get(LIGHT_VARIABLE) or _HERE / "light")


def _name(edition: int) -> str:
    return f"{BUILTIN}@{edition}"
