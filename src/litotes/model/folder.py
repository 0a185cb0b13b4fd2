"""The model folder without its weights: its manifest, what its description says, its hashes.

`litotes.json` is what a run has written about the model; checkpoint.py lists the other files.
Opening a folder needs no torch: it checks that no link leads out of it, that `litotes.json` is the
file of the manifest and says what a model can have. The hashes of the other files are compared when
these are read. What was hashed is what is used: a file is read once, and its bytes are handed on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
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
from litotes.encoder.families import EncoderSpec, spec_from_json
from litotes.encoder.fetching import BUNDLED, bundled_weights
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.model.builtin import is_builtin, name_of, resolve_model
from litotes.model.calibration import Calibration, LabelSets, is_number
from litotes.model.exits import TABLE, Exits, StaticTable, exits_from_json, parse_table

DESCRIPTION = "litotes.json"
WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
HASHED = (WEIGHTS, TOKENIZER)
"""The files that decide the answers of every model."""
MOST_KEPT_BYTES = 1 << 30
"""Of a file that is read once. A larger one is hashed and then mapped: it need not be in memory
twice.
"""
ADVICE = "Copy the model folder again, or train the model again."


def takes_pairs(facts: Mapping[str, Any]) -> bool:
    """Tells a model that has learned from pairs of texts."""
    return bool(facts.get("data", {}).get("n_pairs"))


def name_model(base: str, head: str, pruning: str) -> str:
    """Names a model without a name of its own: encoder, head and pruning."""
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
        """Adds other files, or other contents of the same ones."""
        added = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        return Manifest({**self.files, **added})

    def only(self, names: Collection[str]) -> Manifest:
        return Manifest({name: sha256 for name, sha256 in self.files.items() if name in names})

    def as_json(self) -> dict[str, Any]:
        """The content of its file: the list, and the sha256 of the list."""
        files = dict(sorted(self.files.items()))
        return {"files": files, "sha256": hashlib.sha256(json.dumps(files).encode()).hexdigest()}

    def write(self, folder: Path) -> None:
        write_json(folder / MANIFEST, self.as_json())


def changed_file(file: Path) -> UserError:
    """The error for a file that is not the one its folder was written with."""
    return UserError(f"{file} is missing or not the file that was saved. {ADVICE}")


def own_files(folder: Path) -> list[Path]:
    """The files of a folder but its manifest, and without hidden ones: locks, and what is half
    written.
    """
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    return [path for path in files if not path.name.startswith(".") and path.name != MANIFEST]


def hash_folder(folder: Path) -> Manifest:
    """The files that are in a folder now."""
    return Manifest({path.name: sha256_of(path) for path in own_files(folder)})


def read_manifest(folder: Path) -> Manifest:
    file = folder / MANIFEST
    if not file.is_file():
        raise UserError(f"{file} is missing. {ADVICE}")
    content = read_json_table(file, advice=ADVICE)
    files = content.get("files")
    if not isinstance(files, dict) or content != Manifest(files).as_json():
        raise UserError(f"{file}: damaged (its list does not have the sha256 it states). {ADVICE}")
    return Manifest(files)


def write_description(
    folder: Path, description: Mapping[str, Any], manifest: Manifest | None = None
) -> None:
    """Writes the manifest of the folder and then, last, the description: a folder whose description
    was replaced half-way is refused.

    manifest: the hashes as they are stated; None: those of the files as they are.
    """
    content = json_bytes(description)
    manifest = hash_folder(folder) if manifest is None else manifest
    manifest.with_files({DESCRIPTION: content}).write(folder)
    write_bytes(folder / DESCRIPTION, content)


# What `litotes.json` may say. A hash notices damage; this notices a description that was written
# wrongly or edited by hand. What needs the weights is checked when these are read.

FORMAT = 2
_HEADER = {"format", "litotes"}
_OF_EVERY_MODEL = {*_HEADER, "tasks", "dropout", "max_pieces", "encoder", "base", "facts"}
_KEYS = {
    "parts": {*_HEADER, "parts"},
    "words": {*_OF_EVERY_MODEL, "kind", "words"},
    "texts": {*_OF_EVERY_MODEL, "head", "calibration"},
}
"""Of a folder of parts, of a model of words, of a classifier."""
_MAY_HAVE = {"exits", "unsure", "multi_label"}
"""Keys of some classifiers."""
_FACTS: dict[str, Any] = {"key": str, "recipe": dict, "data": dict, "notes": list}


def _check_description(folder: ModelFolder) -> None:
    """Refuses what no model can have; a missing key, a wrong type or value is an error of Python,
    which who opens the folder turns into a sentence.
    """
    about = folder.description
    kind = "parts" if "parts" in about else "words" if "kind" in about else "texts"
    odd = _KEYS[kind].symmetric_difference(about) - (_MAY_HAVE if kind == "texts" else set())
    if odd:
        raise ValueError(f"the key {min(odd)!r:.60} is missing or unknown")
    if kind == "parts":
        return
    if kind == "words":
        _check_words(about)
    tasks, several = folder.tasks, about.get("multi_label", [])
    for labels in about["tasks"].values():
        if not all(label.isprintable() for label in labels):  # a terminal obeys the others
            raise ValueError("a label holds characters that cannot be printed")
        if len(set(labels)) < len(labels):
            raise ValueError(f"a task has the same label twice, of {labels!r:.60}")
    if not is_number(about["dropout"]) or not 0 <= about["dropout"] < 1:
        raise ValueError(f"the dropout must be a number from 0 to 1, not {about['dropout']!r:.60}")
    if not set(several) <= {name for name, task in tasks.items() if task.multi_label}:
        raise ValueError("multi_label does not name tasks with labels")
    if folder.exits is not None and several:
        raise ValueError("a model whose texts may have several labels has no exits")
    for name in folder.label_sets:
        if not tasks[name].is_choice:
            raise ValueError(f"unsure names {name!r:.60}, which is no choice of one label")
    for name, calibration in folder.calibration.items():
        task, thresholds = tasks[name], calibration.thresholds
        n_thresholds = len(task.labels) if task.multi_label else 0
        if thresholds is not None and len(thresholds) != n_thresholds:
            raise ValueError(f"{name!r:.60} has not a threshold for each of several labels")
        if calibration.threshold is not None and (task.multi_label or len(task.labels) != 2):
            raise ValueError(f"{name!r:.60} has a threshold, and not two labels")
    facts = about["facts"]
    of_a_run = facts.keys() & _FACTS.keys()  # a model that no run has made may know nothing
    if of_a_run and not all(isinstance(facts[name], kind) for name, kind in _FACTS.items()):
        raise ValueError("its facts are not those of a run")


def _check_words(about: Mapping[str, Any]) -> None:
    # the sources of words come with it, which a classifier does not wait for
    from litotes.data.words import CUTTINGS

    kind = about["kind"]
    if kind not in WORD_KINDS:
        raise ValueError(f"the kind {kind!r:.60} is unknown; a newer litotes may know it")
    if len(about["tasks"]) != 1 or about["words"] not in CUTTINGS:
        raise ValueError("a model of words has one task, and a known way to cut words")


@dataclass(frozen=True)
class ModelFolder:
    """A model folder that has been opened.

    description: the content of its `litotes.json`. manifest: the hashes of its files. parts: where
    it holds a model per task, the folders of these models.
    """

    path: Path
    description: Mapping[str, Any]
    manifest: Manifest
    parts: tuple[ModelFolder, ...] = ()

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
        """The kind of its answers: a name of `KINDS`."""
        kind: str = self.description.get("kind", CLASSIFICATION)
        return kind

    @property
    def tasks(self) -> dict[str, Task]:
        """The tasks of the model, by name, in the order of its description."""
        several = self.description.get("multi_label", ())
        tasks = {}
        for name, labels in self.description["tasks"].items():
            tasks[name] = Task(name, tuple(labels), multi_label=bool(labels) and name in several)
        return tasks

    @cached_property
    def spec(self) -> EncoderSpec:
        return spec_from_json(self.description["encoder"])

    @property
    def calibration(self) -> dict[str, Calibration]:
        """The calibration of each task that has one."""
        by_task = self.description.get("calibration", {}).items()
        return {task: Calibration.from_json(content) for task, content in by_task}

    @property
    def exits(self) -> Exits | None:
        """The places where texts may leave early; None: every text goes to the end."""
        if "exits" not in self.description:
            return None
        tasks, n_layers = self.description["tasks"], len(self.spec.walk)
        return exits_from_json(self.description["exits"], tasks=tasks, n_layers=n_layers)

    @property
    def label_sets(self) -> dict[str, LabelSets]:
        """The bounds of each task that may be answered with "unsure"."""
        by_task = self.description.get("unsure", {}).items()
        return {task: LabelSets.from_json(content) for task, content in by_task}

    @property
    def stated_hashes(self) -> dict[str, str]:
        """The sha256 of weights and tokenizer, as the manifest states it."""
        return dict(self.manifest.only(HASHED).files)

    @property
    def large_files(self) -> list[Path]:
        """The files to hash before they are read, with those of the bundled encoder it rests on."""
        files, base = [self.path / name for name in HASHED], self.description["base"]
        if base["omitted"] and base["name"] in list(BUNDLED):
            files.append(bundled_weights(base["name"]))
        return files

    def read_file(self, name: str) -> bytes:
        """The content of a file that decides answers, checked."""
        file = self.path / name
        if not file.is_file():
            raise changed_file(file)
        content = file.read_bytes()
        self.manifest.check(file, hashlib.sha256(content).hexdigest())
        return content

    def read_tokenizer(self, content: bytes | None = None) -> PieceTokenizer:
        """The tokenizer alone; the weights are not read. content: of its file, which is checked
        elsewhere.
        """
        content = self.read_file(TOKENIZER) if content is None else content
        longest = self.description["max_pieces"]
        return PieceTokenizer(self.path / TOKENIZER, max_pieces=longest, content=content)

    def read_table(self) -> StaticTable | None:
        """Reads the table that answers before the first layer, checked; None: there is none."""
        if self.exits is None or not self.exits.has_table:
            return None
        n_outputs = {name: task.n_outputs for name, task in self.tasks.items()}
        content = self.read_file(TABLE)
        try:
            return parse_table(content, n_pieces=self.spec.n_vocabulary, n_outputs=n_outputs)
        except ValueError as error:
            raise self.damaged(error) from error

    def damaged(self, reason: object) -> UserError:
        """The error for a description that can be read but makes no model."""
        return UserError(f"{self.path / DESCRIPTION}: damaged ({reason}). {ADVICE}")


@dataclass(frozen=True)
class FileContent:
    """The content of a file, and its sha256. content: None of a file too large to be kept."""

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
    """Explains why a model cannot be used here, and where it can."""
    answers = KINDS[folder.kind]
    if folder.kind == CLASSIFICATION:
        return f"{folder} answers {answers}; a model of kind {' or '.join(kinds)} is needed here."
    return (
        f"{folder} is a {folder.kind} model: it answers {answers}, which is not supported here."
        " `litotes predict`, `evaluate` and `explain` take it; in Python, `litotes.Tagger`."
    )


def is_model_folder(path: Path) -> bool:
    """Tells whether a model has been written there; its description comes last."""
    return (path / DESCRIPTION).is_file()


def read_files(folders: Iterable[ModelFolder]) -> dict[Path, FileContent]:
    """All large files these models are made of, each read once.

    Reading and hashing leave the interpreter free: torch can be imported meanwhile.
    """
    found = {}
    for file in dict.fromkeys(file for folder in folders for file in folder.large_files):
        if file.is_file() and file.stat().st_size > MOST_KEPT_BYTES:
            found[file] = FileContent(sha256_of(file), None)
        elif file.is_file():
            content = file.read_bytes()
            found[file] = FileContent(hashlib.sha256(content).hexdigest(), content)
    return found


def _open(path: Path) -> ModelFolder:
    """The folder without its parts."""
    description, manifest = read_description(path)
    if description.get("kind") == TRANSLATION:
        raise UserError(
            f"{path} holds a translation model, which gives no labels. Ask it with `litotes"
            " translate` (--explain shows what it looked at) or `litotes interpret`; it cannot be"
            " pruned, exported, served or evaluated."
        )
    folder = ModelFolder(path, description, manifest)
    try:
        _check_description(folder)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path / DESCRIPTION}: not readable ({error}). {ADVICE}") from error
    return folder


def read_description(path: Path) -> tuple[dict[str, Any], Manifest]:
    """Reads the `litotes.json` of a folder, checked against its hash, and the manifest.

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
        manifest.check(file, hashlib.sha256(content).hexdigest())
        description = parse_json(content)
        version = description["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{file}: not readable ({error}). {ADVICE}") from error
    if version != FORMAT:
        raise UserError(
            f"{file}: format {version}; this litotes ({__version__}) reads format {FORMAT}. Install"
            " the litotes that wrote it."
        )
    return description, manifest


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


