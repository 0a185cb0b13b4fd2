"""Texts as pieces on disk, read through the system's own memory: the texts may be larger than ours.

    pieces.bin     int32   a piece's number; bit 30: it continues the word before it
    lines.bin      int64   (line, 3): where the line ends, its document, the hash of its key
    notes.json             sentences about how the texts were read

The folder is made once a run, appears when it is whole, and is read again when the run is resumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.json_text import read_as, to_json
from litotes.core.progress import Watch
from litotes.core.storage import MANIFEST, sha256_of, write_folder
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.training.pretraining.sources import Line, Texts

CONTINUES = 1 << 30
PIECES, LINES = "pieces.bin", "lines.bin"
NOTES, TOKENIZER = "notes.json", "tokenizer.json"
_AT_ONCE = 1000


@dataclass(frozen=True)
class PieceStore:
    """All pieces of all lines, end to end, mapped from disk.

    pieces: (piece,), as the file has them; ends, documents, keys: (line,)
    notes: what the user should know about how they were read.
    """

    pieces: NDArray[np.int32]
    ends: NDArray[np.int64]
    documents: NDArray[np.int64]
    keys: NDArray[np.int64]
    notes: tuple[str, ...] = ()

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each line begins. (line,)"""
        return np.concatenate([[0], self.ends[:-1]])

    def read(self, start: int, end: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Numbers of pieces, and whether each continues a word. (piece,)"""
        stored = np.array(self.pieces[start:end], dtype=np.int64)
        continues = (stored & CONTINUES) > 0
        continues[:1] = False  # what is cut off is a beginning here
        return stored & (CONTINUES - 1), continues


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
    return PieceStore(pieces, np.array(lines[:, 0]), lines[:, 1], lines[:, 2], notes)


def store_key(folder: Path) -> str:
    """A hash of everything in the store."""
    return sha256_of(folder / MANIFEST)[:16]


def _write_pieces(
    folder: Path, lines: Iterable[Line], tokenizer: PieceTokenizer, watch: Watch
) -> None:
    n_lines, end = 0, 0
    with (folder / PIECES).open("wb") as piece_file, (folder / LINES).open("wb") as line_file:
        for some in _chunks(lines):
            texts = tokenizer.encode_whole([line.text for line in some])
            rows = []
            for line, text in zip(some, texts, strict=True):
                if not text.ids:
                    continue
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


def _chunks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    rest = iter(lines)
    while some := list(islice(rest, _AT_ONCE)):
        yield some


def _hash(key: str) -> int:
    """The same on every machine."""
    return int.from_bytes(sha256(key.encode("utf-8", "surrogatepass")).digest()[:8], "big") >> 1
