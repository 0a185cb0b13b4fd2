"""iSarcasmEval: tweets whose own authors say which are sarcastic, and say what they meant.

Abu Farha et al. 2022, "SemEval-2022 Task 6: iSarcasmEval, Intended Sarcasm Detection in English and
Arabic".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.corpus import SARCASM, SPELLINGS, Corpus
from litotes.data.sources.options import choice, require_path
from litotes.data.tables import read_rows
from litotes.data.tables.files import find_files
from litotes.data.tables.rows import Row

OPTIONS = {
    "rephrased": (
        "yes: what the authors say they meant comes with the sarcastic tweets, as literal texts of"
        " training (no)"
    )
}

_FILES = {"train": "train.En.csv", "test": "task_A_En_test.csv"}
_TEXTS = {"train": "tweet", "test": "text"}
_LABEL, _REPHRASED = "sarcastic", "rephrase"


def read(path: Path | None, options: Mapping[str, str]) -> Corpus:
    """The English training and test files in a folder."""
    has_rephrased = choice(options, "rephrased", ("no", "yes")) == "yes"
    folder = require_path(path)
    if not folder.is_dir():
        raise UserError(
            f"{folder} is not a folder: give the one that holds {' and '.join(_FILES.values())}."
        )
    examples: list[Example] = []
    for split, file in find_files(folder, _FILES).items():
        examples += _examples(split, file, has_rephrased=has_rephrased and split == "train")
    return Corpus("isarcasm", tuple(examples), {SARCASM.name: SARCASM})


def _examples(split: str, file: Path, *, has_rephrased: bool) -> Iterator[Example]:
    text = _TEXTS[split]
    needs = [text, _LABEL, _REPHRASED] if has_rephrased else [text, _LABEL]
    for row in read_rows(file, needs=needs):
        if row.word(text) is None:
            continue  # one tweet of the official training file is empty
        label = row.translate(_LABEL, SPELLINGS[SARCASM.name])
        yield _example(row, text, label, split)
        if has_rephrased and label == "sarcastic" and row.word(_REPHRASED) is not None:
            yield _example(row, _REPHRASED, "literal", split)


def _example(row: Row, column: str, label: str, split: str) -> Example:
    # a tweet and what was meant by it say the same: the group keeps them in one split
    return Example(
        row.text(column),
        {SARCASM.name: label},
        source="iSarcasm",
        split=split,
        group=f"{split} {row.number}",
    )
