"""VADER's four domains: tweets, film reviews, product reviews and editorials, each sentence rated
by twenty people from −4 to 4.

Hutto and Gilbert 2014, "VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social
Media Text", ICWSM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.corpus import Corpus
from litotes.data.keys import text_key
from litotes.data.sources.options import require_path, number
from litotes.data.splitting import components, split_by_hash
from litotes.data.tables.delimited import read_records, rows_from
from litotes.data.tables.files import find_files
from litotes.data.tables.row import Row
from litotes.data.tasks import SENTIMENT

OPTIONS = {
    "least": (
        "leave out texts whose mean rating is nearer to 0 than this (0.5): people did not agree on"
        " a side"
    )
}

_FILES = {
    "tweets": "tweets_GroundTruth.txt",
    "film reviews": "movieReviewSnippets_GroundTruth.txt",
    "product reviews": "amazonReviewSnippets_GroundTruth.txt",
    "editorials": "nytEditorialSnippets_GroundTruth.txt",
}
_COLUMNS = ("id", "rating", "text")


def read(path: Path | None, options: Mapping[str, str]) -> Corpus:
    """The texts of all domains in a folder that people found positive or negative; a tenth of them
    is the test split.
    """
    least, folder = number(options, "least", 0.5), require_path(path)
    if not folder.is_dir():
        raise UserError(
            f"{folder} is no folder: give the one that holds {_FILES['tweets']} and its like."
        )
    rated = [
        (domain, row, rating)
        for domain, file in find_files(folder, _FILES).items()
        for row in _rows(file)
        if _is_clear(rating := row.as_number("rating"), least)
    ]
    if not rated:
        raise UserError(
            f"{folder} has no text rated {least:g} or further from 0: choose a smaller least."
        )
    documents = [_document(domain, row) for domain, row, _ in rated]
    # Sentences of one review or article hang together, and some texts occur twice: neither may be
    # torn apart.
    roots = components(
        (("document", name), ("text", text_key(row.text("text"))))
        for name, (_, row, _) in zip(documents, rated, strict=True)
    )
    examples = tuple(
        Example(
            row.text("text"),
            {SENTIMENT.name: "positive" if rating > 0 else "negative"},
            source=domain,
            split=split_by_hash(documents[root], test_share=0.1),
            group=documents[place],
        )
        for place, ((domain, row, rating), root) in enumerate(zip(rated, roots, strict=True))
    )
    return Corpus("vader", examples, {SENTIMENT.name: SENTIMENT})


def _is_clear(rating: float, least: float) -> bool:
    """Whether people leant to a side: a mean of exactly 0 never is."""
    return rating != 0 and abs(rating) >= least


def _rows(file: Path) -> Iterator[Row]:
    """The files have no header and no quoting."""
    return rows_from(file, _COLUMNS, read_records(file, delimiter="\t", quotes=False))


def _document(domain: str, row: Row) -> str:
    """What a sentence is of: the number before the underscore, or its own."""
    return f"{domain} {row.require_word('id').partition('_')[0]}"
