"""Which pieces belong to which word, and texts longer than an encoder reads."""

from __future__ import annotations

import torch

from litotes.encoder.packing import pack_windows, read_whole, read_windows
from litotes.encoder.pretrained import Pretrained


def test_every_piece_of_a_word_is_its_own(shared_tiny: Pretrained) -> None:
    words = ["the", "abc", "d-e", "\u200d", "queue"]
    (window,) = read_whole(shared_tiny.tokenizer, [words])
    # [CLS] the a ##b ##c d - e queue [SEP]; a joiner alone is no piece
    assert window.places == ((1,), (2, 3, 4), (5, 6, 7), (), (8,))
    batch = pack_windows([window, window])
    assert batch.places.pieces.tolist()[:9] == [1, 2, 3, 4, 5, 6, 7, 0, 8]
    assert batch.places.words.lengths[:5] == (1, 3, 3, 1, 1)
    assert batch.places.texts.lengths == (5, 5)
    first = pack_windows([window], with_first=True)
    assert first.places.texts.lengths == (6,)
    assert first.places.pieces.tolist()[0] == 0


def test_a_long_text_is_read_in_windows_that_answer_each_word_once(
    shared_tiny: Pretrained,
) -> None:
    limit = shared_tiny.tokenizer.max_pieces
    words = [f"w{number}" for number in range(limit)]
    (windows,) = read_windows(shared_tiny.tokenizer, [words])
    assert len(windows) > 1
    answered = [word for window in windows for word in window.answered]
    assert answered == list(range(len(words)))
    for window in windows:
        assert not window.pieces.truncated
        assert len(window.pieces.ids) <= limit
        places = window.places[window.answered.start - window.first :]
        assert all(places[: len(window.answered)])
    # neighbours on both sides, but at the ends of the text
    assert windows[1].first < windows[1].answered.start
    (whole,) = read_whole(shared_tiny.tokenizer, [words])
    assert whole.pieces.truncated
    assert not whole.places[-1]


def test_a_single_word_that_is_too_long_is_cut_and_said_to_be(shared_tiny: Pretrained) -> None:
    long = "1." * shared_tiny.tokenizer.max_pieces
    (windows,) = read_windows(shared_tiny.tokenizer, [["a", long, "b"]])
    assert [word for window in windows for word in window.answered] == [0, 1, 2]
    assert any(window.pieces.truncated for window in windows)
    assert torch.tensor([len(window.pieces.ids) for window in windows]).max() <= (
        shared_tiny.tokenizer.max_pieces
    )
