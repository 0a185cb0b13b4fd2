"""What the card of a built-in corpus must count."""

from collections import Counter
from importlib.resources import files

from litotes.data.corpus import Corpus


def check_card_counts(corpus: Corpus, varieties: tuple[str, ...]) -> None:
    """All texts, those of each variety by label, and those of both splits."""
    card = (files("litotes.data") / corpus.name / "CARD.md").read_text(encoding="utf-8")
    assert f"**{len(corpus):,} texts**" in card
    for variety in varieties:
        part = corpus.where(variety=variety)
        counts = Counter(example.labels[task] for example in part for task in example.labels)
        numbers = [counts[label] for label in ("negative", "neutral", "positive")]
        numbers += [counts[label] for label in ("literal", "sarcastic")]
        assert f"| {variety} | {len(part)} | {' | '.join(map(str, numbers))} |" in card
    split = f"{len(corpus.where(split='train')):,} for training, "
    assert split + f"{len(corpus.where(split='test')):,} for testing" in card
