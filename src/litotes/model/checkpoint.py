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

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from litotes.core.errors import UserError, reason_of
from litotes.core.storage import (
    MANIFEST,
    json_bytes,
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
from litotes.encoder.families import EncoderSpec, config_from_spec, spec_from_json
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
    hash_folder,
    open_model,
    read_files,
)
from litotes.model.heads import HEADS

_EXITS = "exits."


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
        """What is done to the logits of a task: nothing, where none was learned."""
        return self.calibration.get(task, Calibration())


def save_model(model: Model, folder: Path, *, card: str, compact: bool = False) -> None:
    """Writes the model folder; `litotes.json` comes last, so a folder that has it is whole.

    compact: matrices that a bundled encoder has as well are kept as steps away from it, a byte a
    weight (`encoders/difference.py`); a model of another encoder is kept whole.
    """
    make_folder(folder)
    for name in (DESCRIPTION, MANIFEST):
        (folder / name).unlink(missing_ok=True)
    tensors, omits_base = _tensors_to_save(model, compact=compact)
    write_bytes(folder / WEIGHTS, to_bytes(tensors, metadata={"format": "pt"}))
    write_text(folder / TOKENIZER, model.tokenizer.to_json())
    write_text(folder / "README.md", card)
    if model.exits is not None and model.exits.table is not None:
        write_bytes(folder / TABLE, model.exits.table.to_bytes())
    spec = model.classifier.encoder.spec
    if not omits_base and spec.is_plain:  # all that transformers can read
        write_json(folder / "config.json", config_from_spec(spec))
    write_description(folder, _describe(model, omits_base=omits_base))


def write_description(folder: Path, description: Mapping[str, Any]) -> None:
    """Writes the manifest of the folder and then, last, the description."""
    content = json_bytes(description)
    hash_folder(folder).with_files({DESCRIPTION: content}).write(folder)
    write_bytes(folder / DESCRIPTION, content)


def _tensors_to_save(model: Model, *, compact: bool) -> tuple[dict[str, Tensor], bool]:
    """The weights by the names they are saved under, and whether they need the bundled encoder."""
    kept, omits_base = tensors_to_save(
        model.classifier.encoder,
        model.classifier.heads,
        base_name=model.base,
        base_sha256=model.base_sha256,
        compact=compact,
    )
    if model.exits is not None:
        for name, tensor in model.exits.heads.state_dict().items():
            kept[f"{_EXITS}{name}"] = tensor.detach().cpu().clone()
    return kept, omits_base


def load_model(
    model: str | Path | ModelFolder, *, files: Mapping[Path, FileContent] | None = None
) -> Model:
    """Reads a model folder, in evaluation mode; every file is checked against its hash first.

    files: its large files, where `read_files` has read them already.
    """
    folder = open_model(model)
    if "parts" in folder.description:
        example = folder.path / "TASK"
        raise UserError(f"{folder} holds a model per task. Name one of them: {example}.")
    if files is None:
        files = read_files([folder])
    try:
        return _load(folder, files)
    except (
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RuntimeError,
        AssertionError,
    ) as error:
        raise folder.damaged(reason_of(error)) from error


def save_parts(parts: Sequence[str], folder: Path) -> None:
    """Makes a folder that holds a model folder per part answer as one model."""
    description = {"format": FORMAT, "litotes": __version__, "parts": list(parts)}
    write_description(folder, description)


def _load(folder: ModelFolder, files: Mapping[Path, FileContent]) -> Model:
    description = folder.description
    base, spec = description["base"], spec_from_json(description["encoder"])
    tensors = saved_tensors(folder, files)
    encoder = saved_encoder(folder, spec, tensors)
    classifier = _build_classifier(folder, encoder, tensors)
    exits = None
    if folder.exits is not None:
        heads = EarlyExits.for_classifier(classifier, folder.exits).heads
        heads.load_state_dict(without_prefix(tensors, _EXITS))
        exits = EarlyExits(heads, folder.exits, folder.read_table())
    tokenizer = saved_tokenizer(folder, spec, files)
    return Model(
        classifier,
        tokenizer,
        base["name"],
        base["sha256"],
        folder.calibration,
        description["facts"],
        exits,
        folder.label_sets,
    )


