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


def located(model: str | Path) -> Path:
    """The model folder: that of a built-in name, or the folder itself (write ./builtin for a folder
    of that name).
    """
    return Path(__file__).parent / "model" if str(model) in BUILT_IN else Path(model)
