"""Texts become pieces (sub-words) with the `tokenizers` library; nothing is cut silently."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unicodedata import category

from tokenizers import Encoding, Tokenizer, models

from litotes.core.errors import UserError

_BLANK = "▁"
"""SentencePiece's blank, a piece of its own before a character that the vocabulary lacks."""


_INVISIBLE = frozenset(("Cc", "Cf", "Co", "Cs", "Mc", "Me", "Mn", "Zl", "Zp", "Zs"))
"""Unicode's categories of controls, private use, marks on other characters, and blanks."""


@dataclass(frozen=True)
class Pieces:
    """One text (or pair) as piece numbers with their segments.

    truncated: whether it was longer than the encoder can read. unreadable: whether it has not one
    known piece, special pieces and blanks aside; a pair, whether neither of its texts has one.
    """

    ids: list[int]
    segments: list[int]
    truncated: bool
    unreadable: bool = False


@dataclass(frozen=True)
class WholeText:
    """All pieces of a text, however long it is, none of them special.

    continues: whether a piece belongs to the same word as the one before it.
    """

    ids: list[int]
    continues: list[bool]


@dataclass(frozen=True)
class Frame:
    """The special pieces around one text (`between` is empty) or around the two of a pair.

    second_segment: that of the pair's second text and of what comes after it.
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    second_segment: int = 0

    def __len__(self) -> int:
        return len(self.before) + len(self.between) + len(self.after)


@dataclass(frozen=True)
class Word:
    """A word as the tokenizer cuts text.

    start, end: where it stands in the text (or in the pair); pieces: the places of its pieces.
    """

    written: str
    start: int
    end: int
    is_pair: bool
    pieces: tuple[int, ...]


@dataclass(frozen=True)
class ReadText:
    """A text as the encoder reads it, with the strings that a person needs to follow.

    written: the pieces as strings (`[CLS]`, `##ing`). words: in order; special pieces, and pieces
    of blanks, belong to none.
    """

    text: str
    pair: str | None
    pieces: Pieces
    written: tuple[str, ...]
    words: tuple[Word, ...]

    def word_of(self) -> tuple[int | None, ...]:
        """The number of the word each piece belongs to, or None."""
        found: list[int | None] = [None] * len(self.written)
        for number, word in enumerate(self.words):
            for piece in word.pieces:
                found[piece] = number
        return tuple(found)


class PieceTokenizer:
    """A `tokenizer.json` with our own length limit.

    Files often carry truncation and padding of their own (the bundled one: 128 pieces); both are
    switched off.

    content: what was read from the file already, so that it is not read twice.
    """

    def __init__(self, file: Path, *, max_pieces: int, content: bytes | None = None) -> None:
        try:
            if content is None:
                self._tokenizer = Tokenizer.from_file(str(file))
            else:
                self._tokenizer = Tokenizer.from_buffer(content)
        except Exception as error:  # the library raises bare Exception
            raise UserError(
                f"{file}: not a readable tokenizer.json ({error}). Save it again with a fast"
                " tokenizer."
            ) from error
        self.max_pieces = max_pieces
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._meaningless = _meaningless_ids(self._tokenizer)
        self._tokenizer.enable_truncation(max_length=max_pieces)

    @property
    def n_vocabulary(self) -> int:
        """One more than the largest number of a piece; there may be gaps."""
        return max(self._tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    def piece_string(self, number: int) -> str | None:
        """Returns the piece of this number as it is written; None if there is none."""
        written: str | None = self._tokenizer.id_to_token(number)
        return written

    def find_piece(self, written: str) -> int | None:
        """The number of the piece that is written like this; None if there is none."""
        number: int | None = self._tokenizer.token_to_id(written)
        return number

    @property
    def meaningless(self) -> frozenset[int]:
        """The numbers of pieces that say nothing: special ones, the unknown one, a blank alone."""
        return self._meaningless

    def frame(self, *, pair: bool) -> Frame:
        """Finds what is put around a text, or around the two of a pair."""
        encoding = self._tokenizer.encode("a", "a" if pair else None)
        parts: tuple[list[int], ...] = ([], [], [])
        place = 0  # before the first text, after it, after the second
        for piece, sequence in zip(encoding.ids, encoding.sequence_ids, strict=True):
            if sequence is None:
                parts[place].append(piece)
            else:
                place = sequence + 1
        before, between, after = map(tuple, parts)
        if not pair:
            between, after = (), between
        return Frame(before, between, after, encoding.type_ids[-1])

    def encode_whole(self, texts: Sequence[str]) -> list[WholeText]:
        """The texts as pieces, uncut and with nothing around them."""
        self._tokenizer.no_truncation()
        try:
            encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        finally:
            self._tokenizer.enable_truncation(max_length=self.max_pieces)
        return [WholeText(encoding.ids, _continues(encoding)) for encoding in encodings]

    def to_json(self) -> str:
        """The file's content without the length settings, which are ours to make."""
        content: str = self._tokenizer.to_str()
        # cut from the text: switched off meanwhile, the limit would be missing where another thread
        # encodes
        key = '"truncation":'
        start = content.index(key) + len(key)
        _, end = json.JSONDecoder().raw_decode(content, start)
        return f"{content[:start]}null{content[end:]}"

    def encode(
        self, texts: Sequence[str], pairs: Sequence[str | None] | None = None
    ) -> list[Pieces]:
        """Pieces of every text, special pieces included; a pair is cut at its longer side first."""
        return [self._pieces(*encoded) for encoded in self._encode(texts, pairs)]

    def decode(self, ids: Sequence[int]) -> str:
        """The text that pieces write, special ones left out."""
        written: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return written.strip()

    def piece_strings(self, texts: Sequence[str]) -> list[list[str]]:
        """The pieces of every text as strings (`##ing`), without the special ones."""
        return [_plain_pieces(encoding) for encoding in self._tokenizer.encode_batch(list(texts))]

    def read(
        self, texts: Sequence[str], pairs: Sequence[str | None] | None = None
    ) -> list[ReadText]:
        """The same as `encode`, with the pieces as strings and the words they belong to."""
        found = []
        for text, pair, encoding in self._encode(texts, pairs):
            words = _words(text, pair, encoding)
            pieces = self._pieces(text, pair, encoding)
            found.append(ReadText(text, pair, pieces, tuple(encoding.tokens), words))
        return found

    def _encode(
        self, texts: Sequence[str], pairs: Sequence[str | None] | None
    ) -> list[tuple[str, str | None, Encoding]]:
        pairs = pairs or [None] * len(texts)
        inputs = []
        for text, pair in zip(texts, pairs, strict=True):
            inputs.append(text if pair is None else (text, pair))
        return list(zip(texts, pairs, self._tokenizer.encode_batch(inputs), strict=True))

    def _pieces(self, text: str, pair: str | None, encoding: Encoding) -> Pieces:
        ids = encoding.ids
        # both look no further than the first known piece, the first visible character
        unreadable = self._meaningless.issuperset(ids) or not _is_visible(text + (pair or ""))
        return Pieces(ids, encoding.type_ids, bool(encoding.overflowing), unreadable)