def _build_classifier(
    folder: ModelFolder, encoder: Encoder, tensors: Mapping[str, Tensor]
) -> Classifier:
    check_known(folder, "head", folder.description["head"], HEADS)
    classifier = Classifier(
        encoder,
        list(folder.tasks.values()),
        head=folder.description["head"],
        dropout=folder.description["dropout"],
    )
    load_heads(classifier.heads, tensors)
    return classifier.eval()


def _describe(model: Model, *, omits_base: bool) -> dict[str, Any]:
    """The content of `litotes.json`."""
    classifier = model.classifier
    tasks = {name: list(task.labels) for name, task in classifier.tasks.items()}
    calibration = {task: learned.as_json() for task, learned in model.calibration.items()}
    exits = {} if model.exits is None else {"exits": model.exits.rule.as_json()}
    names = [name for name, task in classifier.tasks.items() if task.multi_label]
    several = {"multi_label": names} if names else {}
    return {
        "format": FORMAT,
        "litotes": __version__,
        "tasks": tasks,
        **several,
        "head": classifier.head_name,
        "dropout": classifier.dropout,
        "calibration": calibration,
        "max_pieces": model.tokenizer.max_pieces,
        "encoder": classifier.encoder.spec.as_json(),
        "base": {"name": model.base, "sha256": model.base_sha256, "omitted": omits_base},
        "facts": dict(model.facts),
        **exits,
    }


# The tensors of a model folder, of whatever kind: what is written, what is read and checked.

_HEADS = "heads."


def tensors_to_save(
    encoder: Encoder,
    heads: nn.Module,
    *,
    base_name: str,
    base_sha256: str | None,
    compact: bool = False,
) -> tuple[dict[str, Tensor], bool]:
    """Those of an encoder and its heads, of any kind of model."""
    base: dict[str, Tensor] = {}
    if base_sha256 is not None:
        base = pretrained.bundled_tensors(base_name, sha256=base_sha256)
    kept, n_omitted = {}, 0
    for name, tensor in to_family_tensors(encoder).items():
        if name in base and torch.equal(tensor, base[name]):  # training has left it as it was
            n_omitted += 1
        else:
            kept[name] = tensor
    compact = compact and bool(base)  # from any other encoder nobody could complete it
    if compact:
        kept = to_difference(kept, base)
    kept |= extra_tensors(encoder)
    for name, tensor in heads.state_dict().items():
        kept[f"{_HEADS}{name}"] = tensor.detach().cpu().clone()
    return kept, compact or n_omitted > 0


def saved_tensors(folder: ModelFolder, files: Mapping[Path, FileContent]) -> dict[str, Tensor]:
    """All weights of a folder, with those of the bundled encoder it rests on; checked first."""
    _check_hashes(folder, files)
    base = _base_tensors(folder.description["base"], files)
    weights = folder.path / WEIGHTS
    return base | from_difference(read_tensors(weights, files[weights].content), base)


def saved_tokenizer(
    folder: ModelFolder, spec: EncoderSpec, files: Mapping[Path, FileContent]
) -> PieceTokenizer:
    return pretrained.read_tokenizer(
        folder.path,
        spec,
        max_pieces=int(folder.description["max_pieces"]),
        content=files[folder.path / TOKENIZER].content,
    )


def saved_encoder(folder: ModelFolder, spec: EncoderSpec, tensors: Mapping[str, Tensor]) -> Encoder:
    n_bytes = sum(tensor.nbytes for tensor in tensors.values())
    check_fits(spec, n_bytes, str(folder))  # first: a description may ask for an endless encoder
    check_known(folder, "weighting", spec.weighting, WEIGHTINGS)
    check_known(folder, "pruning", spec.pruning, PRUNINGS)
    encoder = empty_encoder(spec)
    load_family_tensors(encoder, tensors, str(folder))
    load_extra_tensors(encoder, tensors)
    return encoder


