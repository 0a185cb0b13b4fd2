"""Sarcasm SIGN: sarcastic tweets, and what people say was meant.

Peled and Reichart 2017, arXiv 1704.06836: train.csv, dev.csv and test.csv, a tweet, a comma and an
interpretation by one person a line, five lines a tweet or more. The files divide lines, not tweets:
a tweet can be in two of them. Read here for both of its uses, as words (`data/words`) and as pairs
(`data/parallel.py`), so that both know the same tweets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from litotes.core.errors import UserError
from litotes.data.corpus import text_key
from litotes.data.tables.files import find_files, read_lines

PARTS = {"train": "train.csv", "dev": "dev.csv", "test": "test.csv"}


@dataclass(frozen=True)
class Interpreted:
    """What one person made of a tweet. part: of `PARTS`."""

    part: str
    tweet: str
    meant: str

    @property
    def key(self) -> str:
        """What makes two tweets the same."""
        return text_key(self.tweet)


def read_interpretations(folder: Path) -> Iterator[Interpreted]:
    """Line by line. meant: empty where the person wrote nothing."""
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: give the one that holds train.csv.gz.")
    for part, file in find_files(folder, PARTS).items():
        for number, line in read_lines(file):
            # tweets hold no comma: the first one ends them; few lines lack the blank after it
            tweet, comma, meant = line.partition(",")
            if not comma or not tweet.strip():
                raise UserError(
                    f"{file}, line {number}: a tweet, a comma and its interpretation are expected."
                )
            yield Interpreted(part, tweet.strip(), meant.strip())


def note_silent(n_silent: int) -> tuple[str, ...]:
    """The note for lines without an interpretation."""
    return (f"{n_silent} lines without an interpretation were left out.",) if n_silent else ()
