"""BESSTIE: sentiment and sarcasm in Australian, Indian and British English, from Google reviews and
Reddit comments.

Srirag et al. 2025, "BESSTIE: A Benchmark for Sentiment and Sarcasm Classification for Varieties of
English", ACL Findings. Read in the long form it is published in (a row for each text and task) and
in the wide form of the ALTA 2026 shared task.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.corpus import SARCASM, SENTIMENT, SPLIT_WORDS, SPLITS, Corpus
from litotes.data.sources.options import choice, require_path
from litotes.data.tables import read_rows
from litotes.data.tables.files import find_files, require_file
from litotes.data.tables.rows import Row, require_columns

OPTIONS = {
    "split": "train, valid or test: the split of a single file whose name does not say it",
    "prefix": "variety puts source and variety before every text, as words the model reads (none)",
}

_TASKS = {task.name: task for task in (SENTIMENT, SARCASM)}
_LABELS = {  # as floats too: that is how a table with an empty cell in the column stores them
    task.name: dict(zip(("0", "1", "0.0", "1.0"), task.labels * 2, strict=True))
    for task in _TASKS.values()
}
_VARIETIES = {variety.casefold(): variety for variety in ("en-AU", "en-IN", "en-UK")}
_ADJECTIVES = {"en-au": "australian", "en-in": "indian", "en-uk": "british"}
_SOURCES = {source.casefold(): source for source in ("Google", "Reddit")}


@dataclass(frozen=True)
class _LabelledText:
    """What one row says: a text with the labels it gives."""

    text: str
    variety: str
    source: str
    labels: Mapping[str, str]


def read(path: Path | None, options: Mapping[str, str]) -> Corpus:
    """A folder with train, valid and test files, or one such file."""
    prefix = choice(options, "prefix", ("none", "variety"))
    examples: list[Example] = []
    for split, file in _files(require_path(path), options).items():
        examples += _examples(file, split)
    if prefix == "variety":
        examples = [_prefix(example) for example in examples]
    return Corpus("besstie", tuple(examples), _TASKS)


def with_prefix(text: str, *, variety: str, source: str) -> str:
    """The text with its source and variety before it.

    BESSTIE gives both, and how often a text is sarcastic depends on them.

    >>> with_prefix("Cheers for nothing", variety="en-UK", source="Reddit")
    'reddit british: Cheers for nothing'
    """
    return f"{source.casefold()} {_ADJECTIVES.get(variety.casefold(), variety)}: {text}"


def _prefix(example: Example) -> Example:
    variety, source = str(example.variety), str(example.source)
    return replace(example, text=with_prefix(example.text, variety=variety, source=source))


def _files(path: Path, options: Mapping[str, str]) -> dict[str, Path]:
    if path.is_dir():
        if "split" in options:
            raise UserError(
                f"split={options['split']} is for a single file, and {path} is a folder: leave it"
                " out."
            )
        return find_files(path, {split: f"{split}.csv" for split in SPLITS})
    require_file(path)
    if "split" in options:
        return {choice(options, "split", SPLITS): path}
    words = re.findall("[a-z]+", path.name.lower())
    named = {SPLIT_WORDS[word] for word in words if word in SPLIT_WORDS}
    if len(named) != 1:
        raise UserError(
            f"The name of {path} does not say its split: add ?split=train, ?split=valid or"
            " ?split=test."
        )
    return {named.pop(): path}


def _examples(path: Path, split: str) -> Iterator[Example]:
    rows = read_rows(path, needs=("text", "variety", "source"))
    first = next(rows)
    all_rows = chain([first], rows)
    if _is_long_form(path, first.values.keys(), split):
        labelled = _merge_tasks(_read_long(row, split) for row in all_rows)
    else:
        labelled = map(_read_wide, all_rows)
    for item in labelled:
        yield Example(item.text, item.labels, variety=item.variety, source=item.source, split=split)


def _is_long_form(path: Path, columns: Collection[str], split: str) -> bool:
    """Whether the file has a row for each text and task; refuses one that lacks its columns."""
    if "label" in columns or "task" in columns:
        require_columns(str(path), columns, ("label", "task"))
        return True
    if split != "test":  # an unlabelled test file has neither column
        require_columns(str(path), columns, tuple(_TASKS))
    return False


def _read_long(row: Row, split: str) -> _LabelledText:
    task = row.translate("task", {name: name for name in _TASKS}, "task")
    if split == "test" and row.word("label") is None:
        return _labelled_text(row, {})
    return _labelled_text(row, {task: row.translate("label", _LABELS[task])})


def _read_wide(row: Row) -> _LabelledText:
    labels = {}
    for task in _TASKS:
        if row.word(task) is not None:
            labels[task] = row.translate(task, _LABELS[task])
    return _labelled_text(row, labels)


def _labelled_text(row: Row, labels: Mapping[str, str]) -> _LabelledText:
    variety = row.translate("variety", _VARIETIES, "variety")
    source = row.translate("source", _SOURCES, "source")
    return _LabelledText(row.text("text"), variety, source, labels)


def _merge_tasks(items: Iterable[_LabelledText]) -> Iterable[_LabelledText]:
    """The rows of a text for the two tasks as one; a second row for the same task stays apart."""
    merged: dict[tuple[str, str, str, int], _LabelledText] = {}
    for item in items:
        n_copies = 0
        while True:
            key = (item.text, item.variety, item.source, n_copies)
            earlier = merged[key].labels if key in merged else {}
            if not earlier.keys() & item.labels.keys():
                break
            n_copies += 1  # a label given again, which the audit must see
        merged[key] = replace(item, labels={**earlier, **item.labels})
    return merged.values()
