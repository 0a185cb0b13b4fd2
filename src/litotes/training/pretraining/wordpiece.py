"""A WordPiece tokenizer learned from texts, the same for the same texts.

Schuster and Nakajima 2012; as BERT uses it: Devlin et al. 2019 (arXiv 1810.04805), §3.

The library numbers the characters inside words in an order that differs from run to run, and breaks
ties between merges by these numbers. Here they are numbered before it begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

PADDING, UNKNOWN, FIRST, LAST, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL = [PADDING, UNKNOWN, FIRST, LAST, MASK]

MOST_CHARACTERS = 1000
"""Characters that are pieces by themselves, the commonest of the texts; others are unknown."""


def train_wordpiece(texts: Iterable[str], *, n_vocabulary: int, lower_case: bool) -> str:
    """The content of a `tokenizer.json`. texts: are read twice."""
    normalizer = normalizers.BertNormalizer(lowercase=lower_case)
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(normalizer.normalize_str(text))
    by_count = sorted(counts, key=lambda character: (-counts[character], character))
    alphabet = [one for one in by_count if not one.isspace()][:MOST_CHARACTERS]
    pieces = [*SPECIAL, *alphabet, *(f"##{one}" for one in alphabet)]

    draft = _empty(normalizer, dict.fromkeys(pieces, 0))
    trainer = trainers.WordPieceTrainer(
        vocab_size=max(n_vocabulary, len(pieces)),
        special_tokens=pieces,  # numbered first, in this order
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    # rare characters end a word: which of them are learned must not depend on chance
    blanks = str.maketrans(dict.fromkeys(counts.keys() - set(alphabet), " "))
    spaced = (normalizer.normalize_str(text).translate(blanks) for text in texts)
    draft.train_from_iterator(spaced, trainer)

    tokenizer = _empty(normalizer, draft.get_vocab(with_added_tokens=True))
    tokenizer.add_special_tokens(SPECIAL)
    numbers = [(piece, tokenizer.token_to_id(piece)) for piece in (FIRST, LAST)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{FIRST} $A {LAST}",
        pair=f"{FIRST} $A {LAST} $B:1 {LAST}:1",
        special_tokens=numbers,
    )
    content: str = tokenizer.to_str()
    return content


def _empty(normalizer: normalizers.Normalizer, vocabulary: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer
