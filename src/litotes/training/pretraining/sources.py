"""Texts to read, one after the other, from files of any size and from the sources of `train`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.numbers import counted
from litotes.core.registry import unknown_name
from litotes.data.corpus import Corpus, text_key
from litotes.data.sources import SOURCES, load, options_of
from litotes.data.tables import kind_of, read_rows
from litotes.data.tables.files import require_file
from litotes.data.tables.rows import COLUMN
from litotes.training.pretraining.recipe import TextSettings


@dataclass(frozen=True)
class Line:
    """A line of a document, or a whole text.

    document: its number; lines of the same one follow one another.
    key: texts with the same key are on the same side, learned from or held out.
    """

    text: str
    document: int
    key: str


class Texts:
    """All lines of the settings' sources, as often as they are asked for; only corpora of `train`
    are kept in memory.
    """

    def __init__(self, settings: TextSettings) -> None:
        self.settings = settings
        self.notes: list[str] = []
        if not settings.sources:
            raise UserError("data.source is empty: name a file or a source.")
        self.files = [source for source in settings.sources if _is_file(source)]
        for source in self.files:
            self._check_file(source)
        self.corpus_sources = [source for source in settings.sources if not _is_file(source)]

    def __iter__(self) -> Iterator[Line]:
        document = 0
        for source in self.files:
            for line in self._read_file(source, document):
                document = line.document + 1
                yield line
        for whole, key in self._corpus_texts:
            for text in self._lines(whole):
                yield Line(text, document, key)
            document += 1

    @cached_property
    def _corpus_texts(self) -> list[tuple[str, str]]:
        """The different training texts of the corpora, with their keys."""
        found: dict[str, tuple[str, str]] = {}
        n_texts = 0
        for source in self.corpus_sources:
            for text, group in self._corpus_rows(source):
                n_texts += 1
                key = text_key(text)
                found.setdefault(key, (text, group or key))
        if n_texts > len(found):
            self.notes.append(
                f"{counted(n_texts - len(found), 'text')} of {n_texts:,} are repetitions and were"
                " left out."
            )
        return list(found.values())

    def _corpus_rows(self, source: str) -> Iterator[tuple[str, str | None]]:
        """Texts and their groups; what is in another split is to test on, and not read."""
        where = self.settings.where
        corpus, n_leaks = load(source).without_leaks()
        self.notes += corpus.notes
        if n_leaks:
            self.notes.append(
                f"{n_leaks} training texts of {corpus.name} also sit in another split and were left"
                " out."
            )
        chosen = corpus.where(variety=where.variety, source=where.source)
        for example in _training_part(chosen, source):
            for text in (example.text, example.pair):
                if text is not None:
                    yield text, example.group

    def _check_file(self, source: str) -> None:
        where = self.settings.where
        require_file(_path_of(source))
        kind_of(_path_of(source))
        if where.variety or where.source:
            raise UserError(
                f"data.where selects from sources such as besstie:PATH; {source} is a file without"
                " varieties. Leave data.where out."
            )
        for option in options_of(source):
            if option != "text":
                raise UserError(unknown_name(option, ["text"], f"option of the file {source}"))

    def _read_file(self, source: str, document: int) -> Iterator[Line]:
        path, column = _path_of(source), options_of(source).get("text", COLUMN)
        is_plain = kind_of(path) == ".txt"
        for row in read_rows(path, needs=(column,)):
            if is_plain and not row.values[column].strip():
                document += 1
                continue
            text = row.text(column)
            for line in [text] if is_plain else self._lines(text):
                yield Line(line, document, text_key(line))
            if not is_plain:
                document += 1

    def _lines(self, text: str) -> list[str]:
        """The lines of a text of several, where they are to be joined; else the text whole."""
        if not self.settings.join_lines:
            return [text]
        return [line for line in text.splitlines() if line.strip()]


def _is_file(source: str) -> bool:
    name = source.partition("?")[0].partition(":")[0]
    return name not in SOURCES and bool(Path(name).suffix)


def _path_of(source: str) -> Path:
    return Path(source.partition("?")[0]).expanduser()


def _training_part(corpus: Corpus, source: str) -> Corpus:
    if "train" not in corpus.splits():
        raise UserError(
            f"{source} has no training texts for this selection, only {', '.join(corpus.splits())}."
        )
    return corpus.where(split="train")
