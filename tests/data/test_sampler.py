"""The built-in corpus keeps what its card says."""

from collections import Counter
from importlib.resources import files

import pytest

from litotes.data.audit import audit
from litotes.data.corpus import Corpus
from litotes.data.sources import load


@pytest.fixture(scope="module")
def sampler() -> Corpus:
    return load("sampler")


def test_there_are_enough_texts_in_three_varieties_and_two_sources(sampler: Corpus) -> None:
    assert len(sampler) >= 600
    assert Counter(str(cell) for cell in sampler.cells()) == Counter(
        f"{variety} {source}"
        for variety in ("en-AU", "en-IN", "en-UK")
        for source in ("forum", "review")
    )


def test_every_text_has_both_labels(sampler: Corpus) -> None:
    assert all(set(example.labels) == {"sentiment", "sarcasm"} for example in sampler)


def test_about_a_third_is_sarcastic_in_every_variety(sampler: Corpus) -> None:
    for variety in ("en-AU", "en-IN", "en-UK"):
        part = sampler.where(variety=variety)
        share = sum(example.labels["sarcasm"] == "sarcastic" for example in part) / len(part)
        assert 0.25 < share < 0.42, variety


def test_about_three_in_ten_are_for_testing(sampler: Corpus) -> None:
    assert sampler.splits() == ("train", "test")
    assert len(sampler.where(split="test")) / len(sampler) == pytest.approx(0.3, abs=0.05)


def test_the_audit_finds_nothing_worse_than_small_cells(sampler: Corpus) -> None:
    assert {(finding.kind, finding.severity) for finding in audit(sampler).findings} <= {
        ("imbalance", "note")
    }


@pytest.mark.slow
def test_sarcasm_cannot_be_told_by_keywords(sampler: Corpus) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline

    keywords = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2)),
        LogisticRegression(class_weight="balanced", max_iter=1000),
    )
    texts = [example.text for example in sampler]
    labels = [str(example.labels["sarcasm"]) for example in sampler]
    assert cross_val_score(keywords, texts, labels, cv=5, scoring="f1_macro").mean() < 0.85


def test_the_card_counts_right(sampler: Corpus) -> None:
    card = (files("litotes.data") / "sampler" / "CARD.md").read_text(encoding="utf-8")
    assert f"**{len(sampler)} texts**" in card
    for variety in ("en-AU", "en-IN", "en-UK"):
        part = sampler.where(variety=variety)
        sources = Counter(example.source for example in part)
        words = Counter(label for example in part for label in example.labels.values())
        row = (
            len(part),
            sources["review"],
            sources["forum"],
            words["negative"],
            words["positive"],
            words["literal"],
            words["sarcastic"],
        )
        assert f"| {variety} | {' | '.join(map(str, row))} |" in card
