"""What a run has written about itself into `litotes.json`, checked when the folder is opened.

A model that no run has made may know nothing about itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.json_text import parse_json, read_json_table, read_small_file
from litotes.core.registry import is_plain_name
from litotes.core.storage import (
    MANIFEST,
    free_folder,
    json_bytes,
    sha256_of,
    write_bytes,
    write_json,
    write_text,
)
from litotes.core.text import one_line
from litotes.core.values import CLASSIFICATION, KINDS, TRANSLATION, WORD_KINDS, Example, Task
from litotes.core.version import __version__
from litotes.data.corpus import example_key
from litotes.encoder.families import spec_from_json
from litotes.encoder.fetching import BUNDLED, bundled_weights
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.model.builtin import is_builtin, resolve_model
from litotes.model.calibration import Calibration, LabelSets, check_label_sets
from litotes.model.exits import TABLE, Exits, StaticTable, exits_from_json, parse_table

_FACTS: dict[str, Any] = {"key": str, "recipe": dict, "data": dict, "notes": list}
_MORE: dict[str, Any] = {"best_epoch": int | None, "seconds_per_step": float | int}
"""What a pruned model does not have."""


def check_facts(facts: object) -> None:
    """Facts of a run must be whole; what is not is a ValueError."""
    if not isinstance(facts, dict):
        raise ValueError("its facts are not a table")
    if not facts.keys() & _FACTS.keys():
        return
    kinds = _FACTS | {name: kind for name, kind in _MORE.items() if name in facts}
    for name, kind in kinds.items():
        if not isinstance(facts.get(name), kind):
            raise ValueError(f"its facts have no {name}, or a wrong one")
    data, settings = facts["data"], facts["recipe"].get("data")
    counts = data.get("n_train"), data.get("n_pairs", 0)
    are_counts = all(isinstance(count, int) for count in counts)
    if not are_counts or not isinstance(data.get("sha256"), str):
        raise ValueError("its facts do not say which texts it learned from")
    if not isinstance(settings, dict) or not isinstance(settings.get("source"), str):
        raise ValueError("its recipe names no source")
    if not all(isinstance(note, str) for note in facts["notes"]):
        raise ValueError("its notes are not sentences")


def takes_pairs(facts: Mapping[str, Any]) -> bool:
    """Whether a model has learned from pairs of texts; earlier versions did not write it down."""
    return bool(facts.get("data", {}).get("n_pairs"))


def name_model(base: str, head: str, pruning: str) -> str:
    """What a model without a name of its own is called: encoder, head and pruning."""
    name = f"{Path(base).name}, {head}"
    return name if pruning == "none" else f"{name}, {pruning}"


# The manifest of a model folder: the sha256 of each of its files, and one of the list itself.
#
#     manifest.json   {"files": {NAME: sha256, …}, "sha256": that of the list}
#
# It is written before `litotes.json`, with the hash that file is going to have, so that a folder
# with a description is whole. A file that decides an answer must be in the list. Other files (the
# card, the scores) are listed too but not compared: people edit them, and no answer depends on
# them.

ADVICE = "Copy the model folder again, or train the model again."


@dataclass(frozen=True)
class Manifest:
    """files: the sha256 by name."""

    files: Mapping[str, str]

    def check(self, file: Path, sha256: str) -> None:
        """Refuses a file that is not listed, or not with this sha256."""
        if file.name not in self.files:
            raise UserError(
                f"{file} is not in {MANIFEST}: litotes did not write it, or was stopped before the"
                " end. Copy the model folder again, or export the model again."
            )
        if self.files[file.name] != sha256:
            raise changed_file(file)

    def with_files(self, contents: Mapping[str, bytes]) -> Manifest:
        """With other files, or other contents of the same ones."""
        added = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        return Manifest({**self.files, **added})

    def only(self, names: Collection[str]) -> Manifest:
        return Manifest({name: sha256 for name, sha256 in self.files.items() if name in names})

    def as_json(self) -> dict[str, Any]:
        """The content of its file."""
        return _as_json(dict(sorted(self.files.items())))

    def write(self, folder: Path) -> None:
        write_json(folder / MANIFEST, self.as_json())


def changed_file(file: Path) -> UserError:
    """The error for a file that is not the one its folder was written with."""
    return UserError(f"{file} is missing or not the file that was saved. {ADVICE}")


def hash_folder(folder: Path) -> Manifest:
    """The files that are in a folder now, without hidden ones: locks, and what is half written."""
    files = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.name.startswith(".") and path.name != MANIFEST:
            files[path.name] = sha256_of(path)
    return Manifest(files)


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder; None: it has none."""
    file = folder / MANIFEST
    if not file.is_file():
        return None
    content = read_json_table(file, advice=ADVICE)
    files = content.get("files", {})
    is_list = isinstance(files, dict) and all(isinstance(one, str) for one in files.values())
    if not is_list or content != _as_json(files):
        raise UserError(f"{file}: damaged (its list does not have the sha256 it states). {ADVICE}")
    return Manifest(files)


