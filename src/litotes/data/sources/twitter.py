"""The Twitter entity-sentiment data set: 74,682 tweets about brands and games, the long ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.corpus import SENTIMENT, Corpus, components, split_by_hash, text_key
from litotes.data.sources.options import require_path, whole_number
from litotes.data.tables.files import find_file
from litotes.data.tables.rows import Row, read_records, require_columns, rows_from

OPTIONS = {"min_words": "leave shorter texts out (40)"}

_COLUMNS = ("id", "entity", "sentiment", "text")
# texts of the last two are left out
_LABELS = {"positive": "positive", "negative": "negative", "neutral": "", "irrelevant": ""}


def read(path: Path | None, options: Mapping[str, str]) -> Corpus:
    """The positive and negative texts of a file, or of twitter_training.csv in a folder."""
    min_words = whole_number(options, "min_words", 40)
    file = find_file(require_path(path), "twitter_training.csv")
    kept = _long_texts(file, max(min_words, 1))
    if not kept:
        raise UserError(
            f"{file} has no positive or negative text of {min_words} words or more: choose a"
            " smaller min_words."
        )
    examples = []
    roots = components(_ties(row) for row, _ in kept)
    for (row, label), root in zip(kept, roots, strict=True):
        first, _ = kept[root]
        split = split_by_hash(first.values["id"], test_share=0.1)
        labels, group = {SENTIMENT.name: label}, row.values["id"]
        examples.append(
            Example(row.text("text"), labels, source="Twitter", split=split, group=group)
        )
    return Corpus("twitter", tuple(examples), {SENTIMENT.name: SENTIMENT})


def _long_texts(file: Path, min_words: int) -> list[tuple[Row, str]]:
    """The rows with a label, and it."""
    kept = []
    for row in _rows(file):
        label = row.translate("sentiment", _LABELS)
        n_words = len(row.values["text"].split())
        if label and n_words >= min_words:
            kept.append((row, label))
    return kept


def _ties(row: Row) -> tuple[tuple[str, str], ...]:
    # paraphrases share an id, and a few texts occur under two ids: each must stay in one split
    return ("id", row.require_word("id")), ("text", text_key(row.values["text"]))


def _rows(path: Path) -> Iterator[Row]:
    records = read_records(path)
    first = next(records)
    header = [field.strip().casefold() for field in first.fields]
    # the original file begins with its first tweet
    if "sentiment" not in header and "text" not in header:
        return rows_from(path, _COLUMNS, chain([first], records))
    require_columns(f"{path}, line {first.line}", header, _COLUMNS)
    return rows_from(path, header, records)
