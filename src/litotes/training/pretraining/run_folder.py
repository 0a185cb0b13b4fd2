"""The folder of a pretraining, which ends as an encoder's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors.torch import save as to_bytes

from litotes.core.errors import UserError
from litotes.core.json_text import read_as
from litotes.core.storage import (
    LOCK,
    find_foreign_file,
    is_complete,
    write_bytes,
    write_json,
    write_text,
)
from litotes.encoder.config import config_from_spec
from litotes.encoder.pretrained import tokenizer_config
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.training.checkpoints import Checkpoints
from litotes.training.pretraining.language_model import LanguageModel, family_tensors
from litotes.training.pretraining.masking import find_mask
from litotes.training.pretraining.output_names import architecture_of

TEXTS, SCORES = "texts", "scores.json"
_FILES = {
    "recipe.json",
    "history.jsonl",
    "checkpoints",
    "tensorboard",
    TEXTS,
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "perplexity.svg",
    SCORES,
    LOCK,
}


def find_finished(folder: Path, key: str, *, resume: bool) -> dict[str, Any] | None:
    """What `scores.json` says, if the folder holds the finished run of this key; refuses a folder
    that holds anything but this run.
    """
    if (folder / SCORES).is_file():
        if not resume:
            raise UserError(
                f"{folder} already holds a pretrained encoder. Choose another --out, or take it as"
                " it is with --resume."
            )
        content = read_as(folder / SCORES, dict[str, Any], advice="Choose another --out.")
        _check_key(folder, str(content.get("key")), key)
        return content
    foreign = find_foreign_file(folder, _FILES)
    if foreign is not None:
        raise UserError(
            f"{folder} holds files that are not of a pretraining ({foreign}). Choose an empty or a"
            " new folder for --out."
        )
    found = Checkpoints(folder / "checkpoints", key="").stored_key()
    if found is not None and not resume:
        raise UserError(
            f"{folder} holds a run that was stopped. Go on with --resume, or choose another --out."
        )
    if found is not None:
        _check_key(folder, found.partition("-")[0], key)
    return None


def _check_key(folder: Path, found: str, key: str) -> None:
    if found != key:
        raise UserError(
            f"{folder} holds a run of another recipe. Choose another --out, or start it as it was"
            " started."
        )


def has_texts(folder: Path) -> bool:
    """Whether the texts of a stopped run are there, whole.

    Only those of a run that has a checkpoint are known to be of this recipe.
    """
    has_begun = Checkpoints(folder / "checkpoints", key="").stored_key() is not None
    return has_begun and is_complete(folder / TEXTS)


def check_texts(folder: Path, key: str) -> None:
    """Refuses to go on with texts that are not those of the checkpoints."""
    found = Checkpoints(folder / "checkpoints", key=key).stored_key()
    if found is not None and found != key:
        raise UserError(
            f"{folder}: the texts are no longer those that the run began with, and its copy of"
            " them is damaged. Choose another --out."
        )


def save_encoder(model: LanguageModel, tokenizer: PieceTokenizer, folder: Path) -> None:
    """Writes what `litotes train` and `transformers` (AutoModel, AutoModelForMaskedLM) read."""
    spec = model.encoder.spec
    architecture = architecture_of(spec.family, next_sentence=model.next_sentence)
    write_json(folder / "config.json", config_from_spec(spec) | {"architectures": [architecture]})
    write_text(folder / "tokenizer.json", tokenizer.to_json())
    mask = tokenizer.piece_string(find_mask(tokenizer))
    described = tokenizer_config(tokenizer, spec) | {"mask_token": mask}
    write_json(folder / "tokenizer_config.json", described)
    write_bytes(
        folder / "model.safetensors", to_bytes(family_tensors(model), metadata={"format": "pt"})
    )