def _as_json(files: Mapping[str, str]) -> dict[str, Any]:
    """With the sha256 of the list."""
    listed = json.dumps(files, sort_keys=True)
    return {"files": files, "sha256": hashlib.sha256(listed.encode()).hexdigest()}


# What `litotes.json` may say: known keys, and values that a model can have.
#
# A hash notices damage; this notices a description that was written wrongly or edited by hand, and
# the damage of folders that have no manifest. What needs the weights is checked when these are
# read.

FORMAT = 2
OLD_FORMAT = 1
"""Without a manifest: the description itself states the hashes of weights and tokenizer."""
_ALWAYS = {"format", "litotes"}
_OF_PARTS = _ALWAYS | {"parts"}
_OF_A_MODEL = _ALWAYS | {
    "tasks",
    "head",
    "dropout",
    "calibration",
    "max_pieces",
    "encoder",
    "base",
    "facts",
    "exits",
    "unsure",
    "multi_label",
}
_NOT_OF_WORDS = {"head", "calibration", "exits", "unsure", "multi_label"}
_OF_WORDS = (_OF_A_MODEL | {"kind", "words"}) - _NOT_OF_WORDS
_OF_AN_OLD_MODEL = _OF_A_MODEL | {"files"}


def check_description(description: Mapping[str, Any]) -> None:
    """Refuses, as a ValueError, what no model can have.

    A key that is missing is reported by what needs it.
    """
    known = _OF_AN_OLD_MODEL if description["format"] == OLD_FORMAT else _OF_A_MODEL
    if "parts" in description:
        known = _OF_PARTS
    elif "kind" in description:
        known = _check_kind(description)
    for key in description:
        if key not in known:
            raise ValueError(f"the key {key!r:.60} is unknown")
    _check_tasks(description.get("tasks", {}))
    dropout = description.get("dropout", 0.0)
    if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout < 1:
        raise ValueError(f"the dropout must be a number from 0 to 1, not {dropout!r:.60}")
    for key in ("encoder", "calibration"):
        if not isinstance(description.get(key, {}), dict):
            raise ValueError(f"{key} is not a table")
    check_label_sets(description.get("unsure", {}), description.get("tasks", {}))
    _check_several(description)
    if "encoder" in description:
        spec = spec_from_json(description["encoder"])
        if "exits" in description:
            tasks, n_layers = description["tasks"], len(spec.walk)
            exits_from_json(description["exits"], tasks=tasks, n_layers=n_layers)


def _check_kind(description: Mapping[str, Any]) -> set[str]:
    """What a model may say that does not label whole texts."""
    # the sources of words come with it, which a classifier does not wait for
    from litotes.data.words import CUTTINGS

    kind = description["kind"]
    if kind not in WORD_KINDS:
        raise ValueError(f"the kind {kind!r:.60} is unknown; a newer litotes may know it")
    if len(description["tasks"]) != 1:
        raise ValueError("a model of words has one task")
    if description["words"] not in CUTTINGS:
        raise ValueError(f"the way to cut words {description['words']!r:.60} is unknown")
    return _OF_WORDS


def _check_several(description: Mapping[str, Any]) -> None:
    """Tasks with several labels for one text are named; each has thresholds for all or none."""
    several, tasks = description.get("multi_label", []), description.get("tasks", {})
    if not isinstance(several, list) or not all(tasks.get(name) for name in several):
        raise ValueError("multi_label does not name tasks with labels")
    for name in several:
        if name in description.get("unsure", {}) or "exits" in description:
            raise ValueError(f"{name!r:.60} has several labels, and no sets of them or exits")
    for name, content in description.get("calibration", {}).items():
        thresholds = Calibration.from_json(content).thresholds
        if thresholds is not None and name not in several:
            raise ValueError(f"{name!r:.60} has one label, and thresholds for several")
        if thresholds is not None and len(thresholds) != len(tasks[name]):
            raise ValueError(f"{name!r:.60} has not a threshold for each label")


