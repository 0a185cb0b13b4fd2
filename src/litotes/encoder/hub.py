"""Encoders of the Hugging Face Hub: fetched, or found in its cache."""

from __future__ import annotations

from pathlib import Path

from litotes.core.errors import UserError, reason_of

_FILES = [
    "config.json",
    "tokenizer.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "model-*-of-*.safetensors",
    "spm.model",
]


def fetch_snapshot(name: str) -> Path:
    """The folder of OWNER/NAME@REVISION, which is fetched unless it is there."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import (
            HfHubHTTPError,
            HFValidationError,
            LocalEntryNotFoundError,
        )
    except ImportError as error:
        raise UserError(
            f"{name!r} is a Hub id, and the Hub client is not installed: `pip install"
            " litotes[hub]`, or give a folder."
        ) from error
    owner_name, _, revision = name.partition("@")
    try:
        return Path(snapshot_download(owner_name, revision=revision, allow_patterns=_FILES))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = reason_of(error)
        raise UserError(
            f"The encoder {name!r} could not be fetched from the Hugging Face Hub: {reason} Check"
            " the name, the revision and the network, or give a folder; `minilm` needs no network."
        ) from error


def cached_snapshot(owner_name: str, revision: str) -> Path | None:
    """The folder of a revision in the Hub's cache; None: it is not there. No network is used."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError
    except ImportError:
        return None
    try:
        found = snapshot_download(
            owner_name, revision=revision, allow_patterns=_FILES, local_files_only=True
        )
    except LocalEntryNotFoundError:
        return None
    return Path(found)