# Folders that gain something, and copies of those that must stay as they are.


def write_label_sets(folder: ModelFolder, label_sets: Mapping[str, LabelSets]) -> None:
    """Replaces the bounds of a folder that holds weights; with none, it answers as before."""
    description = dict(folder.description)
    description.pop("unsure", None)
    if label_sets:
        description["unsure"] = {task: sets.as_json() for task, sets in label_sets.items()}
    write_description(folder.path, description, folder.manifest)


@contextmanager
def whole_copy(
    model: str | Path | ModelFolder,
    out: str | Path | None,
    *,
    names: Collection[str] | None = None,
    more: Sequence[Path] = (),
) -> Iterator[ModelFolder]:
    """The folder itself, or a copy of it for a model that must stay as it is; what fails leaves no
    copy behind.

    names: of the files that a copy has besides its description and its manifest; None: all. more:
    files from elsewhere that it gains.
    """
    folder = open_model(model)
    if out is None:
        if is_builtin(folder.path):
            raise UserError(
                f"This writes into the folder of the model, and {name_of(folder.path)} is not"
                " yours: copy it by --out FOLDER."
            )
        yield folder
        return
    copy = Path(out)
    with free_folder(copy):
        for part in (*folder.parts, folder):
            target = copy / part.path.relative_to(folder.path)
            kept = [file for file in own_files(part.path) if names is None or file.name in names]
            if names is not None:
                kept.append(part.path / DESCRIPTION)
            gained = {file.name: file for file in more if part is folder}
            files = {file.name: file for file in kept} | gained
            # with the hashes as they are stated: damage stays to be noticed in the copy
            stated = part.manifest.only(files.keys() - gained.keys()).files
            added = {name: sha256_of(file) for name, file in gained.items()}
            Manifest({**stated, **added}).write(target)
            # the description last: a folder that has it is whole
            for name in sorted(files, key=DESCRIPTION.__eq__):
                write_bytes(target / name, files[name].read_bytes())
        yield open_model(copy)


