"""What sources of users' own files share: which file is which part, and their options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.registry import can_name_task
from litotes.data.corpus import SPLIT_WORDS, split_by_hash
from litotes.data.sources.options import choice, number
from litotes.data.tables.files import require_file
from litotes.data.words.corpus import WordExample
from litotes.data.words.cutting import CUTTINGS

OPTIONS = {
    "task": "what the answers are called (tags)",
    "words": f"how texts without words are cut later: {', '.join(CUTTINGS)} (treebank)",
    "test": "the share of the texts to test on, where no file or field says which (0)",
}


def task_of(options: Mapping[str, str]) -> str:
    name = options.get("task", "tags")
    if not can_name_task(name):
        raise UserError(f"task={name}: choose a name of letters, digits, - and _.")
    return name


def cutting_of(options: Mapping[str, str]) -> str:
    return choice(options, "words", list(CUTTINGS))


def set_test_apart(
    examples: Sequence[WordExample], options: Mapping[str, str]
) -> list[WordExample]:
    """A share of the texts becomes the test split, the same ones every time."""
    share = number(options, "test", 0.0)
    if share >= 1:
        raise UserError(f"test={share:g} leaves nothing to learn from: choose a share below 1.")
    if not share:
        return list(examples)
    if any(one.split != "train" for one in examples):
        raise UserError(f"test={share:g}: there is a test part already. Leave the option out.")
    return [replace(one, split=split_by_hash(one.key, test_share=share)) for one in examples]


def find_parts(path: Path, endings: Sequence[str]) -> dict[str, Path]:
    """The files of a folder by the split their names begin with; a file alone is learned from."""
    if not path.is_dir():
        require_file(path)
        return {"train": path}
    found: dict[str, Path] = {}
    for file in sorted(path.iterdir()):
        name = file.name.removesuffix(".gz")
        split = SPLIT_WORDS.get(Path(name).stem.lower())
        if split is not None and Path(name).suffix in endings:
            found.setdefault(split, file)
    if not found:
        names = ", ".join(f"train{ending}" for ending in endings)
        raise UserError(f"{path} holds no file called train, valid or test: {names} are read.")
    return found
