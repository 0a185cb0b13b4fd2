"""A text read along with its pieces: nothing of it is lost, and every word knows its pieces."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from threading import Event

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from litotes.encoder import pretrained
from litotes.encoder.packing import pack_windows, read_whole, read_windows
from litotes.encoder.tokenizer import PieceTokenizer

TEXTS = ("Great queue, the tea isn't bad!", "a", "😀 Tea…\n\tand  QUEUE", "(not) \u202ethe")

UNREADABLE = (
    "\u200b",
    "\ufe0e\ufe0f",
    "\ue000",
    "\x01\x02",
    "\u00ad\u202e",
    "😀",
    "ტკბილი ჩაი",
    "x" * 101,
)


@pytest.fixture
def tokenizer(tiny: pretrained.Pretrained) -> PieceTokenizer:
    return tiny.tokenizer


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("pair", [None, "the queue is, well, bad"])
def test_read_gives_what_encode_gives_and_words_stand_where_they_say(
    tokenizer: PieceTokenizer, text: str, pair: str | None
) -> None:
    (read,) = tokenizer.read([text], [pair])
    assert read.pieces == tokenizer.encode([text], [pair])[0]
    assert len(read.written) == len(read.pieces.ids)
    for word in read.words:
        whole = read.pair if word.is_pair else read.text
        assert whole is not None
        assert whole[word.start : word.end] == word.written == word.written.strip()
    special = [place for place, word in enumerate(read.word_of()) if word is None]
    frame = ["[CLS]", "[SEP]", "[SEP]"] if pair else ["[CLS]", "[SEP]"]
    assert [read.written[place] for place in special] == frame
    places = [place for word in read.words for place in word.pieces]
    assert places == sorted(set(places))  # in order, none twice
    assert any(word.is_pair for word in read.words) == (pair is not None)


def test_a_word_may_have_several_pieces_and_a_cut_text_has_the_words_that_were_read(
    tokenizer: PieceTokenizer,
) -> None:
    several, cut = tokenizer.read(["the Queues", "the " * 200])
    word = several.words[1]
    assert (word.written, word.start, word.end) == ("Queues", 4, 10)
    assert [several.written[piece] for piece in word.pieces] == ["queue", "##s"]
    assert cut.pieces.truncated
    assert len(cut.words) == tokenizer.max_pieces - 2


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


@pytest.mark.parametrize("text", UNREADABLE)
def test_a_text_without_a_known_piece_is_unreadable(tokenizer: PieceTokenizer, text: str) -> None:
    (alone,) = tokenizer.encode([text])
    assert alone.unreadable
    assert tokenizer.read([text])[0].pieces == alone
    both, one = tokenizer.encode([text, text], ["\u200b 😀", "tea"])
    assert (both.unreadable, one.unreadable) == (True, False)


def test_one_known_piece_that_is_read_makes_a_text_readable(tokenizer: PieceTokenizer) -> None:
    known = tokenizer.encode([*TEXTS, "!", "😀😀😀 a"])
    assert not any(text.unreadable for text in known)
    (cut,) = tokenizer.encode(["😀 " * 200 + "tea"])
    assert (cut.truncated, cut.unreadable) == (True, True)


def saved(tokenizer: Tokenizer, folder: Path) -> PieceTokenizer:
    tokenizer.save(str(folder / "tokenizer.json"))
    return PieceTokenizer(folder / "tokenizer.json", max_pieces=10)


def words_of(tokenizer: Tokenizer, folder: Path, text: str) -> list[tuple[str, int, list[str]]]:
    """Each word, where it begins, and its pieces as strings."""
    tokenizer.save(str(folder / "tokenizer.json"))
    (read,) = PieceTokenizer(folder / "tokenizer.json", max_pieces=40).read([text])
    found = []
    for word in read.words:
        assert text[word.start : word.end] == word.written
        found.append((word.written, word.start, [read.written[piece] for piece in word.pieces]))
    return found


def test_words_of_deberta(tmp_path: Path) -> None:
    """SentencePiece: a word begins at its blank, which may be a piece of its own."""
    scores = [("[PAD]", 0.0), ("[UNK]", 0.0), ("▁", -3.0), ("▁tea", -1.0), ("s", -2.0), (",", -2.0)]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=1))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " "), normalizers.NFC()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    assert words_of(tokenizer, tmp_path, "teas,  tea\n☕ tea") == [
        ("teas,", 0, ["▁tea", "s", ","]),
        ("tea", 7, ["▁tea"]),
        ("☕", 11, ["▁", "☕"]),
        ("tea", 13, ["▁tea"]),
    ]


def test_words_of_modernbert(tmp_path: Path) -> None:
    """Bytes: a word may begin with its blank; runs of blanks are pieces, but no words."""
    vocabulary = {letter: n for n, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    merges = [("e", "a"), ("t", "ea"), ("Ġ", "tea")]
    for first, second in merges:
        vocabulary[first + second] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_tokens([AddedToken("  ", normalized=True), AddedToken("   ", normalized=True)])
    assert words_of(tokenizer, tmp_path, "tea teas,   tea é") == [
        ("tea", 0, ["tea"]),
        ("teas", 4, ["Ġtea", "s"]),
        (",", 8, [","]),
        ("tea", 12, ["tea"]),
        ("é", 16, ["Ġ", "Ã", "©"]),
    ]


def test_what_says_nothing_is_not_a_known_piece(tmp_path: Path) -> None:
    """Special pieces that a text writes, SentencePiece's blank, bytes of what cannot be seen."""
    words = Tokenizer(models.WordLevel({"tea": 0, "[UNK]": 1}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.add_special_tokens(["[PAD]"])
    words.add_tokens([AddedToken("@USER")])
    pieces = saved(words, tmp_path).encode(["[PAD] coffee", "[PAD] tea", "@USER"])
    assert pieces[0].ids == [2, 1]
    assert [text.unreadable for text in pieces] == [True, False, False]
    scores = [("<pad>", 0.0), ("<unk>", 0.0), ("▁", -1.0), ("▁tea", -2.0)]
    blanks = Tokenizer(models.Unigram(scores, unk_id=1))
    blanks.pre_tokenizer = pre_tokenizers.Metaspace()
    pieces = saved(blanks, tmp_path).encode(["😀", "😀 😀", "😀 tea"])
    assert pieces[0].ids == [2, 1]
    assert [text.unreadable for text in pieces] == [True, True, False]
    letters = {letter: n for n, letter in enumerate(pre_tokenizers.ByteLevel.alphabet())}
    bytewise = Tokenizer(models.BPE(letters, []))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    texts = ["ქართული", "🫨", "?", "\u200b", "\ufe0f \u00ad", "\ue000", "\x01\x02"]
    pieces = saved(bytewise, tmp_path).encode(texts)
    assert [text.unreadable for text in pieces] == [False] * 3 + [True] * 4


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_whole_texts_in_their_frame_are_what_encode_gives(
    tokenizer: PieceTokenizer, kind: str, tmp_path: Path
) -> None:
    if kind == "roberta":
        made = Tokenizer.from_str(tokenizer.to_json())
        made.post_processor = processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2))
        made.save(str(tmp_path / "tokenizer.json"))
        tokenizer = PieceTokenizer(tmp_path / "tokenizer.json", max_pieces=tokenizer.max_pieces)
    first, second = tokenizer.encode_whole(["the queues", "tea"])
    single, pair = tokenizer.frame(pair=False), tokenizer.frame(pair=True)
    assert [*single.before, *first.ids, *single.after] == tokenizer.encode(["the queues"])[0].ids
    (expected,) = tokenizer.encode(["the queues"], ["tea"])
    parts = (pair.before, first.ids, pair.between, second.ids, pair.after)
    assert list(chain.from_iterable(parts)) == expected.ids
    assert expected.segments[-1] == pair.second_segment == (1 if kind == "bert" else 0)
    assert len(pair) == len(expected.ids) - len(first.ids) - len(second.ids)
    assert single.between == ()