def _is_visible(text: str) -> bool:
    """Tells whether a text has a character that can be seen, or newer than Python's tables."""
    return any(category(character) not in _INVISIBLE for character in text)


def _meaningless_ids(tokenizer: Tokenizer) -> frozenset[int]:
    """The numbers of the unknown piece, of special pieces and of a blank alone.

    A vocabulary of bytes has no unknown piece: it can write every text.
    """
    ids = set()
    for number in (tokenizer.token_to_id(_BLANK), _unknown_id(tokenizer)):
        if number is not None:
            ids.add(number)
    for number, token in tokenizer.get_added_tokens_decoder().items():
        if token.special:
            ids.add(number)
    for empty in (tokenizer.encode(""), tokenizer.encode("", "")):
        ids.update(empty.ids)  # what is put around texts
    return frozenset(ids)


def _unknown_id(tokenizer: Tokenizer) -> int | None:
    if isinstance(tokenizer.model, models.Unigram):  # the one model that does not name it
        number: int | None = json.loads(tokenizer.to_str())["model"]["unk_id"]
        return number
    piece = tokenizer.model.unk_token
    return None if piece is None else tokenizer.token_to_id(piece)


def _plain_pieces(encoding: Encoding) -> list[str]:
    pieces = zip(encoding.tokens, encoding.special_tokens_mask, strict=True)
    return [piece for piece, is_special in pieces if not is_special]


def _continues(encoding: Encoding) -> list[bool]:
    """Tells of each piece whether it belongs to the same word as the one before it."""
    words = encoding.word_ids
    earlier = [None, *words][: len(words)]
    return [
        word is not None and word == before for word, before in zip(words, earlier, strict=True)
    ]


def _words(text: str, pair: str | None, encoding: Encoding) -> tuple[Word, ...]:
    words = []
    for (sequence, _), pieces in _pieces_by_word(encoding).items():
        start, end = encoding.offsets[pieces[0]][0], encoding.offsets[pieces[-1]][1]
        written = (text if sequence == 0 else pair or "")[start:end]
        # RoBERTa counts the blank before a word as its beginning
        start += len(written) - len(written.lstrip())
        written = written.strip()
        if written:
            end = start + len(written)
            words.append(Word(written, start, end, sequence == 1, tuple(pieces)))
    return tuple(words)


def _pieces_by_word(encoding: Encoding) -> dict[tuple[int, int], list[int]]:
    """The places of each word's pieces, by (sequence, word): sequence 1 is the pair.

    Words are what the tokenizer splits at before it looks for pieces (BERT: blanks and
    punctuation).
    """
    places: dict[tuple[int, int], list[int]] = {}
    numbers = zip(encoding.word_ids, encoding.sequence_ids, strict=True)
    for place, (word, sequence) in enumerate(numbers):
        if word is not None and sequence is not None:
            places.setdefault((sequence, word), []).append(place)
    return places
