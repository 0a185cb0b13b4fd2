"""UTF-16 files, as Excel exports "Unicode text", read as if they were UTF-8."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from io import BufferedReader, RawIOBase
from typing import Any, BinaryIO

UTF16_MARKS = (BOM_UTF16_LE, BOM_UTF16_BE)
"""The first two bytes of such a file."""
_CHUNK = 1 << 16


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
        while self._n_read < offset and self.read(min(offset - self._n_read, _CHUNK)):
            pass
        return self._n_read

    def readinto(self, target: Any) -> int:
        while not self._ready:
            raw = self._stream.read(_CHUNK)
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
