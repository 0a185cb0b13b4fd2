"""Texts to read, one after the other, from files of any size and from the sources of `train`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import chain, filterfalse, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.json_text import read_as, to_json
from litotes.core.numbers import counted
from litotes.core.progress import Watch
from litotes.core.registry import unknown_name
from litotes.core.storage import MANIFEST, sha256_of, write_folder
from litotes.core.values import Example
from litotes.data.corpus import text_key
from litotes.data.sources import SOURCES, load, options_of
from litotes.data.tables import kind_of, read_rows
from litotes.data.tables.files import require_file
from litotes.data.tables.rows import COLUMN
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.training.recipe import TextSettings


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
        for source in filter(_is_file, settings.sources):
            self._check_file(source)

    def __iter__(self) -> Iterator[Line]:
        document = 0
        for found in chain(self._file_lines(), self._corpus_lines()):
            if found is None:
                document += 1
            else:
                text, key = found
                yield Line(text, document, key)

    def _file_lines(self) -> Iterator[tuple[str, str] | None]:
        """Lines with their keys; None: a document ends."""
        for source in filter(_is_file, self.settings.sources):
            path, column = _path_of(source), options_of(source).get("text", COLUMN)
            is_plain = kind_of(path) == ".txt"
            for row in read_rows(path, needs=(column,)):
                if not is_plain or row.values[column].strip():
                    text = row.text(column)
                    for line in [text] if is_plain else self._lines(text):
                        yield line, text_key(line)
                    if is_plain:
                        continue
                yield None
            yield None

    def _corpus_lines(self) -> Iterator[tuple[str, str] | None]:
        for text, key in self._corpus_texts:
            yield from ((line, key) for line in self._lines(text))
            yield None

    @cached_property
    def _corpus_texts(self) -> list[tuple[str, str]]:
        """The different training texts of the corpora, with their keys."""
        texts = [
            (text, example.group)
            for source in filterfalse(_is_file, self.settings.sources)
            for example in self._training_texts(source)
            for text in (example.text, example.pair)
            if text is not None
        ]
        found: dict[str, tuple[str, str]] = {}
        for text, group in texts:
            key = text_key(text)
            found.setdefault(key, (text, group or key))
        if n_again := len(texts) - len(found):
            self.notes.append(
                f"{counted(n_again, 'text')} of {len(texts):,} are repetitions and were left out."
            )
        return list(found.values())

    def _training_texts(self, source: str) -> Iterator[Example]:
        """Reads training texts; what is in another split is to test on."""
        where = self.settings.where
        corpus, n_leaks = load(source).without_leaks()
        self.notes += corpus.notes
        if n_leaks:
            self.notes.append(
                f"{n_leaks} training texts of {corpus.name} also sit in another split and were left"
                " out."
            )
        chosen = corpus.where(variety=where.variety, source=where.source)
        if "train" not in chosen.splits():
            raise UserError(
                f"{source} has no training texts for this selection, only"
                f" {', '.join(chosen.splits())}."
            )
        yield from chosen.where(split="train")

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


# Texts as pieces on disk, read through the system's own memory: the texts may be larger than ours.
#
#     pieces.bin     int32   a piece's number; bit 30: it continues the word before it
#     lines.bin      int64   (line, 3): where the line ends, its document, the hash of its key
#     notes.json             sentences about how the texts were read
#
# The folder is made once a run, appears when it is whole, and is read again when the run is
# resumed.

Numbers = NDArray[np.int64]
CONTINUES = 1 << 30
PIECES, LINES = "pieces.bin", "lines.bin"
NOTES, TOKENIZER = "notes.json", "tokenizer.json"
_AT_ONCE = 1000


@dataclass(frozen=True)
class PieceStore:
    """All pieces of all lines, end to end, mapped from disk.

    pieces: (piece,), as the file has them; lines: where each ends, its document, the hash of its
    key, (line, 3). notes: what the user should know about how they were read.
    """

    pieces: NDArray[np.int32]
    lines: Numbers
    notes: tuple[str, ...] = ()

    def read(self, start: int, end: int) -> Numbers:
        """Numbers of pieces, and 1 for each that continues a word. (2, piece)"""
        stored = np.array(self.pieces[start:end], dtype=np.int64)
        read = np.stack([stored & (CONTINUES - 1), stored & CONTINUES > 0])
        read[1, :1] = 0  # what is cut off is a beginning here
        return read


def write_store(folder: Path, texts: Texts, tokenizer: PieceTokenizer, *, watch: Watch) -> None:
    """Tokenizes the texts into a new folder."""

    def fill(staged: Path) -> None:
        (staged / TOKENIZER).write_text(tokenizer.to_json(), "utf-8")
        _write_pieces(staged, texts, tokenizer, watch)
        (staged / NOTES).write_text(to_json(texts.notes), "utf-8")

    write_folder(folder, fill)


def open_store(folder: Path) -> PieceStore:
    lines = np.memmap(folder / LINES, dtype=np.int64, mode="r").reshape(-1, 3)
    pieces = np.memmap(folder / PIECES, dtype=np.int32, mode="r")
    notes = read_as(folder / NOTES, tuple[str, ...], advice="Choose another --out.")
    return PieceStore(pieces, lines, notes)


def store_key(folder: Path) -> str:
    """A hash of everything in the store."""
    return sha256_of(folder / MANIFEST)[:16]


def _write_pieces(
    folder: Path, lines: Iterable[Line], tokenizer: PieceTokenizer, watch: Watch
) -> None:
    n_lines, end, rest = 0, 0, iter(lines)
    with (folder / PIECES).open("wb") as piece_file, (folder / LINES).open("wb") as line_file:
        while some := list(islice(rest, _AT_ONCE)):
            texts = tokenizer.encode_whole([line.text for line in some])
            rows = []
            for line, text in zip(some, texts, strict=True):
                if text.ids:
                    numbers = np.array(text.ids, dtype=np.int32)
                    numbers[np.array(text.continues)] |= CONTINUES
                    piece_file.write(numbers.tobytes())
                    end += len(numbers)
                    rows.append((end, line.document, _hash(line.key)))
            line_file.write(np.array(rows, dtype=np.int64).tobytes())
            n_lines += len(some)
            watch("reading texts", n_lines, n_lines, f"{end:,} pieces")
    if not end:
        raise UserError("data.source holds no text at all. Give files with at least one text.")


def _hash(key: str) -> int:
    """The same on every machine."""
    return int.from_bytes(sha256(key.encode("utf-8", "surrogatepass")).digest()[:8], "big") >> 1


# The blocks a language model reads: lines cut to what fits, or joined up to it.
#
# A line that is too long becomes several blocks; nothing is left out. With joined lines a block
# holds as many lines of a document as fit, whole ones: FULL-SENTENCES within documents (Liu et al.
# 2019, arXiv 1907.11692, §4.2).

MOST_HELD_OUT = 200_000
"""Pieces to measure perplexity on, at most: more would take time and tell nothing new."""


@dataclass(frozen=True)
class Blocks:
    """Blocks of a store. rows: where each begins and ends, its document, the key of its first line,
    (block, 4). cuts: where any line, or part of a line that is too long, begins.
    """

    store: PieceStore
    rows: Numbers
    cuts: Numbers

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def lengths(self) -> Numbers:
        return np.asarray(self.rows[:, 1] - self.rows[:, 0])

    @property
    def n_pieces(self) -> int:
        return int(self.lengths.sum())

    def span(self, place: int) -> tuple[int, int]:
        """Returns where a block begins and ends."""
        return int(self.rows[place, 0]), int(self.rows[place, 1])

    def hold_out(self, share: float) -> tuple[Blocks, Blocks]:
        """The rest, and about `share` of the pieces: those whose keys' hashes are the smallest.

        Blocks that begin with the same line are on the same side.
        """
        keys = self.rows[:, 3]
        order = np.argsort(keys, kind="stable")
        n_wanted = min(share * self.n_pieces, MOST_HELD_OUT)
        last = min(int(np.searchsorted(self.lengths[order].cumsum(), n_wanted)), len(self) - 1)
        held = keys <= keys[order[last]]
        if held.all():
            raise UserError(
                "There are too few different texts to hold some out. Give more texts, or lower"
                " model.max_pieces."
            )
        return replace(self, rows=self.rows[~held]), replace(self, rows=self.rows[held])

    def count_pieces(self, n_vocabulary: int) -> Numbers:
        """Counts each piece of the vocabulary. (piece of the vocabulary,)"""
        counts = np.zeros(n_vocabulary, dtype=np.int64)
        for first in range(0, len(self), _SPANS_AT_ONCE):
            spans = self.rows[first : first + _SPANS_AT_ONCE, :2].tolist()
            some = np.concatenate([self.store.read(*span)[0] for span in spans])
            counts += np.bincount(some, minlength=n_vocabulary)
        return counts


_SPANS_AT_ONCE = 4096


def make_blocks(store: PieceStore, room: int, *, join_lines: bool) -> Blocks:
    """All blocks of at most `room` pieces: lines, and parts of those that are too long."""
    ends, documents, keys = np.array(store.lines).T
    starts = np.append(0, ends[:-1])
    n_parts = -(-(ends - starts) // room)  # of each line
    line = np.repeat(np.arange(len(ends)), n_parts)  # of each part
    number = np.arange(len(line)) - np.repeat(n_parts.cumsum() - n_parts, n_parts)
    cuts = starts[line] + room * number
    parts = np.stack([cuts, np.minimum(cuts + room, ends[line]), documents[line], keys[line]], 1)
    return Blocks(store, _join(parts, room) if join_lines else parts, cuts)


def _join(parts: Numbers, room: int) -> Numbers:
    """As many parts of a document together as fit; a block has the key of its first."""
    starts, ends, documents, _ = parts.T
    # the part after the last that fits behind each, or after the last of its document
    fits = np.searchsorted(ends, starts + room, side="right")
    after = np.minimum(fits, np.searchsorted(documents, documents, side="right"))
    firsts, first = [], 0
    while first < len(parts):
        firsts.append(first)
        first = int(after[first])
    rows = parts[firsts]
    rows[:, 1] = ends[after[firsts] - 1]
    return rows
