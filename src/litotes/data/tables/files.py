"""Finds files and reads text line by line; whatever is wrong with them becomes one sentence."""

from __future__ import annotations

import gzip
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO, cast

from litotes.core.errors import UserError

MAX_CHARS = 1_000_000
"""The longest line and the longest text that are read; anything longer is a damaged file."""

_MAX_BYTES = 4 * MAX_CHARS  # the most that many characters take in UTF-8
_CHUNK = 1 << 20
_BOM = "\ufeff"
_REMEDY = "unpack it first and give the plain file"


@dataclass(frozen=True)
class Start:
    """Where reading begins: after so many rows; in a file of lines, at this line and byte.

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
    """Of the files in `names`, those that the folder holds, by key.

    A name may have .gz added; where there are both, the plain file is taken.
    """
    found = {}
    for key, name in names.items():
        path = _plain_or_gz(folder / name)
        if path is not None:
            found[key] = path
    if not found:
        raise UserError(
            f"{folder} holds none of the files expected there: {', '.join(names.values())} (each"
            " may end in .gz)."
        )
    return found


def find_file(path: Path, name: str) -> Path:
    """The path itself, or the file called `name` in it where it is a folder."""
    if path.is_dir():
        return find_files(path, {name: name})[name]
    require_file(path)
    return path


def read_lines(
    path: Path, *, start: Start = BEGINNING, lenient: bool = False
) -> Iterator[tuple[int, str]]:
    """Number and text of each line of a UTF-8 or UTF-16 file, gzipped or not, one at a time.

    lenient: bytes that are not text become lone surrogates, and a NUL stays.
    """
    for number, offset, raw in raw_lines(path, start=start):
        yield number, _decode(raw, f"{path}, line {number}", offset, lenient)


def raw_lines(path: Path, *, start: Start = BEGINNING) -> Iterator[tuple[int, int, bytes]]:
    """Number, offset and bytes of each line; of one that is too long only its beginning."""
    require_file(path)
    number, offset = start.line - 1, start.offset
    if _is_gz(path) and not offset and path.is_file():  # a pipe cannot be read twice
        found = path.stat()
        _check_unpacking(path, found.st_size, found.st_mtime_ns)
    try:
        with _open(path) as stream:
            if offset:  # which a pipe, that cannot seek, never has
                stream.seek(offset)
            while raw := stream.readline(_MAX_BYTES + 1):
                number += 1
                yield number, offset, raw
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


def _plain_or_gz(path: Path) -> Path | None:
    candidates = (path, path.with_name(f"{path.name}.gz"))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _open(path: Path) -> BinaryIO:
    stream = cast(BinaryIO, gzip.open(path)) if _is_gz(path) else path.open("rb")  # noqa: SIM115
    if not path.is_file():  # a pipe cannot be read twice
        return stream
    start = stream.read(2)
    stream.seek(0)
    return utf16_as_utf8(stream) if start in UTF16_MARKS else stream


def _is_gz(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


@lru_cache(maxsize=64)  # a table is opened several times: for its header, its spans, its rows
def _check_unpacking(path: Path, n_bytes: int, changed_at: int) -> None:
    """Unpacks a .gz file once without keeping anything, before its rows may fill the memory.

    n_bytes, changed_at: tell one content of the file from the next.
    """
    limit = UnpackingLimit(path, _REMEDY)
    with suppress(EOFError, zlib.error, OSError), gzip.open(path) as stream:  # reported when read
        while chunk := stream.read(_CHUNK):
            limit.add(len(chunk), n_rows=chunk.count(b"\n"))


def _decode(raw: bytes, place: str, offset: int, lenient: bool) -> str:
    if len(raw) > _MAX_BYTES:
        raise UserError(too_long(place))
    try:
        line = raw.decode(errors="surrogateescape" if lenient else "strict")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{place}: byte {offset + error.start} of the file is not UTF-8 text. Save it as UTF-8"
            " (Excel calls that CSV UTF-8)."
        ) from error
    if offset == 0:
        line = line.removeprefix(_BOM)
    if len(line) > MAX_CHARS:
        raise UserError(too_long(place))
    if "\0" in line and not lenient:
        raise UserError(
            f"{place} holds a NUL byte: the file is damaged, or no plain text. Save it as UTF-8"
            " text."
        )
    return line


def too_long(place: str) -> str:
    """The sentence for a line or text beyond `MAX_CHARS`."""
    return (
        f"{place} is longer than {MAX_CHARS:,} characters: cut it, or check that the file has line"
        " ends."
    )


# UTF-16 files, as Excel exports "Unicode text", read as if they were UTF-8.

UTF16_MARKS = (BOM_UTF16_LE, BOM_UTF16_BE)
"""The first two bytes of such a file."""
_N_READ = 1 << 16


def utf16_as_utf8(stream: BinaryIO) -> BinaryIO:
    """The content of a stream that begins with one of UTF16_MARKS, without the mark."""
    return BufferedReader(_Recoded(stream))


class _Recoded(RawIOBase):
    """Half a surrogate pair becomes bytes that are not UTF-8; half a character at the end is an
    error.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._begin()

    def _begin(self) -> None:
        self._stream.seek(0)
        self._decoder = getincrementaldecoder("utf-16")(errors="surrogatepass")
        self._ready = b""
        self._n_read = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._n_read

    def seek(self, offset: int, whence: int = 0) -> int:
        """What lies before is read again."""
        assert whence == 0, "only places counted from the beginning are known"
        self._begin()
        while self._n_read < offset and self.read(min(offset - self._n_read, _N_READ)):
            pass
        return self._n_read

    def readinto(self, target: Any) -> int:
        while not self._ready:
            raw = self._stream.read(_N_READ)
            text = self._decoder.decode(raw, final=not raw)
            self._ready = text.encode(errors="surrogatepass")
            if not raw:
                break
        given, self._ready = self._ready[: len(target)], self._ready[len(target) :]
        target[: len(given)] = given
        self._n_read += len(given)
        return len(given)

    def close(self) -> None:
        self._stream.close()
        super().close()


# How much a compressed table may unpack to: a small file must not take all memory.

MAX_RATIO = 50
"""Bytes that a compressed file may become for each of its own; tables of texts become 5 to 20."""
FREE_BYTES = 1 << 26
"""What any file may become, however small it is."""
ROW_BYTES = 100
"""Counted for every row beside its text; in memory it takes more."""


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
