"""A text read along with its pieces: nothing of it is lost, and every word knows its pieces."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from litotes.encoders import pretrained
from litotes.text.tokenizer import PieceTokenizer

TEXTS = ("Great queue, the tea isn't bad!", "a", "😀 Tea…\n\tand  QUEUE", "(not) \u202ethe")


@pytest.fixture
def tokenizer(tiny: pretrained.Pretrained) -> PieceTokenizer:
    return tiny.tokenizer


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("pair", [None, "the queue is, well, bad"])
def test_read_gives_the_pieces_that_encode_gives(
    tokenizer: PieceTokenizer, text: str, pair: str | None
) -> None:
    (read,) = tokenizer.read([text], [pair])
    assert read.pieces == tokenizer.encode([text], [pair])[0]
    assert len(read.written) == len(read.pieces.ids)
    assert (read.text, read.pair) == (text, pair)


@pytest.mark.parametrize("text", TEXTS)
def test_words_stand_where_they_say(tokenizer: PieceTokenizer, text: str) -> None:
    (read,) = tokenizer.read([text], ["the queue is, well, bad"])
    for word in read.words:
        whole = read.pair if word.is_pair else read.text
        assert whole is not None
        assert whole[word.start : word.end] == word.written
        assert word.written.strip() == word.written
    special = [place for place, word in enumerate(read.word_of()) if word is None]
    assert [read.written[place] for place in special] == ["[CLS]", "[SEP]", "[SEP]"]
    places = [place for word in read.words for place in word.pieces]
    assert places == sorted(set(places))  # in order, none twice
    assert any(word.is_pair for word in read.words)


def test_a_word_of_several_pieces_is_one_word(tokenizer: PieceTokenizer) -> None:
    (read,) = tokenizer.read(["the Queues"])
    word = read.words[1]
    assert word.written == "Queues"
    assert [read.written[piece] for piece in word.pieces] == ["queue", "##s"]


def test_a_cut_text_has_the_words_that_were_read(tokenizer: PieceTokenizer) -> None:
    (read,) = tokenizer.read(["the " * 200])
    assert read.pieces.truncated
    assert len(read.words) == tokenizer.max_pieces - 2


def test_a_blank_before_a_word_is_not_a_part_of_it(tmp_path: Path) -> None:
    """RoBERTa's pieces begin with the blank before them."""
    tokenizer = Tokenizer(models.BPE({"a": 0, "Ġ": 1, "Ġa": 2}, [("Ġ", "a")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (read,) = PieceTokenizer(tmp_path / "tokenizer.json", max_pieces=10).read(["a a  a"])
    assert [(word.written, word.start, word.end) for word in read.words] == [
        ("a", 0, 1),
        ("a", 2, 3),
        ("a", 5, 6),
    ]
    assert read.word_of() == (0, 1, None, 2)  # a blank alone is no word
