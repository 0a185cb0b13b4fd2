"""Texts in chunks: none is lost, and no chunk is more work than can be waited for."""

from __future__ import annotations

from litotes.prediction.chunks import read_chunks


def test_a_chunk_of_long_texts_is_short() -> None:
    """Ctrl-C waits for the chunks under way, which stay in memory until then."""
    texts = [f"{n} " + "tea " * 25_000 for n in range(40)]
    chunks = [chunk for chunk in read_chunks(texts) if chunk.texts]
    assert max(len(chunk.texts) for chunk in chunks) <= 3
    read = []
    for chunk in chunks:
        assert chunk.first == len(read) + 1
        read += chunk.texts
    assert read == texts


def test_pairs_count_as_well() -> None:
    chunks = list(read_chunks([("tea", "queue " * 100_000)] * 4))
    assert [len(chunk.texts) for chunk in chunks if chunk.texts] == [1, 1, 1, 1]


def test_chunks_of_short_texts_grow() -> None:
    sizes = [len(chunk.texts) for chunk in read_chunks(["tea"] * 3000) if chunk.texts]
    assert sizes[0] < 10
    assert max(sizes) > 500