def check_known(folder: ModelFolder, kind: str, name: str, known: Iterable[str]) -> None:
    """Refuses a model with a part that was added elsewhere: no folder brings its code along."""
    names = sorted(known)
    if name not in names:
        raise UserError(
            f"{folder} was made with the {kind} {name!r:.60}, which this litotes does not have"
            f" (known: {', '.join(names)}). Use the litotes that made it, or add the {kind} here."
        )


def load_heads(heads: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    heads.load_state_dict(without_prefix(tensors, _HEADS))


def _check_hashes(folder: ModelFolder, files: Mapping[Path, FileContent]) -> None:
    """The files must be those that the folder was written with."""
    stated = folder.stated_hashes
    if set(stated) != set(HASHED):
        listing = folder.path / (DESCRIPTION if folder.manifest is None else MANIFEST)
        raise UserError(
            f"{listing}: must give the hashes of {' and '.join(HASHED)}. Copy it again, or train"
            " the model again."
        )
    for name, sha256 in stated.items():
        file = folder.path / name
        if file not in files or files[file].sha256 != sha256:
            raise changed_file(file)


def without_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The weights saved under a prefix, without it."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


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


# The folder of a model that answers words: that of a classifier (checkpoint.py) with a kind, one
# task, and how texts are cut into words for it.


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
        return _load_words(folder)
    except (ArithmeticError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise folder.damaged(reason_of(error)) from error


def _load_words(folder: ModelFolder) -> SavedWordModel:
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


# One model out of several that began with the same encoder: the mean of their weights.
#
#     w = s₁ w₁ + … + sₙ wₙ,   Σ s = 1; all the same unless shares are given
#
# Models fine-tuned from one start lie in one valley, and its middle answers texts of other kinds
# better than its edges, at the cost of one (model soups: Wortsman et al. 2022, arXiv 2203.05482;
# between an earlier model and a later one: arXiv 2109.01903).

_CLOSE = 1e-9


def average_models(models: Sequence[Model], shares: Sequence[float] | None = None) -> Model:
    """Tokenizer, tasks, pruning and facts are those of the first. shares: of the models, in all 1.

    Temperatures, thresholds and exits were fitted to weights that are no longer there: the mean has
    none.
    """
    if not models:
        raise UserError("There is no model to average. Give at least one.")
    first = models[0]
    states = [model.classifier.state_dict() for model in models]
    shapes = [{name: tensor.shape for name, tensor in state.items()} for state in states]
    kinds = {(model.base_sha256, model.classifier.head_name) for model in models}
    if len(kinds) > 1 or any(other != shapes[0] for other in shapes):
        raise UserError(
            "Only models of the same encoder, head and tasks have a mean. Average those that differ"
            " in seed, learning rate, epochs or lessons."
        )
    if shares is None:
        shares = [1 / len(models)] * len(models)
    if len(shares) != len(models) or abs(sum(shares) - 1) > _CLOSE:
        raise UserError("Give each model a share, and let them be 1 in all.")
    classifier = deepcopy(first.classifier)
    classifier.load_state_dict(
        {name: _mean([state[name] for state in states], shares) for name in states[0]}
    )
    return replace(first, classifier=classifier.eval(), calibration={}, exits=None, label_sets={})


def _mean(tensors: Sequence[Tensor], shares: Sequence[float]) -> Tensor:
    """In float64. Where all are the same, so is their mean, to the last bit: what a model shares
    with its encoder is left out of its folder by that.
    """
    first, *others = tensors
    if not first.is_floating_point():
        return first
    mean = first.double()
    for tensor, share in zip(others, shares[1:], strict=True):
        mean += share * (tensor.double() - first.double())
    return mean.to(first.dtype)
