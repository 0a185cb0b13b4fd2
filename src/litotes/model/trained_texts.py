"""Which texts a model has learned from or been chosen by: a short hash of each, in its folder.

A model must not be scored on such texts without a word, whatever file they come in. The hashes tell
whether a text was among them and nothing else about it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from litotes.core.storage import write_text
from litotes.core.values import KINDS, Example
from litotes.data.keys import example_key
from litotes.model.folder import ModelFolder, open_model

TRAINED_TEXTS = "trained_on.txt"

_N_DIGITS = 12  # of 100,000 texts, one in three billion others is taken for one of them


def text_hash(example: Example) -> str:
    """The same for texts that count as the same (`example_key`)."""
    return hashlib.sha256(example_key(example).encode()).hexdigest()[:_N_DIGITS]


def write_trained_texts(
    folder: Path, examples: Iterable[Example], *, more: Iterable[str] = ()
) -> None:
    """Sorted, so that the order of the data is not told. more: hashes of other such texts."""
    hashes = sorted({*map(text_hash, examples), *more})
    write_text(folder / TRAINED_TEXTS, "".join(f"{one}\n" for one in hashes))


def read_trained_texts(model: str | Path | ModelFolder) -> frozenset[str] | None:
    """The hashes that all models of a folder state; None: one of them states none."""
    hashes: set[str] = set()
    for part in open_model(model, kinds=tuple(KINDS)).models:
        file = part.path / TRAINED_TEXTS
        if not file.is_file():  # an earlier version made it, or no training
            return None
        content = file.read_bytes()
        part.check_hash(TRAINED_TEXTS, hashlib.sha256(content).hexdigest())
        hashes.update(content.decode("ascii", "replace").split())
    return frozenset(hashes)
