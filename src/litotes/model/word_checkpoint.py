"""The folder of a model that answers words: that of a classifier (checkpoint.py) with a kind, one
task, and how texts are cut into words for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors.torch import save as to_bytes

from litotes.core.errors import reason_of
from litotes.core.storage import MANIFEST, make_folder, write_bytes, write_json, write_text
from litotes.core.text import one_line
from litotes.core.values import WORD_KINDS
from litotes.core.version import __version__
from litotes.encoder.config import config_from_spec, spec_from_json
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.model.checkpoint import write_description
from litotes.model.description import FORMAT
from litotes.model.folder import (
    DESCRIPTION,
    TOKENIZER,
    WEIGHTS,
    ModelFolder,
    open_model,
    read_files,
)
from litotes.model.saved_tensors import (
    load_heads,
    saved_encoder,
    saved_tensors,
    saved_tokenizer,
    tensors_to_save,
)
from litotes.model.word_model import WordModel


@dataclass(frozen=True)
class SavedWordModel:
    """A model of words with its tokenizer, and what is known about it. cutting: how texts are cut
    into words for it (`data/words/cutting.py`).
    """

    network: WordModel
    tokenizer: PieceTokenizer
    base: str
    base_sha256: str | None
    cutting: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        network = self.network
        return one_line(self, base=self.base, kind=network.kind, task=network.task.name)


def save_word_model(model: SavedWordModel, folder: Path, *, card: str) -> None:
    """Writes the model folder; `litotes.json` comes last, so a folder that has it is whole."""
    make_folder(folder)
    for name in (DESCRIPTION, MANIFEST):
        (folder / name).unlink(missing_ok=True)
    network = model.network
    tensors, omits_base = tensors_to_save(
        network.encoder, network.heads, base_name=model.base, base_sha256=model.base_sha256
    )
    write_bytes(folder / WEIGHTS, to_bytes(tensors, metadata={"format": "pt"}))
    write_text(folder / TOKENIZER, model.tokenizer.to_json())
    write_text(folder / "README.md", card)
    spec = network.encoder.spec
    if not omits_base and spec.is_plain:  # all that transformers can read
        write_json(folder / "config.json", config_from_spec(spec))
    description = {
        "format": FORMAT,
        "litotes": __version__,
        "kind": network.kind,
        "tasks": {network.task.name: list(network.task.labels)},
        "words": model.cutting,
        "dropout": network.dropout,
        "max_pieces": model.tokenizer.max_pieces,
        "encoder": spec.as_json(),
        "base": {"name": model.base, "sha256": model.base_sha256, "omitted": omits_base},
        "facts": dict(model.facts),
    }
    write_description(folder, description)


def load_word_model(model: str | Path | ModelFolder) -> SavedWordModel:
    """Reads a model folder, in evaluation mode; every file is checked against its hash first."""
    folder = open_model(model, kinds=WORD_KINDS)
    try:
        return _load(folder)
    except (ArithmeticError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise folder.damaged(reason_of(error)) from error


def _load(folder: ModelFolder) -> SavedWordModel:
    files = read_files([folder])
    description = folder.description
    spec = spec_from_json(description["encoder"])
    tensors = saved_tensors(folder, files)
    encoder = saved_encoder(folder, spec, tensors)
    (task,) = folder.tasks.values()
    network = WordModel(encoder, task, kind=folder.kind, dropout=description["dropout"])
    load_heads(network.heads, tensors)
    return SavedWordModel(
        network.eval(),
        saved_tokenizer(folder, spec, files),
        description["base"]["name"],
        description["base"]["sha256"],
        description["words"],
        description["facts"],
    )
