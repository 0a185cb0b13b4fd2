"""The corpus of remarks keeps what its card says."""

import json
from collections import Counter, defaultdict
from importlib.resources import files
from statistics import median

import pytest
from card_counts import check_card_counts
from words_alone import score_of_words

from litotes.data.audit import audit
from litotes.data.corpus import Corpus
from litotes.data.near_duplicates import near_duplicates
from litotes.data.sources import load

VARIETIES = ("en-AU", "en-IE", "en-IN", "en-NG", "en-SG", "en-UK", "en-US")

FORMS = {"debate", "dialogue", "forum", "headline", "post", "reply", "review"}


@pytest.fixture(scope="module")
def asides() -> Corpus:
    return load("asides?classes=3")


def test_every_text_has_both_labels_and_a_form(asides: Corpus) -> None:
    assert all(set(example.labels) == {"sentiment", "sarcasm"} for example in asides)
    assert {example.source for example in asides} == FORMS
    assert {example.variety for example in asides} == set(VARIETIES)


def test_neither_class_is_rare_in_any_variety(asides: Corpus) -> None:
    for variety in VARIETIES:
        part = asides.where(variety=variety)
        share = sum(example.labels["sarcasm"] == "sarcastic" for example in part) / len(part)
        assert 0.3 < share < 0.5, variety


def test_sarcasm_is_not_the_same_as_a_negative_sentiment(asides: Corpus) -> None:
    meant = Counter((e.labels["sarcasm"], e.labels["sentiment"]) for e in asides)
    assert meant["literal", "negative"] > 0.4 * meant["sarcastic", "negative"]
    assert meant["sarcastic", "positive"] > 0.08 * meant["sarcastic", "negative"]


def test_a_topic_is_trained_on_or_tested_on(asides: Corpus) -> None:
    splits = defaultdict(set)
    for example in asides:
        splits[example.group].add(example.split)
    assert set(map(len, splits.values())) == {1}
    assert len(asides.where(split="test")) / len(asides) == pytest.approx(0.15, abs=0.04)


def test_length_does_not_tell_the_classes_apart(asides: Corpus) -> None:
    lengths = defaultdict(list)
    for example in asides:
        lengths[example.labels["sarcasm"]].append(len(example.text.split()))
    assert median(lengths["sarcastic"]) == pytest.approx(median(lengths["literal"]), rel=0.15)


def test_the_texts_of_a_pair_differ_in_what_is_meant() -> None:
    for variety in VARIETIES:
        lines = (files("litotes.data") / "asides" / f"{variety}.jsonl").read_text("utf-8")
        meant = defaultdict(set)
        for row in map(json.loads, lines.splitlines()):
            meant[row.get("pair")].add(row["sarcasm"])
        del meant[None]
        assert all(len(labels) == 2 for labels in meant.values()), variety


@pytest.mark.slow
def test_the_audit_finds_neither_leaks_nor_labels_that_contradict(asides: Corpus) -> None:
    findings = {finding.kind: finding for finding in audit(asides).findings}
    # in some varieties nobody wrote a headline, or a single one
    assert set(findings) <= {"imbalance", "empty_cell", "near_duplicate"}
    assert "across splits: 0" in findings["near_duplicate"].sentence


@pytest.mark.slow
def test_nothing_stands_in_contrast_as_well(asides: Corpus) -> None:
    own, other = ([example.text for example in corpus] for corpus in (asides, load("contrast")))
    across = [
        pair
        for pair in near_duplicates([*own, *other]).pairs
        if (pair[0] < len(own)) != (pair[1] < len(own))
    ]
    assert not across


@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])
def test_words_alone_do_not_tell_sarcasm_on_other_topics(asides: Corpus, half: int) -> None:
    assert score_of_words(asides, half) < 0.75


def test_the_card_counts_right(asides: Corpus) -> None:
    check_card_counts(asides, VARIETIES)
