"""The Twitter entity-sentiment data set: 74,682 short tweets about brands and games, of which the
longer ones are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.corpus import Corpus
from litotes.data.keys import text_key
from litotes.data.sources.options import require_path, whole_number
from litotes.data.splitting import components, split_by_hash
from litotes.data.tables.delimited import read_records, rows_from
from litotes.data.tables.files import find_file
from litotes.data.tables.row import Row, require_columns
from litotes.data.tasks import SENTIMENT

OPTIONS = {"min_words": "leave shorter texts out (40)"}

_COLUMNS = ("id", "entity", "sentiment", "text")
# texts of the last two are left out
_LABELS = {"positive": "positive", "negative": "negative", "neutral": "", "irrelevant": ""}


def read(path: Path | None, options: Mapping[str, str]) -> Corpus:
    """The positive and negative texts of a file, or of twitter_training.csv in a folder."""
    min_words = whole_number(options, "min_words", 40)
    file = find_file(require_path(path), "twitter_training.csv")
    labelled = ((row, row.translate("sentiment", _LABELS)) for row in _rows(file))
    kept = [
        (row, label)
        for row, label in labelled
        if label and len(row.values["text"].split()) >= max(min_words, 1)
    ]
    if not kept:
        raise UserError(
            f"{file} has no positive or negative text of {min_words} words or more: choose a"
            " smaller min_words."
        )
    # Paraphrases share an id, and a few texts occur under two ids: neither may be torn apart.
    roots = components(
        (("id", row.require_word("id")), ("text", text_key(row.values["text"]))) for row, _ in kept
    )
    examples = tuple(
        Example(
            row.text("text"),
            {SENTIMENT.name: label},
            source="Twitter",
            split=split_by_hash(kept[root][0].values["id"], test_share=0.1),
            group=row.values["id"],
        )
        for (row, label), root in zip(kept, roots, strict=True)
    )
    return Corpus("twitter", examples, {SENTIMENT.name: SENTIMENT})


def _rows(path: Path) -> Iterator[Row]:
    records = read_records(path)
    first = next(records)
    header = [field.strip().casefold() for field in first[1]]
    # the original file begins with its first tweet
    if "sentiment" not in header and "text" not in header:
        return rows_from(path, _COLUMNS, chain([first], records))
    require_columns(f"{path}, line {first[0]}", header, _COLUMNS)
    return rows_from(path, header, records)
