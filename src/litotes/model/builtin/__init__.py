"""The model that comes with the package: `litotes predict "…"` needs no other, and no network.

`model/` is a model folder like any other, kept as its difference from the bundled encoder;
docs/reference/builtin.md tells how it was made.
"""

from __future__ import annotations

from pathlib import Path

BUILTIN = "builtin"
BUILT_IN = {
    BUILTIN: (
        "sentiment and sarcasm, learned from tweets, reviews and editorials; a first look anywhere,"
        " an expert nowhere"
    )
}
"""The names a model may be given by, and what each is."""


def resolve_model(model: str | Path) -> Path:
    """The folder of a built-in model's name, or the folder itself.

    Only a string is looked up: a `Path`, or "./builtin", is a folder whatever it is called.
    """
    if isinstance(model, str) and model in BUILT_IN:
        return Path(__file__).parent / "model"
    return Path(model)
