"""iSarcasmEval: tweets whose own authors say which are sarcastic, and say what they meant.

Abu Farha et al. 2022, "SemEval-2022 Task 6: iSarcasmEval, Intended Sarcasm Detection in English and
Arabic".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.corpus import Corpus
from litotes.data.sources.options import choice, require_path
from litotes.data.tables.files import find_files
from litotes.data.tables.row import Row
from litotes.data.tables.rows import read_rows
from litotes.data.tasks import SARCASM, SPELLINGS

OPTIONS = {
    "rephrased": (
        "yes: what the authors say they meant comes with the sarcastic tweets, as literal texts of"
        " training (no)"
    )
}

_FILES = {"train": "train.En.csv", "test": "task_A_En_test.csv"}
_TEXTS = {"train": "tweet", "test": "text"}
_LABEL, _MEANT = "sarcastic", "rephrase"


def read(path: Path | None, options: Mapping[str, str]) -> Corpus:
    """The English training and test files in a folder."""
    is_rephrased, folder = choice(options, "rephrased", ("no", "yes")) == "yes", require_path(path)
    if not folder.is_dir():
        raise UserError(
            f"{folder} is no folder: give the one that holds {' and '.join(_FILES.values())}."
        )
    examples = tuple(
        example
        for split, file in find_files(folder, _FILES).items()
        for example in _examples(split, file, is_rephrased=is_rephrased)
    )
    return Corpus("isarcasm", examples, {SARCASM.name: SARCASM})


def _examples(split: str, file: Path, *, is_rephrased: bool) -> Iterator[Example]:
    with_meant = is_rephrased and split == "train"
    for row in read_rows(file, needs=[_TEXTS[split], _LABEL, *([_MEANT] if with_meant else [])]):
        if row.word(_TEXTS[split]) is None:
            continue  # one tweet of the official training file is empty
        label = row.translate(_LABEL, SPELLINGS[SARCASM.name])
        yield _example(row, _TEXTS[split], label, split)
        if with_meant and label == "sarcastic" and row.word(_MEANT) is not None:
            yield _example(row, _MEANT, "literal", split)


def _example(row: Row, column: str, label: str, split: str) -> Example:
    """A tweet and what was meant by it are about the same thing: they stay on one side of every
    split.
    """
    return Example(
        row.text(column),
        {SARCASM.name: label},
        source="iSarcasm",
        split=split,
        group=f"{split} {row.number}",
    )