def test_whole_texts_are_not_cut_and_the_others_still_are(tokenizer: PieceTokenizer) -> None:
    (whole, nothing) = tokenizer.encode_whole(["tea " * 500, "\u200b"])
    assert len(whole.ids) == len(whole.continues) == 500
    assert (nothing.ids, nothing.continues) == ([], [])
    with pytest.raises(TypeError):
        tokenizer.encode_whole(["tea", None])  # type: ignore[list-item]
    assert len(tokenizer.encode(["tea " * 500])[0].ids) == tokenizer.max_pieces


@pytest.mark.parametrize("max_pieces", [5, 64])
def test_written_down_it_has_no_limit_and_never_loses_its_own(
    tokenizer: PieceTokenizer, tmp_path: Path, max_pieces: int
) -> None:
    """Another thread may be encoding: the limit must not be switched off meanwhile."""
    (tmp_path / "tokenizer.json").write_text(tokenizer.to_json(), "utf-8")
    limited = PieceTokenizer(tmp_path / "tokenizer.json", max_pieces=max_pieces)
    without = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    without.no_truncation()
    stop = Event()
    lengths = set()

    def encode() -> None:
        while True:
            lengths.update(len(pieces.ids) for pieces in limited.encode(["tea " * 500] * 8))
            if stop.is_set():
                return

    with ThreadPoolExecutor(1) as pool:
        encoding = pool.submit(encode)
        written = {limited.to_json() for _ in range(500)}
        stop.set()
        encoding.result()
    assert written == {without.to_str()}
    assert lengths == {max_pieces}


# Texts given as words, and texts longer than an encoder reads


def test_every_piece_of_a_word_is_its_own(shared_tiny: pretrained.Pretrained) -> None:
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
    shared_tiny: pretrained.Pretrained,
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


def test_a_single_word_that_is_too_long_is_cut_and_said_to_be(
    shared_tiny: pretrained.Pretrained,
) -> None:
    long = "1." * shared_tiny.tokenizer.max_pieces
    (windows,) = read_windows(shared_tiny.tokenizer, [["a", long, "b"]])
    assert [word for window in windows for word in window.answered] == [0, 1, 2]
    assert any(window.pieces.truncated for window in windows)
    assert max(len(window.pieces.ids) for window in windows) <= shared_tiny.tokenizer.max_pieces