def _check_tasks(tasks: Mapping[str, list[str]]) -> None:
    """Labels are printed, and a terminal obeys some characters."""
    for task, labels in tasks.items():
        if not all(label.isprintable() for label in labels):
            raise ValueError("a label holds characters that cannot be printed")
        if len(set(labels)) < len(labels):
            raise ValueError(f"the task {task!r:.60} has the same label twice")


# A model folder is opened once; everything after that is handed the `ModelFolder`.
#
#     name or path  →  open_model  →  ModelFolder: its path, the checked `litotes.json`, its parts
#                                         →  load_model (torch)  or  OnnxRuntime (no torch)
#
# Opening needs no torch, so that an exported model can answer at once. It checks that no link
# leads
# out of the folder, that `litotes.json` is the file of the manifest, can be read and names nothing
# outside; the hashes of the other files are compared when these are read. What was hashed is what
# is
# used: a file is read once, and its bytes are handed on.

DESCRIPTION = "litotes.json"
WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
HASHED = (WEIGHTS, TOKENIZER)
"""The files that every model folder states the sha256 of, whatever its format."""
MOST_KEPT_BYTES = 1 << 30
"""Of a file that is read once. A larger one is hashed and then mapped: it need not be in memory
twice.
"""


@dataclass(frozen=True)
class ModelFolder:
    """A model folder that has been opened.

    description: the content of its `litotes.json`.
    parts: where it holds a model per task, the folders of these models.
    manifest: the hashes of its files; None in a folder of the old format.
    """

    path: Path
    description: Mapping[str, Any]
    parts: tuple[ModelFolder, ...] = ()
    manifest: Manifest | None = None

    def __repr__(self) -> str:
        return one_line(self, path=str(self.path), tasks=list(self.tasks))

    def __str__(self) -> str:
        return str(self.path)

    @property
    def models(self) -> tuple[ModelFolder, ...]:
        """The folders that hold weights: its parts, or the folder itself."""
        return self.parts or (self,)

    @property
    def kind(self) -> str:
        """What it answers: a name of `KINDS`."""
        kind: str = self.description.get("kind", CLASSIFICATION)
        return kind

    @property
    def tasks(self) -> dict[str, Task]:
        """What the model answers, by name, in the order of its description."""
        several = self.description.get("multi_label", ())
        tasks = {}
        for name, labels in self.description["tasks"].items():
            tasks[name] = Task(name, tuple(labels), multi_label=name in several)
        return tasks

    @property
    def calibration(self) -> dict[str, Calibration]:
        """What is done to the logits of each task that was calibrated."""
        by_task = self.description.get("calibration", {}).items()
        return {task: Calibration.from_json(content) for task, content in by_task}

    @property
    def exits(self) -> Exits | None:
        """Where texts may leave early; None: every text goes to the end."""
        if "exits" not in self.description:
            return None
        n_layers = len(spec_from_json(self.description["encoder"]).walk)
        return exits_from_json(
            self.description["exits"], tasks=self.description["tasks"], n_layers=n_layers
        )

    @property
    def label_sets(self) -> dict[str, LabelSets]:
        """The bounds of each task that may be answered with "unsure"."""
        by_task = self.description.get("unsure", {}).items()
        return {task: LabelSets.from_json(content) for task, content in by_task}

    @property
    def stated_hashes(self) -> dict[str, str]:
        """The sha256 of weights and tokenizer, as the manifest or the old description states it."""
        if self.manifest is None:
            return dict(self.description["files"])
        return dict(self.manifest.only(HASHED).files)

    @property
    def large_files(self) -> list[Path]:
        """The files to hash before they are read, with those of the bundled encoder it rests on."""
        files = [self.path / name for name in HASHED]
        base = self.description.get("base")
        if isinstance(base, dict) and base.get("omitted") and base.get("name") in list(BUNDLED):
            files.append(bundled_weights(base["name"]))
        return files

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about the folder."""
        if self.manifest is not None:
            return ()
        return (
            f"{self} was written by an earlier litotes: no hash protects its {DESCRIPTION}, and"
            " damage to that file can go unnoticed.",
        )

    def read_tokenizer(self) -> PieceTokenizer:
        """The tokenizer alone, checked; the weights are not read."""
        file = self.path / TOKENIZER
        content = file.read_bytes()
        self.check_hash(TOKENIZER, hashlib.sha256(content).hexdigest())
        return PieceTokenizer(file, max_pieces=self.description["max_pieces"], content=content)

    def read_table(self) -> StaticTable | None:
        """What answers before the first layer, checked; None: nothing does."""
        if self.exits is None or not self.exits.has_table:
            return None
        try:
            content = (self.path / TABLE).read_bytes()
        except OSError as error:
            raise changed_file(self.path / TABLE) from error
        self.check_hash(TABLE, hashlib.sha256(content).hexdigest())
        n_outputs = {name: task.n_outputs for name, task in self.tasks.items()}
        n_pieces = spec_from_json(self.description["encoder"]).n_vocabulary
        try:
            return parse_table(content, n_pieces=n_pieces, n_outputs=n_outputs)
        except ValueError as error:
            raise self.damaged(error) from error

    def check_hash(self, name: str, sha256: str) -> None:
        """Refuses a file that is not the one of the manifest; the old format has none."""
        if self.manifest is not None:
            self.manifest.check(self.path / name, sha256)

    def damaged(self, reason: object) -> UserError:
        """The error for a description that can be read but makes no model."""
        return UserError(f"{self.path / DESCRIPTION}: damaged ({reason}). {ADVICE}")


@dataclass(frozen=True)
class FileContent:
    """What was read from a file, and its sha256. content: None of a file too large to be kept."""

    sha256: str
    content: bytes | None


def open_model(
    model: str | Path | ModelFolder, *, kinds: Collection[str] = (CLASSIFICATION,)
) -> ModelFolder:
    """Opens a model folder and checks it. model: a built-in model's name, or a folder.

    kinds: of models that the caller can use; others are refused.

    Its files are not hashed yet: a folder may be opened long before they are read, and what is
    compared must be what is read.
    """
    folder = model if isinstance(model, ModelFolder) else _open(resolve_model(model))
    if folder.kind not in kinds:
        raise UserError(_refusal(folder, kinds))
    if isinstance(model, ModelFolder) or "parts" not in folder.description:
        return folder
    names = folder.description["parts"]
    if not isinstance(names, list) or not names or not all(is_plain_name(name) for name in names):
        raise folder.damaged("its parts are not names")
    # a part of a part is not opened: a link back to its own folder would never end
    parts = tuple(_open(folder.path / name) for name in names)
    if any(part.kind != CLASSIFICATION for part in parts):
        raise folder.damaged("one of its parts does not label whole texts")
    return replace(folder, parts=parts)


def kind_of(model: str | Path) -> str:
    """The kind of a model, without a check: what cannot be read is reported by who opens it."""
    try:
        description = parse_json(read_small_file(resolve_model(model) / DESCRIPTION))
    except (OSError, ValueError):
        return CLASSIFICATION
    kind = description.get("kind") if isinstance(description, dict) else None
    return kind if isinstance(kind, str) else CLASSIFICATION


def _refusal(folder: ModelFolder, kinds: Collection[str]) -> str:
    """Why a model cannot be used here, and where it can."""
    answers = KINDS[folder.kind]
    if folder.kind == CLASSIFICATION:
        return f"{folder} answers {answers}; a model of kind {' or '.join(kinds)} is needed here."
    return (
        f"{folder} is a {folder.kind} model: it answers {answers}, which is not supported here."
        " `litotes predict`, `evaluate` and `explain` take it; in Python, `litotes.Tagger`."
    )


def is_model_folder(path: Path) -> bool:
    """Whether a model has been written there; its description comes last."""
    return (path / DESCRIPTION).is_file()


def read_files(folders: Iterable[ModelFolder]) -> dict[Path, FileContent]:
    """All large files these models are made of, each read once.

    Reading and hashing leave the interpreter free: torch can be imported meanwhile.
    """
    files = [file for folder in folders for file in folder.large_files]
    return {file: _read_file(file) for file in dict.fromkeys(files) if file.is_file()}


def _read_file(file: Path) -> FileContent:
    if file.stat().st_size > MOST_KEPT_BYTES:
        return FileContent(sha256_of(file), None)
    content = file.read_bytes()
    return FileContent(hashlib.sha256(content).hexdigest(), content)


def _open(path: Path) -> ModelFolder:
    """The folder without its parts."""
    description, manifest = read_description(path)
    if description.get("kind") == TRANSLATION:
        raise UserError(
            f"{path} holds a translation model, which gives no labels. Ask it with `litotes"
            " translate` (--explain shows what it looked at) or `litotes interpret`; it cannot be"
            " pruned, exported, served or evaluated."
        )
    file = path / DESCRIPTION
    try:
        check_description(description)
        check_facts(description.get("facts", {}))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{file}: not readable ({error}). {ADVICE}") from error
    return ModelFolder(path, description, manifest=manifest)


def read_description(path: Path) -> tuple[dict[str, Any], Manifest | None]:
    """What the `litotes.json` of a folder says, checked against its hash, and the manifest.

    Its keys are not checked yet: they depend on the kind of model.
    """
    _check_links(path)
    if not is_model_folder(path):
        raise UserError(
            f"{path} is not a model folder: there is no {DESCRIPTION}. Make one with `litotes"
            f" train RECIPE --out {path}`."
        )
    file, manifest = path / DESCRIPTION, read_manifest(path)
    try:
        content = read_small_file(file)
        if manifest is not None:
            manifest.check(file, hashlib.sha256(content).hexdigest())
        description = parse_json(content)
        if not isinstance(description, dict):
            raise ValueError("not a table")
        _check_format(description["format"], file, manifest)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{file}: not readable ({error}). {ADVICE}") from error
    return description, manifest


def _check_format(version: object, file: Path, manifest: Manifest | None) -> None:
    if version not in (OLD_FORMAT, FORMAT):
        raise UserError(
            f"{file}: format {version}; this litotes ({__version__}) reads formats {OLD_FORMAT} and"
            f" {FORMAT}. Install the litotes that wrote it."
        )
    if version == FORMAT and manifest is None:
        raise UserError(f"{file.with_name(MANIFEST)} is missing. {ADVICE}")


def _check_links(folder: Path) -> None:
    """A model folder must not lead elsewhere: its links stay inside, or end where the cache of the
    Hub keeps its files.
    """
    if not folder.is_dir():
        return
    here = folder.resolve()
    allowed = (here, here.parent.parent / "blobs")
    for path in folder.iterdir():
        if path.is_symlink() and not any(_target(path).is_relative_to(place) for place in allowed):
            raise UserError(
                f"{path} is a link that leads out of the model folder. Copy what it leads to into"
                " the folder, if you trust it."
            )
        if not path.is_file() and not path.is_dir():
            raise UserError(f"{path} is not an ordinary file. Take it out of the model folder.")


def _target(link: Path) -> Path:
    try:
        return link.resolve()
    except (OSError, RuntimeError):  # a link to itself
        return Path(link.anchor)


# A model folder that gains bounds for "unsure", and copies of folders that must stay as they are.
#
# The manifest is written before the description, as by a training: a folder whose description has
# been replaced half-way is refused, and never answers with other bounds than those it was given.


def write_label_sets(folder: ModelFolder, label_sets: Mapping[str, LabelSets]) -> None:
    """Replaces the bounds of a folder that holds weights; with none, it answers as before."""
    description = dict(folder.description)
    description.pop("unsure", None)
    if label_sets:
        description["unsure"] = {task: sets.as_json() for task, sets in label_sets.items()}
    content = json_bytes(description)
    if folder.manifest is not None:
        folder.manifest.with_files({DESCRIPTION: content}).write(folder.path)
    write_bytes(folder.path / DESCRIPTION, content)


@contextmanager
def whole_copy(
    model: str | Path | ModelFolder, out: Path | None, *, more: Sequence[Path] = ()
) -> Iterator[ModelFolder]:
    """The folder itself, or a copy with all of its files; what fails leaves no copy behind.

    more: files from elsewhere that the copy gains.
    """
    folder = open_model(model)
    if out is None:
        if is_builtin(folder.path):
            raise UserError(
                "The bounds are written into the folder of the model, and the built-in one is not"
                " yours: copy it by --out FOLDER."
            )
        yield folder
        return
    with free_folder(out):
        for part in folder.parts:
            _copy_files(part.path, out / part.path.relative_to(folder.path))
        _copy_files(folder.path, out)
        contents = {file.name: file.read_bytes() for file in more}
        for name, content in contents.items():
            write_bytes(out / name, content)
        if folder.manifest is not None and contents:
            folder.manifest.with_files(contents).write(out)
        yield open_model(out)


def _copy_files(folder: Path, out: Path) -> None:
    """With the hashes as they are stated: damage stays to be noticed in the copy."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    last = (MANIFEST, DESCRIPTION)  # a folder that has them is whole
    for file in sorted(files, key=lambda file: file.name in last):
        if not file.name.startswith("."):
            write_bytes(out / file.name, file.read_bytes())


# Which texts a model has learned from or been chosen by: a short hash of each, in its folder.
#
# A model must not be scored on such texts without a word, whatever file they come in. The hashes
# tell
# whether a text was among them and nothing else about it.

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
