"""Five GLUE tasks in their official TSV files, to compare with published numbers.

Wang et al. 2019, "GLUE: A Multi-Task Benchmark and Analysis Platform for Natural Language
Understanding", ICLR.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.values import Example, Label, Task
from litotes.data.corpus import SENTIMENT, Corpus
from litotes.data.sources.options import require_path
from litotes.data.tables import read_rows
from litotes.data.tables.files import find_files
from litotes.data.tables.rows import Row

_FILES = {"train": "train.tsv", "valid": "dev.tsv"}  # the official test files are unlabelled
_ENTAILMENT = Task("entailment", ("entailment", "not_entailment"))
_ENTAILMENT_WORDS = {word: word for word in _ENTAILMENT.labels}


@dataclass(frozen=True)
class GlueTask:
    """The folder of a task, its columns, and how its labels are spelt (not for a regression)."""

    name: str
    folder: str
    task: Task
    text: str
    pair: str | None
    label: str
    words: Mapping[str, str]


SST2 = GlueTask(
    "sst2", "SST-2", SENTIMENT, "sentence", None, "label", {"0": "negative", "1": "positive"}
)
RTE = GlueTask(
    "rte",
    "RTE",
    _ENTAILMENT,
    "sentence1",
    "sentence2",
    "label",
    _ENTAILMENT_WORDS,
)
QNLI = GlueTask(
    "qnli",
    "QNLI",
    _ENTAILMENT,
    "question",
    "sentence",
    "label",
    _ENTAILMENT_WORDS,
)
MRPC = GlueTask(
    "mrpc",
    "MRPC",
    Task("paraphrase", ("different", "paraphrase")),
    "#1 String",
    "#2 String",
    "Quality",
    {"0": "different", "1": "paraphrase"},
)
STSB = GlueTask("stsb", "STS-B", Task("similarity", ()), "sentence1", "sentence2", "score", {})


def read(glue: GlueTask, path: Path | None, options: Mapping[str, str]) -> Corpus:
    """The training and development files of one task, in its own folder or one that holds it."""
    folder = require_path(path)
    if (folder / glue.folder).is_dir():
        folder = folder / glue.folder
    if not folder.is_dir():
        raise UserError(
            f"{folder} is not a folder: give the folder {glue.folder}, or the one that holds it."
        )
    needs = [column for column in (glue.text, glue.pair, glue.label) if column is not None]
    examples: list[Example] = []
    for split, file in find_files(folder, _FILES).items():
        rows = read_rows(file, needs=needs, quotes=False)
        examples += [_example(row, glue, split) for row in rows]
    return Corpus(f"glue/{glue.name}", tuple(examples), {glue.task.name: glue.task})


def _example(row: Row, glue: GlueTask, split: str) -> Example:
    label: Label
    if glue.task.is_regression:
        label = _score(row, glue.label)
    else:
        label = row.translate(glue.label, glue.words)
    pair = None if glue.pair is None else row.text(glue.pair)
    return Example(row.text(glue.text), {glue.task.name: label}, pair=pair, split=split)


def _score(row: Row, column: str) -> Label:
    score = row.as_number(column)
    if not 0 <= score <= 5:
        raise UserError(
            f"{row.at(column)}: a similarity of {score} does not lie between 0 and 5. Mend it, or"
            " take the row out."
        )
    return score
