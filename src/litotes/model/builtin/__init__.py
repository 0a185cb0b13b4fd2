"""The model that comes with the package: `litotes predict "…"` needs no other, and no network.

`model/` is a model folder like any other, kept as its difference from the bundled encoder;
docs/reference/builtin.md tells how it was made. `light/` has its ONNX file, which needs neither
torch nor the bundled encoder: `make light` writes it, and every wheel has it.
"""

from __future__ import annotations

import os
from pathlib import Path

BUILTIN = "builtin"
BUILT_IN = {
    BUILTIN: (
        "sentiment and sarcasm, learned from tweets, reviews and editorials; a first look anywhere,"
        " an expert nowhere"
    )
}
"""The names a model may be given by, and what each is."""
LIGHT_VARIABLE = "LITOTES_LIGHT"
"""Names another folder than `light/`, for a package that cannot be written to."""
_FOLDER = Path(__file__).parent / "model"


def resolve_model(model: str | Path) -> Path:
    """The folder of a built-in model's name, or the folder itself.

    Only a string is looked up: a `Path`, or "./builtin", is a folder whatever it is called.
    """
    if isinstance(model, str) and model in BUILT_IN:
        return _FOLDER
    return Path(model)


def is_builtin(folder: Path) -> bool:
    """Whether this is the folder of the built-in model."""
    return folder == _FOLDER


def light_folder() -> Path:
    """Where the ONNX file of the built-in model is, if there is one."""
    return Path(os.environ.get(LIGHT_VARIABLE) or _FOLDER.with_name("light"))