# Which texts a model has learned from or been chosen by: a short hash of each, in its folder. A
# model must not be scored on such texts without a word, whatever file they come in. The hashes tell
# whether a text was among them and nothing else about it.

TRAINED_TEXTS = "trained_on.txt"

_N_DIGITS = 12  # of 100,000 texts, one in three billion others is taken for one of them


def text_hash(example: Example) -> str:
    """The same for texts that count as the same (`example_key`)."""
    return hashlib.sha256(example_key(example).encode()).hexdigest()[:_N_DIGITS]


def write_trained_texts(
    folder: Path, examples: Iterable[Example], *, more: Iterable[str] = ()
) -> None:
    """Writes hashes, sorted to hide the order of the data. more: hashes of other such texts."""
    hashes = sorted({*map(text_hash, examples), *more})
    write_text(folder / TRAINED_TEXTS, "".join(f"{one}\n" for one in hashes))


def read_trained_texts(model: str | Path | ModelFolder) -> frozenset[str] | None:
    """The hashes that all models of a folder state; None: one of them states none."""
    hashes: set[str] = set()
    for part in open_model(model, kinds=tuple(KINDS)).models:
        if not (part.path / TRAINED_TEXTS).is_file():  # no training made it
            return None
        hashes.update(part.read_file(TRAINED_TEXTS).decode("ascii", "replace").split())
    return frozenset(hashes)
