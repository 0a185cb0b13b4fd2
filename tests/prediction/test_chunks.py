"""Texts in chunks: none is lost, and no chunk is more work than can be waited for."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from threading import Event

import pytest

from litotes.cli import main as command_line
from litotes.prediction.predictor import read_chunks, stream_pool


def test_chunks_of_short_texts_grow_and_those_of_long_ones_are_short() -> None:
    """Ctrl-C waits for the chunks under way, which stay in memory until then."""
    sizes = [len(chunk) for chunk in read_chunks(["tea"] * 3000) if chunk]
    assert sizes == [4 * 2**n for n in range(8)] + [1024, 956]
    texts = [f"{n} " + "tea " * 25_000 for n in range(40)]
    chunks = [chunk for chunk in read_chunks(texts) if chunk]
    assert max(map(len, chunks)) <= 3
    assert [text for chunk in chunks for text, _ in chunk] == texts

    pairs = list(read_chunks([("tea", "queue " * 100_000)] * 4))
    assert list(map(len, filter(None, pairs))) == [1, 1, 1, 1]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, GeneratorExit])
def test_what_nobody_wants_is_not_waited_for(stop: type[BaseException]) -> None:
    is_over = Event()
    assert not leave_pool(stop, is_over).done()
    is_over.set()


def leave_pool(stop: type[BaseException], is_over: Event) -> Future[bool]:
    """What is still under way in a pool that was left."""
    with suppress(stop), stream_pool() as pool:
        running = pool.submit(is_over.wait, 20)
        raise stop
    return running


def test_the_command_ends_although_texts_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python joins its threads at the end: Ctrl-C again was a traceback, and exit code -6."""
    codes: list[int] = []
    monkeypatch.setattr("os._exit", codes.append)
    monkeypatch.setattr(command_line, "_run", lambda options: 130)
    monkeypatch.setattr("sys.argv", ["litotes", "list", "sources"])
    assert command_line.main() == 130
    assert not codes
    is_over = Event()
    leave_pool(KeyboardInterrupt, is_over)
    assert command_line.main() == 130
    assert codes == [130]
    is_over.set()
