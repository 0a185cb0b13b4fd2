"""VADER's four domains: tweets, film reviews, product reviews and editorials.

Twenty people rated each sentence from −4 to 4. Hutto and Gilbert 2014, "VADER: A Parsimonious
Rule-based Model for Sentiment Analysis of Social Media Text", ICWSM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.corpus import SENTIMENT, Corpus, components, split_by_hash, text_key
from litotes.data.sources.options import number, require_path
from litotes.data.tables.files import find_files
from litotes.data.tables.rows import Row, read_records, rows_from

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
    """The texts that people found positive or negative; a tenth of them is the test split."""
    least = number(options, "least", 0.5)
    folder = require_path(path)
    if not folder.is_dir():
        raise UserError(
            f"{folder} is not a folder: give the one that holds {_FILES['tweets']} and its like."
        )
    # a mean of exactly 0 takes no side
    rated = [one for one in _read_ratings(folder) if one.rating and abs(one.rating) >= least]
    if not rated:
        raise UserError(
            f"{folder} has no text rated {least:g} or further from 0: choose a smaller least."
        )
    examples = []
    roots = components(text.ties() for text in rated)
    for text, root in zip(rated, roots, strict=True):
        split = split_by_hash(rated[root].document, test_share=0.1)
        examples.append(text.example(split))
    return Corpus("vader", tuple(examples), {SENTIMENT.name: SENTIMENT})


def ratings(folder: Path) -> list[tuple[Example, float]]:
    """Every sentence, without a label, and its mean rating; in the order of its document."""
    rated = _read_ratings(folder)
    return [(replace(one.example("train"), labels={}), one.rating) for one in rated]


def _read_ratings(folder: Path) -> list[_RatedText]:
    return [
        _RatedText(domain, row, row.as_number("rating"))
        for domain, file in find_files(folder, _FILES).items()
        for row in _rows(file)
    ]


@dataclass(frozen=True)
class _RatedText:
    domain: str
    row: Row
    rating: float

    @property
    def document(self) -> str:
        """The review or article a sentence is from: the number before the underscore."""
        return f"{self.domain} {self.row.require_word('id').partition('_')[0]}"

    def ties(self) -> Iterator[tuple[str, str]]:
        # some texts occur in two documents: texts and documents must each stay in one split
        yield "document", self.document
        yield "text", text_key(self.row.text("text"))

    def example(self, split: str) -> Example:
        labels = {SENTIMENT.name: "positive" if self.rating > 0 else "negative"}
        text = self.row.text("text")
        return Example(text, labels, source=self.domain, split=split, group=self.document)


def _rows(file: Path) -> Iterator[Row]:
    """The files have no header and no quoting."""
    return rows_from(file, _COLUMNS, read_records(file, delimiter="\t", quotes=False))
