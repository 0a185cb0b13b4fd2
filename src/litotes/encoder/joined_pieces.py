"""A file that was cut into pieces, one in each of several zip archives, read as a whole."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO
from zipfile import ZipFile

_BUFFER = 1 << 20


def open_joined(pieces: Sequence[tuple[Path, str]], stack: ExitStack) -> io.BufferedReader:
    """The joined file. pieces: each archive and the name of the piece in it. stack: closes all."""
    parts = []
    for archive, name in pieces:
        opened = stack.enter_context(ZipFile(archive))
        part = stack.enter_context(opened.open(name))
        parts.append((part, opened.getinfo(name).file_size))
    return stack.enter_context(io.BufferedReader(_JoinedPieces(parts), _BUFFER))


class _JoinedPieces(io.RawIOBase):
    """parts: seekable streams and their lengths."""

    def __init__(self, parts: Sequence[tuple[IO[bytes], int]]) -> None:
        self.parts, self.place = parts, 0
        self.length = sum(length for _, length in parts)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self.place, io.SEEK_END: self.length}[whence]
        self.place = begin + offset
        return self.place

    def tell(self) -> int:
        return self.place

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        begin = 0
        for part, length in self.parts:
            if self.place < begin + length:
                part.seek(self.place - begin)  # where it stands already, unless someone jumped
                content = part.read(len(buffer))
                buffer[: len(content)] = content
                self.place += len(content)
                return len(content)
            begin += length
        return 0
