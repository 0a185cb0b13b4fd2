"""A byte-pair vocabulary learned from both sides of parallel texts, the same for the same texts.

Sennrich, Haddow & Birch 2016 (arXiv 1508.07909), over bytes (Radford et al. 2019): every text can
be written, and what is decoded is what was encoded.
"""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import BpeTrainer

PADDING, BEGIN, END = "[PAD]", "[CLS]", "[SEP]"
SPECIAL = [PADDING, BEGIN, END]


def train_byte_pairs(texts: Iterable[str], *, n_vocabulary: int, lower_case: bool) -> str:
    """The content of a `tokenizer.json`."""
    tokenizer = Tokenizer(models.BPE())
    steps = [normalizers.NFC(), normalizers.Lowercase()] if lower_case else [normalizers.NFC()]
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=n_vocabulary,
        special_tokens=SPECIAL,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    numbers = [(piece, tokenizer.token_to_id(piece)) for piece in (BEGIN, END)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A {END}",
        pair=f"{BEGIN} $A {END} $B:1 {END}:1",
        special_tokens=numbers,
    )
    content: str = tokenizer.to_str()
    return content
