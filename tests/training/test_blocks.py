"""Nothing is cut off, no block is too long, equal texts are on one side, half of pairs follow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from litotes.core.errors import UserError
from litotes.core.progress import ignore_progress
from litotes.core.values import MISSING
from litotes.encoder.pretrained import Pretrained
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.training.pretraining.texts import (
    FOLLOWS,
    RANDOM,
    Line,
    PieceStore,
    Reader,
    make_blocks,
    open_store,
    write_store,
)

GENERATOR = torch.Generator()


class MadeTexts(list[Line]):
    """Lines in place of those of a file."""

    notes = ("made up",)


def store_of(lines: MadeTexts, tokenizer: PieceTokenizer, folder: Path) -> PieceStore:
    write_store(folder / "texts", lines, tokenizer, watch=ignore_progress)
    return open_store(folder / "texts")


def lines_of(*documents: list[str]) -> MadeTexts:
    return MadeTexts(
        Line(text, number, text) for number, document in enumerate(documents) for text in document
    )


@pytest.fixture
def store(tiny: Pretrained, tmp_path: Path) -> PieceStore:
    documents = [["the tea is great"] * 3, ["a", "\u200b", "love " * 30], ["bad queue"] * 5]
    return store_of(lines_of(*documents), tiny.tokenizer, tmp_path)


def test_a_store_holds_every_piece_and_where_words_begin(tiny: Pretrained, tmp_path: Path) -> None:
    texts = ["the queues", "tea tea!", "it is " * 100]
    store = store_of(lines_of(texts), tiny.tokenizer, tmp_path)
    whole = tiny.tokenizer.encode_whole(texts)
    ends = store.lines[:, 0].tolist()
    for start, end, text in zip([0, *ends], ends, whole, strict=False):
        ids, continues = store.read(start, end)
        assert ids.tolist() == text.ids
        assert continues.tolist() == text.continues
    assert whole[0].continues[:2] == [False, False]
    assert any(whole[0].continues)
    assert len(whole[2].ids) > tiny.tokenizer.max_pieces
    assert store.notes == ("made up",)


@pytest.mark.parametrize("join_lines", [False, True])
@pytest.mark.parametrize("room", [4, 9, 500])
def test_blocks_hold_every_piece_once(store: PieceStore, room: int, join_lines: bool) -> None:
    blocks = make_blocks(store, room, join_lines=join_lines)
    starts, ends = blocks.rows[:, 0], blocks.rows[:, 1]
    assert blocks.lengths.min() > 0
    assert blocks.lengths.max() <= room
    assert (starts[0], ends[-1]) == (0, len(store.pieces))
    assert (starts[1:] == ends[:-1]).all()
    borders = store.lines[np.flatnonzero(np.diff(store.lines[:, 1])), 0]
    assert set(borders) <= set(ends), "a block spans two documents"
    if room == 500:
        assert len(blocks) == (3 if join_lines else 10)  # a line without a piece is none


@pytest.mark.parametrize("share", [0.11, 0.2, 0.24])  # some end within equal texts
def test_equal_texts_are_on_the_same_side(tiny: Pretrained, tmp_path: Path, share: float) -> None:
    texts = [f"tea {number % 40}" for number in range(200)]
    blocks = make_blocks(store_of(lines_of(texts), tiny.tokenizer, tmp_path), 9, join_lines=False)
    learned, held = blocks.hold_out(share)
    assert len(learned) + len(held) == 200
    assert share - 0.05 < len(held) / 200 < share + 0.1
    assert not set(learned.rows[:, 3]) & set(held.rows[:, 3])
    again, _ = blocks.hold_out(share)
    assert (again.rows == learned.rows).all()


def test_one_text_cannot_be_divided(tiny: Pretrained, tmp_path: Path) -> None:
    store = store_of(lines_of(["tea"] * 9), tiny.tokenizer, tmp_path)
    with pytest.raises(UserError, match="too few different texts"):
        make_blocks(store, 9, join_lines=False).hold_out(0.1)


def test_counts_are_those_of_the_pieces(store: PieceStore) -> None:
    blocks = make_blocks(store, 9, join_lines=True)
    expected = np.bincount(store.read(0, len(store.pieces))[0], minlength=200)
    assert (blocks.count_pieces(200) == expected).all()


def test_a_text_stands_in_its_frame(tiny: Pretrained, store: PieceStore) -> None:
    reader = Reader(make_blocks(store, 90, join_lines=False), tiny.tokenizer.frame(pair=False))
    (expected,) = tiny.tokenizer.encode(["the tea is great"])
    found = reader.read(0, GENERATOR)
    assert (found.ids.tolist(), found.segments.tolist()) == (expected.ids, expected.segments)
    assert found.follows == MISSING


def test_half_of_the_pairs_follow(tiny: Pretrained, tmp_path: Path) -> None:
    names = ("tea", "queue", "love", "hate")
    store = store_of(lines_of(*([name] * 8 for name in names)), tiny.tokenizer, tmp_path)
    tokenizer = tiny.tokenizer
    blocks = make_blocks(store, 5, join_lines=True)
    pair, single = tokenizer.frame(pair=True), tokenizer.frame(pair=False)
    reader = Reader(blocks, single, pair, room=5)
    generator = torch.Generator().manual_seed(0)
    found = [reader.read(place % len(blocks), generator) for place in range(2000)]
    for text in found:
        assert len(text.ids) <= 5 + len(pair)
        first = set(text.ids[text.segments == 0].tolist()) - tokenizer.meaningless
        second = set(text.ids[text.segments == 1].tolist()) - tokenizer.meaningless
        assert (first == second) is (text.follows == FOLLOWS)
        assert min(len(first), len(second)) > 0
    assert np.mean([text.follows == RANDOM for text in found]) == pytest.approx(0.5, abs=0.04)
    expected = tokenizer.encode(["tea tea"], ["tea tea tea"])[0]
    layouts = [(text.ids.tolist(), text.segments.tolist()) for text in found]
    assert (expected.ids, expected.segments) in layouts


def test_a_line_alone_is_read_as_one_text(tiny: Pretrained, tmp_path: Path) -> None:
    store = store_of(lines_of(["tea"], ["queue"]), tiny.tokenizer, tmp_path)
    blocks = make_blocks(store, 9, join_lines=True)
    pair, single = tiny.tokenizer.frame(pair=True), tiny.tokenizer.frame(pair=False)
    text = Reader(blocks, single, pair, room=9).read(0, GENERATOR)
    assert text.ids.tolist() == tiny.tokenizer.encode(["tea"])[0].ids
    assert text.follows == MISSING


def test_one_document_has_no_other(tiny: Pretrained, tmp_path: Path) -> None:
    store = store_of(lines_of(["tea"] * 20), tiny.tokenizer, tmp_path)
    frame = tiny.tokenizer.frame(pair=True)
    with pytest.raises(UserError, match="at least two documents"):
        Reader(make_blocks(store, 4, join_lines=True), frame, frame, room=4)
