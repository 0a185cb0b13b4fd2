"""The corpus of texts once meant and once not keeps what its card says."""

import json
from collections import Counter, defaultdict
from importlib.resources import files
from statistics import median

import pytest
from card_counts import check_card_counts
from words_alone import score_of_words

from litotes.core.errors import UserError
from litotes.data.audit import audit
from litotes.data.corpus import Corpus
from litotes.data.near_duplicates import near_duplicates
from litotes.data.sources import load
from litotes.data.sources.corpora import CONTRAST_KINDS as KINDS

VARIETIES = ("en-AU", "en-IE", "en-IN", "en-NG", "en-UK", "en-US")


@pytest.fixture(scope="module")
def contrast() -> Corpus:
    return load("contrast?classes=3")


def pairs_of(variety: str) -> dict[str, list[tuple[str, str]]]:
    """The texts of each contrast set, with what they are."""
    found = defaultdict(list)
    lines = (files("litotes.data") / "contrast" / f"{variety}.jsonl").read_text(encoding="utf-8")
    for row in map(json.loads, lines.splitlines()):
        found[row["pair"]].append((row["text"], row["sarcasm"]))
    return found


def test_there_are_enough_texts_in_six_varieties_and_four_forms(contrast: Corpus) -> None:
    assert len(contrast) >= 3000
    forms = {(example.variety, example.source) for example in contrast}
    assert forms == {
        (variety, form) for variety in VARIETIES for form in ("forum", "post", "reply", "review")
    }


def test_every_text_has_both_labels(contrast: Corpus) -> None:
    assert all(set(example.labels) == {"sentiment", "sarcasm"} for example in contrast)


def test_without_a_third_class_texts_without_sentiment_have_no_label(contrast: Corpus) -> None:
    neutral = [example.text for example in contrast if example.labels["sentiment"] == "neutral"]
    without = [example.text for example in load("contrast") if "sentiment" not in example.labels]
    assert without == neutral


def test_neither_class_is_rare_in_any_variety(contrast: Corpus) -> None:
    for variety in VARIETIES:
        part = contrast.where(variety=variety)
        share = sum(example.labels["sarcasm"] == "sarcastic" for example in part) / len(part)
        assert 0.38 < share < 0.5, variety


def test_sarcasm_is_not_the_same_as_a_negative_sentiment(contrast: Corpus) -> None:
    meant = Counter((e.labels["sarcasm"], e.labels["sentiment"]) for e in contrast)
    assert meant["literal", "negative"] > 0.4 * meant["sarcastic", "negative"]
    assert meant["sarcastic", "positive"] > 0.08 * meant["sarcastic", "negative"]


def test_two_hundred_plain_sentences_of_each_sentiment() -> None:
    plain = load("contrast?kind=plain&classes=3")
    assert min(Counter(example.labels["sentiment"] for example in plain).values()) >= 200
    assert {example.labels["sarcasm"] for example in plain} == {"literal"}


def test_a_topic_is_trained_on_or_tested_on(contrast: Corpus) -> None:
    splits = defaultdict(set)
    for example in contrast:
        splits[example.group].add(example.split)
    assert set(map(len, splits.values())) == {1}
    n_tested = sum(one == {"test"} for one in splits.values())
    assert n_tested / len(splits) == pytest.approx(0.3, abs=0.05)
    assert len(contrast.where(split="test")) >= 1400


def test_what_is_said_is_meant_in_one_text_of_a_pair_and_not_in_the_other() -> None:
    pairs = [texts for variety in VARIETIES for texts in pairs_of(variety).values()]
    pairs = [texts for texts in pairs if len(texts) > 1]
    assert len(pairs) > 1000
    assert all({sarcasm for _, sarcasm in texts} == {"sarcastic", "literal"} for texts in pairs)


def test_length_does_not_tell_the_classes_apart() -> None:
    kinds = "+".join(kind for kind in KINDS if kind != "plain")
    lengths = defaultdict(list)
    for example in load(f"contrast?kind={kinds}"):
        lengths[example.labels["sarcasm"]].append(len(example.text.split()))
    assert median(lengths["sarcastic"]) == pytest.approx(median(lengths["literal"]), rel=0.15)


def test_the_audit_finds_nothing_worse_than_small_cells_and_pairs(contrast: Corpus) -> None:
    findings = {
        (finding.kind, finding.severity): finding for finding in audit(load("contrast")).findings
    }
    assert set(findings) <= {("imbalance", "note"), ("near_duplicate", "note")}
    assert "across splits: 0" in findings["near_duplicate", "note"].sentence


def test_only_the_two_of_a_pair_are_nearly_the_same(contrast: Corpus) -> None:
    texts = [example.text for example in contrast]
    names = {
        text: f"{variety} {pair}"
        for variety in VARIETIES
        for pair, members in pairs_of(variety).items()
        for text, _ in members
    }
    found = near_duplicates(texts).pairs
    assert found
    assert all(names[texts[one]] == names[texts[other]] for one, other in found)


@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])
def test_words_alone_do_not_tell_sarcasm_on_other_topics(contrast: Corpus, half: int) -> None:
    assert score_of_words(contrast, half) < 0.75


def test_the_card_counts_right(contrast: Corpus) -> None:
    check_card_counts(contrast, VARIETIES)


def test_the_card_quotes_a_pair_of_the_corpus() -> None:
    card = (files("litotes.data") / "contrast" / "CARD.md").read_text(encoding="utf-8")
    quoted = {line[2:] for line in card.splitlines() if line.startswith("> ")}
    pairs = [texts for variety in VARIETIES for texts in pairs_of(variety).values()]
    assert quoted in [{text for text, _ in texts} for texts in pairs]


def test_an_unknown_kind_is_named_with_what_there_is() -> None:
    with pytest.raises(UserError, match=r"no kind of text 'prase'\. Did you mean 'praise'"):
        load("contrast?kind=plain+prase")
