"""The model folder: what a run ends in and every consumer starts from.

    litotes.json        what the model is: encoder, head, tasks, calibration, data, recipe;
                        written last
    manifest.json       the hashes of all files (manifest.py)
    model.safetensors   encoder weights under the family's own names, and the heads under `heads.…`
    tokenizer.json      the pieces
    table.npy           what answers before the first layer, of a model with such an exit
    config.json         for `transformers`, when the folder holds a whole encoder
    README.md           the model card

A model whose lower layers are those of a bundled encoder keeps only what differs from it. A folder
may also hold several such folders, one per task: its `litotes.json` then names them as its `parts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as to_bytes
from torch import Tensor

from litotes.core.errors import UserError, reason_of
from litotes.core.storage import (
    MANIFEST,
    make_folder,
    write_bytes,
    write_json,
    write_text,
)
from litotes.core.text import one_line
from litotes.core.values import WORD_KINDS
from litotes.core.version import __version__
from litotes.encoder import pretrained
from litotes.encoder.attention import PRUNINGS, WEIGHTINGS
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import config_from_spec
from litotes.encoder.fetching import BUNDLED, bundled_weights
from litotes.encoder.pretrained import (
    check_fits,
    empty_encoder,
    extra_tensors,
    from_difference,
    load_extra_tensors,
    load_family_tensors,
    read_tensors,
    to_difference,
    to_family_tensors,
)
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.model.calibration import Calibration, LabelSets
from litotes.model.classifier import Classifier, EarlyExits, WordModel
from litotes.model.exits import TABLE
from litotes.model.folder import (
    DESCRIPTION,
    FORMAT,
    HASHED,
    TOKENIZER,
    WEIGHTS,
    FileContent,
    ModelFolder,
    changed_file,
    open_model,
    read_files,
    write_description,
)
from litotes.model.heads import HEADS

_HEADS, _EXITS = "heads.", "exits."
"""Before the names of their weights."""


@dataclass(frozen=True)
class Model:
    """A classifier with its tokenizer, the calibration of its tasks, and what is known about it
    (`facts`: data, recipe, scores). exits: where texts leave early; None: none does.

    label_sets: the bounds by which its folder lets it say "unsure". They are those of the weights
    that were calibrated: `save_model` does not write them.
    """

    classifier: Classifier
    tokenizer: PieceTokenizer
    base: str
    base_sha256: str | None
    calibration: Mapping[str, Calibration] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    exits: EarlyExits | None = None
    label_sets: Mapping[str, LabelSets] = field(default_factory=dict)

    def __repr__(self) -> str:
        return one_line(self, base=self.base, tasks=list(self.classifier.tasks))

    def calibration_of(self, task: str) -> Calibration:
        """Returns the calibration of a task: one that does nothing, where none was learned."""
        return self.calibration.get(task, Calibration())


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


def save_model(model: Model, folder: Path, *, card: str, compact: bool = False) -> None:
    """Writes the model folder; `litotes.json` comes last, so a folder that has it is whole.

    compact: matrices that a bundled encoder has as well are kept as steps away from it, a byte a
    weight (`encoders/difference.py`); a model of another encoder is kept whole.
    """
    classifier, exits = model.classifier, model.exits
    several = [name for name, task in classifier.tasks.items() if task.multi_label]
    about = {
        "tasks": {name: list(task.labels) for name, task in classifier.tasks.items()},
        **({"multi_label": several} if several else {}),
        "head": classifier.head_name,
        "dropout": classifier.dropout,
        "calibration": {task: learned.as_json() for task, learned in model.calibration.items()},
    }
    _save(model, classifier, about, folder, card=card, compact=compact, exits=exits)


def save_word_model(model: SavedWordModel, folder: Path, *, card: str) -> None:
    """The same of a model that answers words: one task, and how texts are cut into words."""
    network = model.network
    about = {
        "kind": network.kind,
        "tasks": {network.task.name: list(network.task.labels)},
        "words": model.cutting,
        "dropout": network.dropout,
    }
    _save(model, network, about, folder, card=card)


def _save(
    model: Model | SavedWordModel,
    network: Classifier | WordModel,
    about: Mapping[str, Any],
    folder: Path,
    *,
    card: str,
    compact: bool = False,
    exits: EarlyExits | None = None,
) -> None:
    """about: what only models of this kind say."""
    make_folder(folder)
    for name in (DESCRIPTION, MANIFEST):
        (folder / name).unlink(missing_ok=True)
    encoder = network.encoder
    tensors, omits_base = _encoder_tensors(model, encoder, compact=compact)
    saved = {_HEADS: network.heads} | ({} if exits is None else {_EXITS: exits.heads})
    for prefix, heads in saved.items():
        for name, tensor in heads.state_dict().items():
            tensors[f"{prefix}{name}"] = tensor.detach().cpu().clone()
    write_bytes(folder / WEIGHTS, to_bytes(tensors, metadata={"format": "pt"}))
    write_text(folder / TOKENIZER, model.tokenizer.to_json())
    write_text(folder / "README.md", card)
    if exits is not None and exits.table is not None:
        write_bytes(folder / TABLE, exits.table.to_bytes())
    if not omits_base and encoder.spec.is_plain:  # all that transformers can read
        write_json(folder / "config.json", config_from_spec(encoder.spec))
    description = {
        "format": FORMAT,
        "litotes": __version__,
        **about,
        "max_pieces": model.tokenizer.max_pieces,
        "encoder": encoder.spec.as_json(),
        "base": {"name": model.base, "sha256": model.base_sha256, "omitted": omits_base},
        "facts": dict(model.facts),
        **({} if exits is None else {"exits": exits.rule.as_json()}),
    }
    write_description(folder, description)


def save_parts(parts: Sequence[str], folder: Path) -> None:
    """Makes a folder that holds a model folder per part answer as one model."""
    description = {"format": FORMAT, "litotes": __version__, "parts": list(parts)}
    write_description(folder, description)


def _encoder_tensors(
    model: Model | SavedWordModel, encoder: Encoder, *, compact: bool
) -> tuple[dict[str, Tensor], bool]:
    """The weights by the names they are saved under, and whether they need the bundled encoder."""
    base: dict[str, Tensor] = {}
    if model.base_sha256 is not None:
        base = pretrained.bundled_tensors(model.base, sha256=model.base_sha256)
    tensors = to_family_tensors(encoder)
    same = {name for name in tensors if name in base and torch.equal(tensors[name], base[name])}
    kept = {name: tensor for name, tensor in tensors.items() if name not in same}
    omits_base = bool(same)
    if compact and base:  # from any other encoder no one could complete it
        kept, omits_base = to_difference(kept, base), True
    return kept | extra_tensors(encoder), omits_base


def load_model(
    model: str | Path | ModelFolder, *, files: Mapping[Path, FileContent] | None = None
) -> Model:
    """Reads a model folder, in evaluation mode; every file is checked against its hash first.

    files: its large files, where `read_files` has read them already.
    """
    folder = open_model(model)
    if folder.parts:
        example = folder.path / "TASK"
        raise UserError(f"{folder} holds a model per task. Name one of them: {example}.")
    with _damage_in_words(folder):
        about = folder.description
        _check_known(folder, "head", about["head"], HEADS)
        encoder, tokenizer, tensors = _read(folder, files)
        tasks = list(folder.tasks.values())
        classifier = Classifier(encoder, tasks, head=about["head"], dropout=about["dropout"])
        classifier.heads.load_state_dict(_without_prefix(tensors, _HEADS))
        exits = None
        if folder.exits is not None:
            heads = EarlyExits.for_classifier(classifier, folder.exits).heads
            heads.load_state_dict(_without_prefix(tensors, _EXITS))
            exits = EarlyExits(heads, folder.exits, folder.read_table())
        return Model(
            classifier.eval(),
            tokenizer,
            about["base"]["name"],
            about["base"]["sha256"],
            folder.calibration,
            about["facts"],
            exits,
            folder.label_sets,
        )


def load_word_model(model: str | Path | ModelFolder) -> SavedWordModel:
    """The same of a model that answers words."""
    folder = open_model(model, kinds=WORD_KINDS)
    with _damage_in_words(folder):
        about, (task,) = folder.description, folder.tasks.values()
        encoder, tokenizer, tensors = _read(folder, None)
        network = WordModel(encoder, task, kind=folder.kind, dropout=about["dropout"])
        network.heads.load_state_dict(_without_prefix(tensors, _HEADS))
        base = about["base"]["name"], about["base"]["sha256"]
        return SavedWordModel(network.eval(), tokenizer, *base, about["words"], about["facts"])


@contextmanager
def _damage_in_words(folder: ModelFolder) -> Iterator[None]:
    """Whatever a description or weights that are no model lead to, as one sentence."""
    try:
        yield
    except (UserError, OSError, MemoryError):
        raise
    except Exception as error:
        raise folder.damaged(reason_of(error)) from error


def _read(
    folder: ModelFolder, files: Mapping[Path, FileContent] | None
) -> tuple[Encoder, PieceTokenizer, dict[str, Tensor]]:
    """The encoder, the tokenizer and all weights of a folder, with those of the bundled encoder it
    rests on; checked first.
    """
    files = read_files([folder]) if files is None else files
    for name in HASHED:
        file = folder.path / name
        if file not in files:
            raise changed_file(file)
        folder.manifest.check(file, files[file].sha256)
    base = _base_tensors(folder.description["base"], files)
    weights, spec = folder.path / WEIGHTS, folder.spec
    tensors = base | from_difference(read_tensors(weights, files[weights].content), base)
    n_bytes = sum(tensor.nbytes for tensor in tensors.values())
    check_fits(spec, n_bytes, str(folder))  # first: a description may ask for an endless encoder
    _check_known(folder, "weighting", spec.weighting, WEIGHTINGS)
    _check_known(folder, "pruning", spec.pruning, PRUNINGS)
    encoder = empty_encoder(spec)
    load_family_tensors(encoder, tensors, str(folder))
    load_extra_tensors(encoder, tensors)
    longest = int(folder.description["max_pieces"])
    pieces = files[folder.path / TOKENIZER].content
    tokenizer = pretrained.read_tokenizer(folder.path, spec, max_pieces=longest, content=pieces)
    return encoder, tokenizer, tensors


def _check_known(folder: ModelFolder, kind: str, name: str, known: Iterable[str]) -> None:
    """Refuses a model with a part that was added elsewhere: no folder brings its code along."""
    names = sorted(known)
    if name not in names:
        raise UserError(
            f"{folder} was made with the {kind} {name!r:.60}, which this litotes does not have"
            f" (known: {', '.join(names)}). Use the litotes that made it, or add the {kind} here."
        )


def _without_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The weights saved under a prefix, without it."""
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors[name] for name in names}


def _base_tensors(base: Mapping[str, Any], files: Mapping[Path, FileContent]) -> dict[str, Tensor]:
    """The weights of the bundled encoder that a model was saved without; none, if it is whole."""
    if set(base) != {"name", "sha256", "omitted"} or not isinstance(base["omitted"], bool):
        raise ValueError(f"the base must have a name, a sha256 and omitted, not {base!r:.60}")
    if not base["omitted"]:
        return {}
    name = base["name"]
    # a model folder must not send us to other folders or to the network
    if name not in BUNDLED:
        raise UserError(
            f"This model is a difference from {name!r}, which is not a bundled encoder; it cannot"
            " be completed."
        )
    weights = files[bundled_weights(name)]
    pretrained.check_bundled(name, base["sha256"], found=weights.sha256)
    return read_tensors(bundled_weights(name), weights.content)
