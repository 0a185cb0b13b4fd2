"""The irony task of TweetEval: tweets found by their hashtags and then judged by people.

Van Hee et al. 2018, "SemEval-2018 Task 3: Irony Detection in English Tweets"; Barbieri et al. 2020,
"TweetEval". Irony is read as sarcasm, which it mostly is: a score here says how far a model of
sarcasm generalises.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.corpus import SARCASM, SPELLINGS, Corpus
from litotes.data.sources.options import require_path
from litotes.data.tables import read_rows
from litotes.data.tables.files import find_files
from litotes.data.tables.rows import Row

_FILES = {"train": "train.csv", "valid": "val.csv", "test": "test.csv"}


def read(path: Path | None, options: Mapping[str, str]) -> Corpus:
    """The three files of a folder."""
    folder = require_path(path)
    if not folder.is_dir():
        raise UserError(
            f"{folder} is not a folder: give the one that holds {', '.join(_FILES.values())}."
        )
    examples: list[Example] = []
    for split, file in find_files(folder, _FILES).items():
        rows = read_rows(file, needs=("text", "label"))
        examples += [_example(row, split) for row in rows]
    return Corpus("irony", tuple(examples), {SARCASM.name: SARCASM})


def _example(row: Row, split: str) -> Example:
    labels = {SARCASM.name: row.translate("label", SPELLINGS[SARCASM.name])}
    return Example(row.text("text"), labels, source="irony tweets", split=split)
