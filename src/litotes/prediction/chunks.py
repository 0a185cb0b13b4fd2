"""A stream of texts in chunks that are predicted together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from litotes.core.errors import UserError
from litotes.core.machine import STREAM_THREADS
from litotes.core.values import BadText

_FIRST_SIZE, _LARGEST_SIZE = 4, 1024
"""Texts in a chunk: few at first, so that the first prediction comes soon, then more and more."""
_MOST_CHARACTERS = 1 << 18
"""After so many, a chunk is full whatever its size: enough for a GPU, and little enough that
Ctrl-C, which waits for the chunks under way, does not wait for minutes.
"""


@dataclass
class Chunk:
    """Texts that follow each other, with their pairs.

    first: the number of the first text. failure: why the stream breaks off after them.
    n_characters: of the texts and their pairs.
    """

    first: int
    texts: list[Any] = field(default_factory=list)
    pairs: list[Any] = field(default_factory=list)
    failure: Exception | None = None
    n_characters: int = 0

    def add(self, item: str | tuple[str, str] | BadText) -> None:
        # what is neither is reported with its number when the chunk is predicted
        text, pair = item if isinstance(item, tuple) and len(item) == 2 else (item, None)
        self.texts.append(text)
        self.pairs.append(pair)
        self.n_characters += sum(len(own) for own in (text, pair) if isinstance(own, str))


@contextmanager
def stream_pool() -> Iterator[ThreadPoolExecutor]:
    """The threads that compute chunks. At Ctrl-C, or when nobody reads on, they are not waited for:
    what they compute is not wanted any more.
    """
    pool = ThreadPoolExecutor(2, thread_name_prefix=STREAM_THREADS)
    is_wanted = True
    try:
        yield pool
    except (KeyboardInterrupt, GeneratorExit):
        is_wanted = False
        raise
    finally:
        pool.shutdown(wait=is_wanted, cancel_futures=True)


def read_chunks(texts: Iterable[str | tuple[str, str] | BadText]) -> Iterator[Chunk]:
    """The texts in chunks that grow.

    After every text that does not fill a chunk, an empty chunk is yielded: the reader can hand out
    what is ready while the source is slow.
    """
    if isinstance(texts, str | Mapping):
        raise UserError(
            f"A stream is of several texts; this is a {type(texts).__name__}. For one text there is"
            " `predict`, for columns by name `map_batches`."
        )
    size = _FIRST_SIZE
    chunk = Chunk(first=1)
    source = iter(texts)
    while True:
        try:
            chunk.add(next(source))
        except StopIteration:
            yield chunk
            return
        except Exception as error:
            chunk.failure = error
            yield chunk
            return
        if len(chunk.texts) < size and chunk.n_characters < _MOST_CHARACTERS:
            yield Chunk(chunk.first)
            continue
        yield chunk
        chunk = Chunk(chunk.first + len(chunk.texts))
        size = min(2 * size, _LARGEST_SIZE)
