"""Finds files and reads text line by line; whatever is wrong with them becomes one sentence."""

from __future__ import annotations

import gzip
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from litotes.core.errors import UserError

MAX_CHARS = 1_000_000
"""The longest line and the longest text that are read; anything longer is a damaged file."""

_MAX_BYTES = 4 * MAX_CHARS  # the most that many characters take in UTF-8
_BOM = "\ufeff"
_UTF16_MARKS = (BOM_UTF16_LE, BOM_UTF16_BE)
_REMEDY = "unpack it first and give the plain file"


@dataclass(frozen=True)
class Start:
    """The place to begin reading: after so many rows; in a file of lines, at this line and byte.

    offset: the first byte of the line; of what is read, UTF-8 that is not compressed.
    """

    row: int = 0
    line: int = 1
    offset: int = 0


BEGINNING = Start()


def require_file(path: Path) -> None:
    """Refuses a path at which there is no file."""
    if not path.exists():
        raise UserError(
            f"{path} does not exist: check the path (it is looked up from {Path.cwd()})."
        )
    if path.is_dir():
        raise UserError(f"{path} is a folder where a file is needed: name the file in it.")


def find_files(folder: Path, names: Mapping[str, str]) -> dict[str, Path]:
    """Finds those of the files in `names` that the folder holds, by key.

    A name is a pattern (*, ?) and may have .gz added; where there are both, the plain file is
    taken, and of several the first.
    """
    expected = ", ".join(names.values())
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: give the one that holds {expected}.")
    found = {}
    for key, name in names.items():
        files = sorted(folder.glob(name)) or sorted(folder.glob(f"{name}.gz"))
        if files:
            found[key] = files[0]
    if not found:
        raise UserError(
            f"{folder} holds none of the files expected there: {expected} (each may end in .gz)."
        )
    return found


def find_file(path: Path, name: str) -> Path:
    """The path itself, or the file called `name` in it where it is a folder."""
    if path.is_dir():
        return find_files(path, {name: name})[name]
    require_file(path)
    return path


class Line(NamedTuple):
    """A line of a file, with its end. offset: of its first byte; see `Start`.

    problem: why it is no text; bytes that are not UTF-8 are lone surrogates then.
    """

    number: int
    offset: int
    text: str
    problem: str | None = None


def read_lines(path: Path, *, start: Start = BEGINNING) -> Iterator[Line]:
    """The lines of a UTF-8 or UTF-16 file, gzipped or not, one at a time."""
    require_file(path)
    number, offset = start.line - 1, start.offset
    is_gz = path.suffix.lower() == ".gz"
    limit = UnpackingLimit(path, _REMEDY) if is_gz else None
    try:
        with cast(BinaryIO, gzip.open(path)) if is_gz else path.open("rb") as stream:
            for raw in _raw_lines(path, stream, start):
                number += 1
                if limit is not None:
                    limit.add(len(raw), n_rows=1)
                yield _decode(raw, number, offset, f"{path}, line {number}")
                offset += len(raw)
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path} is UTF-16 and breaks off, or is damaged, after line {number}: fetch it again,"
            " or save it as UTF-8."
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        if str(error).startswith("Not a gzipped file") and not number:
            raise UserError(
                f"{path} is not a gzip file in spite of its name: compress it, or take .gz off the"
                " name."
            ) from error
        raise UserError(
            f"{path} breaks off after line {number}: the gzip file is damaged or incomplete, fetch"
            " it again."
        ) from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from error


def text_lines(path: Path) -> Iterator[tuple[str, str]]:
    """The place and the text of each line, without its end, of a file whose lines are all text."""
    for line in read_lines(path):
        if line.problem is not None:
            raise UserError(line.problem)
        yield f"{path}, line {line.number}", line.text.rstrip("\r\n")


def _raw_lines(path: Path, stream: BinaryIO, start: Start) -> Iterator[bytes]:
    """The lines in UTF-8; of one that is too long only its beginning."""
    if path.is_file():  # a pipe cannot be read twice
        is_utf16 = stream.read(2) in _UTF16_MARKS
        stream.seek(0)
        if is_utf16:
            offset = 0
            # half a surrogate pair becomes bytes that are not UTF-8, which `_decode` reports
            with TextIOWrapper(stream, "utf-16", errors="surrogatepass", newline="\n") as text:
                for line in iter(partial(text.readline, _MAX_BYTES + 1), ""):
                    raw = line.encode(errors="surrogatepass")
                    if offset >= start.offset:
                        yield raw
                    offset += len(raw)
            return
        stream.seek(start.offset)
    yield from iter(partial(stream.readline, _MAX_BYTES + 1), b"")


def _decode(raw: bytes, number: int, offset: int, place: str) -> Line:
    if len(raw) > _MAX_BYTES:
        raise UserError(too_long(place))
    problem = None
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        text = raw.decode(errors="surrogateescape")
        problem = (
            f"{place}: byte {offset + error.start} of the file is not UTF-8 text. Save it as UTF-8"
            " (Excel calls that CSV UTF-8)."
        )
    if offset == 0:
        text = text.removeprefix(_BOM)
    if len(text) > MAX_CHARS:
        raise UserError(too_long(place))
    if problem is None and "\0" in text:
        problem = (
            f"{place} holds a NUL byte: the file is damaged, or no plain text. Save it as UTF-8"
            " text."
        )
    return Line(number, offset, text, problem)


def too_long(place: str) -> str:
    """The sentence for a line or text beyond `MAX_CHARS`."""
    return (
        f"{place} is longer than {MAX_CHARS:,} characters: cut it, or check that the file has line"
        " ends."
    )


# How much a compressed table may unpack to: a small file must not take all memory.

MAX_RATIO = 50
"""Bytes that a compressed file may become for each of its own; tables of texts become 5 to 20."""
FREE_BYTES = 1 << 26
"""The bytes that any file may become, however small it is."""
ROW_BYTES = 100
"""Counted for every row on top of its text; in memory it takes more."""


class UnpackingLimit:
    """Counts what a file unpacks to while it is read, and refuses what goes on beyond reason.

    remedy: how the user can have it read all the same.
    """

    def __init__(self, path: Path, remedy: str) -> None:
        self._path, self._remedy = path, remedy
        self._n_left = max(FREE_BYTES, MAX_RATIO * path.stat().st_size)

    def add(self, n_bytes: int, *, n_rows: int) -> None:
        self._n_left -= n_bytes + ROW_BYTES * n_rows
        if self._n_left < 0:
            raise UserError(
                f"{self._path} unpacks to more than {MAX_RATIO} times its size, as no table of"
                f" texts does: it is damaged, or made to fill the memory. If it is neither,"
                f" {self._remedy}."
            )
