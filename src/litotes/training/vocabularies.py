"""Vocabularies learned from texts, the same for the same texts: the content of a `tokenizer.json`.

WordPiece (Schuster and Nakajima 2012) as BERT uses it: Devlin et al. 2019 (arXiv 1810.04805), §3.
Byte pairs: Sennrich, Haddow & Birch 2016 (arXiv 1508.07909), over bytes (Radford et al. 2019):
every text can be written, and what is decoded is what was encoded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import BpeTrainer, WordPieceTrainer

PADDING, UNKNOWN, FIRST, LAST, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL = [PADDING, UNKNOWN, FIRST, LAST, MASK]

MOST_CHARACTERS = 1000
"""Characters that are pieces by themselves, the most frequent of the texts; others are unknown."""


def train_wordpiece(
    read: Callable[[], Iterable[str]], *, n_vocabulary: int, lower_case: bool
) -> str:
    """Learns pieces of words. read: gives the texts; it is asked twice.

    The library numbers the characters inside words in an order that differs from run to run, and
    breaks ties between merges by these numbers. Here they are numbered before it begins.
    """
    normalizer = normalizers.BertNormalizer(lowercase=lower_case)
    counts: Counter[str] = Counter()
    for text in read():
        counts.update(normalizer.normalize_str(text))
    by_count = sorted(counts, key=lambda character: (-counts[character], character))
    alphabet = [one for one in by_count if not one.isspace()][:MOST_CHARACTERS]
    pieces = [*SPECIAL, *alphabet, *(f"##{one}" for one in alphabet)]

    draft = _wordpiece(normalizer, dict.fromkeys(pieces, 0))
    trainer = WordPieceTrainer(
        vocab_size=max(n_vocabulary, len(pieces)),
        special_tokens=pieces,  # numbered first, in this order
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    # rare characters end a word: which of them are learned must not depend on chance
    blanks = str.maketrans(dict.fromkeys(counts.keys() - set(alphabet), " "))
    spaced = (normalizer.normalize_str(text).translate(blanks) for text in read())
    draft.train_from_iterator(spaced, trainer)

    tokenizer = _wordpiece(normalizer, draft.get_vocab(with_added_tokens=True))
    tokenizer.add_special_tokens(SPECIAL)
    return _framed(tokenizer)


def _wordpiece(normalizer: normalizers.Normalizer, vocabulary: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def train_byte_pairs(texts: Iterable[str], *, n_vocabulary: int, lower_case: bool) -> str:
    """Learns pieces of bytes."""
    tokenizer = Tokenizer(models.BPE())
    steps = [normalizers.NFC(), normalizers.Lowercase()] if lower_case else [normalizers.NFC()]
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=n_vocabulary,
        special_tokens=[PADDING, FIRST, LAST],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return _framed(tokenizer)


def _framed(tokenizer: Tokenizer) -> str:
    """With what stands around one text and around two."""
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{FIRST} $A {LAST}",
        pair=f"{FIRST} $A {LAST} $B:1 {LAST}:1",
        special_tokens=[(piece, tokenizer.token_to_id(piece)) for piece in (FIRST, LAST)],
    )
    content: str = tokenizer.to_str()
    return content
