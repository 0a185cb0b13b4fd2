"""Where encoders come from: bundled with the package, fetched once, a folder, or the Hugging Face
Hub.

A name is `minilm`, `mpnet`, a path, or `OWNER/NAME@REVISION`. The Hub is asked only for the last
kind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetensors.torch import save as to_bytes
from torch import Tensor

from litotes.core.errors import UserError
from litotes.core.json_text import load_json
from litotes.core.registry import unknown_name
from litotes.core.storage import sha256_of, write_bytes, write_json, write_text
from litotes.core.text import one_line
from litotes.encoder.bundled import BUNDLED, bundled_folder, bundled_weights, installed_folder
from litotes.encoder.config import config_from_spec, spec_from_config
from litotes.encoder.encoder import Encoder
from litotes.encoder.fetchable import FETCHABLE, require_fetched
from litotes.encoder.hub import fetch_snapshot
from litotes.encoder.spec import EncoderSpec
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.encoder.weights import (
    check_fits,
    extra_tensors,
    load_extra_tensors,
    load_family_tensors,
    read_tensors,
    to_family_tensors,
    weight_files,
)

_HUB_NAME = re.compile(r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*@[A-Za-z0-9][\w./-]*$")
_OLDER_TOKENIZERS = ("spm.model", "sentencepiece.bpe.model", "vocab.txt", "vocab.json")


@dataclass(frozen=True)
class Pretrained:
    """An encoder with the tokenizer that belongs to it, and where both came from.

    sha256: the hash of the weights if the encoder is bundled, so that a model can be kept as a
    difference from it.
    """

    encoder: Encoder
    tokenizer: PieceTokenizer
    name: str
    sha256: str | None

    def __repr__(self) -> str:
        spec = self.encoder.spec
        return one_line(self, name=self.name, n_layers=spec.n_layers, width=spec.width)


def load(name: str, *, max_pieces: int | None = None, **choices: Any) -> Pretrained:
    """The encoder called `name`, in evaluation mode. choices: of the seams of attention, as
    `EncoderSpec` names them.
    """
    folder, label, sha256 = find_encoder(name)
    spec = replace(_read_spec(folder), **choices)
    files = weight_files(folder)
    if sha256 is not None:
        _check_hash(name, files[0], sha256, sha256_of(files[0]))
    tensors: dict[str, Tensor] = {}
    for file in files:
        tensors |= read_tensors(file)
    check_fits(spec, sum(tensor.nbytes for tensor in tensors.values()), str(folder))
    encoder = Encoder(spec)
    load_family_tensors(encoder, tensors, str(folder))
    if extra_tensors(encoder).keys() <= tensors.keys():
        load_extra_tensors(encoder, tensors)  # what a weighting learned in pretraining
    tokenizer = read_tokenizer(folder, spec, max_pieces=max_pieces)
    # a model is kept as a difference only from what every installation has
    return Pretrained(encoder.eval(), tokenizer, label, sha256 if name in BUNDLED else None)


def bundled_tensors(name: str, *, sha256: str) -> dict[str, Tensor]:
    """The weights of a bundled encoder, to keep a model as a difference from them.

    sha256: of the weights that the model was trained from.
    """
    file = bundled_weights(name)
    check_bundled(name, sha256, found=sha256_of(file))
    return read_tensors(file)


def check_bundled(name: str, sha256: str, *, found: str) -> None:
    """Refuses weights that are not those a model was trained from. found: of the installed ones."""
    if sha256 != BUNDLED[name].sha256:
        raise UserError(
            f"This model is a difference from {name!r} with sha256 {sha256}, which is not the one"
            " this litotes uses."
        )
    _check_hash(name, bundled_weights(name), sha256, found)


def load_tokenizer(name: str) -> PieceTokenizer:
    """The tokenizer of the encoder called `name`, cutting where the encoder would; its weights are
    not read.
    """
    folder, _, _ = find_encoder(name)
    return read_tokenizer(folder, _read_spec(folder), max_pieces=None)


def find_encoder(name: str) -> tuple[Path, str, str | None]:
    """The folder that holds the encoder, its exact name (a Hub id with its commit), and the hash
    its weights must have.
    """
    if name in BUNDLED:
        return bundled_folder(name), name, BUNDLED[name].sha256
    if name in FETCHABLE:
        return require_fetched(name), name, FETCHABLE[name].sha256
    if Path(name).is_dir():
        return Path(name), name, None
    if _HUB_NAME.match(name) and not name.startswith("."):
        folder = fetch_snapshot(name)
        return folder, f"{name.split('@')[0]}@{folder.name}", None
    if re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        raise UserError(
            f"There is no folder {name!r}. For an encoder of the Hugging Face Hub say which"
            f" revision: {name}@REVISION."
        )
    raise UserError(
        unknown_name(name, FETCHABLE, "encoder")
        + " A folder or OWNER/NAME@REVISION of the Hugging Face Hub will do as well."
    )


def save(pretrained: Pretrained, folder: Path) -> None:
    """Writes a folder that `transformers` (AutoModel) and `load` read."""
    write_json(folder / "config.json", config_from_spec(pretrained.encoder.spec))
    write_text(folder / "tokenizer.json", pretrained.tokenizer.to_json())
    write_bytes(
        folder / "model.safetensors",
        to_bytes(to_family_tensors(pretrained.encoder), metadata={"format": "pt"}),
    )


def tokenizer_config(tokenizer: PieceTokenizer, spec: EncoderSpec) -> dict[str, Any]:
    """The `tokenizer_config.json` with which `transformers` reads texts as we do."""
    inputs = ["input_ids", "attention_mask"]
    if spec.n_segments > 1:
        inputs.append("token_type_ids")
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": tokenizer.max_pieces,
        "model_input_names": inputs,
    }
    padding = tokenizer.piece_string(spec.padding_piece)
    return config if padding is None else config | {"pad_token": padding}


def choose_max_pieces(wanted: int | None, possible: int) -> int:
    """How many pieces a text is cut to: what is wanted, if the position table has room for it."""
    if wanted is None:
        return min(512, possible)
    if not 3 <= wanted <= possible:
        raise UserError(
            f"max_pieces = {wanted} is out of range: this encoder reads 3 to {possible} pieces."
        )
    return wanted


def _read_spec(folder: Path) -> EncoderSpec:
    file = _require(folder / "config.json")
    return spec_from_config(_read_json(file), str(file))


def read_tokenizer(
    folder: Path, spec: EncoderSpec, *, max_pieces: int | None, content: bytes | None = None
) -> PieceTokenizer:
    """The tokenizer in a folder, if it is one for such an encoder.

    content: of its file, if it has been read already.
    """
    _check_is_fast(folder)
    tokenizer = PieceTokenizer(
        _require(folder / "tokenizer.json"),
        max_pieces=choose_max_pieces(max_pieces, spec.max_pieces),
        content=content,
    )
    if tokenizer.n_vocabulary > spec.n_vocabulary:
        raise UserError(
            f"{folder}: tokenizer.json knows {tokenizer.n_vocabulary} pieces, the encoder"
            f" {spec.n_vocabulary}; they do not belong together."
        )
    return tokenizer


def _check_hash(name: str, file: Path, sha256: str, found: str) -> None:
    if found != sha256:
        again = f"Run `litotes encoders get {name}`"
        if name in BUNDLED and installed_folder(name) is not None:
            again = "Reinstall the package"
        raise UserError(
            f"{file}: its sha256 is {found}, expected {sha256}. {again}; the file is damaged or was"
            " replaced."
        )


def _check_is_fast(folder: Path) -> None:
    """Refuses a folder whose tokenizer is in an older form alone, as DeBERTa-v3 was published."""
    older = [name for name in _OLDER_TOKENIZERS if (folder / name).is_file()]
    if older and not (folder / "tokenizer.json").is_file():
        raise UserError(
            f"{folder}: there is a {older[0]} but no tokenizer.json. Write it once, where"
            f" transformers is installed: AutoTokenizer.from_pretrained({str(folder)!r})"
            f".save_pretrained({str(folder)!r})."
        )


def _require(file: Path) -> Path:
    if not file.is_file():
        raise UserError(
            f"{file.parent}: there is no {file.name}. Give a folder with config.json,"
            " model.safetensors and tokenizer.json."
        )
    return file


def _read_json(file: Path) -> dict[str, object]:
    try:
        content = load_json(file)
    except ValueError as error:
        raise UserError(f"{file}: not readable as JSON ({error}).") from error
    if not isinstance(content, dict):
        raise UserError(f"{file}: expected a JSON object.")
    return content
