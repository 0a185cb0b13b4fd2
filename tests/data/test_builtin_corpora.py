"""The built-in corpora keep what their cards say."""

import json
from collections import Counter, defaultdict
from functools import cache
from importlib.resources import files
from statistics import median

import pytest

from litotes.core.errors import UserError
from litotes.data.audit import audit
from litotes.data.corpus import Corpus
from litotes.data.near_duplicates import near_duplicates
from litotes.data.sources import load

VARIETIES = {
    "sampler": ("en-AU", "en-IN", "en-UK"),
    "contrast": ("en-AU", "en-IE", "en-IN", "en-NG", "en-UK", "en-US"),
    "asides": ("en-AU", "en-IE", "en-IN", "en-NG", "en-SG", "en-UK", "en-US"),
}
FORMS = {
    "sampler": {"forum", "review"},
    "contrast": {"forum", "post", "reply", "review"},
    "asides": {"debate", "dialogue", "forum", "headline", "post", "reply", "review"},
}
SARCASTIC = {"sampler": (0.25, 0.42), "contrast": (0.38, 0.5), "asides": (0.3, 0.5)}
LEAST = {"sampler": 600, "contrast": 3000, "asides": 3000}
TEST_SHARE = {"sampler": 0.3, "contrast": 0.3, "asides": 0.15}
EVERY = pytest.mark.parametrize("name", VARIETIES)
MEANT = pytest.mark.parametrize("name", ["contrast", "asides"])


@cache
def corpus_of(name: str) -> Corpus:
    return load(name if name == "sampler" else f"{name}?classes=3")


def rows_of(name: str, variety: str) -> list[dict[str, str]]:
    lines = (files("litotes.data") / name / f"{variety}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in lines.splitlines()]


def pairs_of(name: str, variety: str) -> list[list[dict[str, str]]]:
    """Texts that are to differ in what is meant."""
    found = defaultdict(list)
    for row in rows_of(name, variety):
        found[row.get("pair")].append(row)
    found.pop(None, None)
    return list(found.values())


@EVERY
def test_every_text_has_both_labels_and_a_known_variety_and_form(name: str) -> None:
    corpus = corpus_of(name)
    assert len(corpus) >= LEAST[name]
    assert all(set(example.labels) == {"sentiment", "sarcasm"} for example in corpus)
    assert {example.variety for example in corpus} == set(VARIETIES[name])
    assert {example.source for example in corpus} == FORMS[name]


@EVERY
def test_neither_class_is_rare_in_any_variety(name: str) -> None:
    low, high = SARCASTIC[name]
    for variety in VARIETIES[name]:
        part = corpus_of(name).where(variety=variety)
        share = sum(example.labels["sarcasm"] == "sarcastic" for example in part) / len(part)
        assert low < share < high, variety


@EVERY
def test_a_topic_is_trained_on_or_tested_on(name: str) -> None:
    corpus, splits = corpus_of(name), defaultdict(set)
    for example in corpus:
        splits[example.group or example.text].add(example.split)
    assert set(map(len, splits.values())) == {1}
    share = sum(one == {"test"} for one in splits.values()) / len(splits)
    assert share == pytest.approx(TEST_SHARE[name], abs=0.06)


@EVERY
def test_the_audit_finds_neither_leaks_nor_labels_that_contradict(name: str) -> None:
    findings = {one.kind: one for one in audit(corpus_of(name)).findings}
    assert set(findings) <= {"imbalance", "empty_cell", "near_duplicate"}
    if "near_duplicate" in findings:
        assert "across splits: 0" in findings["near_duplicate"].sentence


@EVERY
def test_the_card_counts_right(name: str) -> None:
    corpus = corpus_of(name)
    card = (files("litotes.data") / name / "CARD.md").read_text(encoding="utf-8")
    assert f"**{len(corpus):,} texts**" in card
    labels = ["negative", "neutral", "positive", "literal", "sarcastic"]
    for variety in VARIETIES[name]:
        part = corpus.where(variety=variety)
        words = Counter(label for example in part for label in example.labels.values())
        numbers = [len(part), *(words[label] for label in labels)]
        if name == "sampler":
            forms = Counter(example.source for example in part)
            numbers[1:3] = forms["review"], forms["forum"], words["negative"]
        assert f"| {variety} | {' | '.join(map(str, numbers))} |" in card
    if name != "sampler":
        parts = (len(corpus.where(split=split)) for split in ("train", "test"))
        assert "{:,} for training, {:,} for testing".format(*parts) in card


@MEANT
def test_sarcasm_is_not_the_same_as_a_negative_sentiment(name: str) -> None:
    meant = Counter((e.labels["sarcasm"], e.labels["sentiment"]) for e in corpus_of(name))
    assert meant["literal", "negative"] > 0.4 * meant["sarcastic", "negative"]
    assert meant["sarcastic", "positive"] > 0.08 * meant["sarcastic", "negative"]


@MEANT
def test_length_does_not_tell_the_classes_apart(name: str) -> None:
    plain = {example.text for example in load("contrast?kind=plain&classes=3")}  # all literal
    lengths = defaultdict(list)
    for example in corpus_of(name):
        if example.text not in plain:
            lengths[example.labels["sarcasm"]].append(len(example.text.split()))
    assert median(lengths["sarcastic"]) == pytest.approx(median(lengths["literal"]), rel=0.15)


@MEANT
def test_the_texts_of_a_pair_differ_in_what_is_meant(name: str) -> None:
    pairs = [pair for variety in VARIETIES[name] for pair in pairs_of(name, variety)]
    pairs = [pair for pair in pairs if len(pair) > 1]
    assert len(pairs) > (1000 if name == "contrast" else 0)
    assert all({row["sarcasm"] for row in pair} == {"sarcastic", "literal"} for pair in pairs)


@MEANT
@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])
def test_words_alone_do_not_tell_sarcasm_on_other_topics(name: str, half: int) -> None:
    """Counts of words and word pairs, fitted on half of the topics, on the others."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score

    topics = sorted({str(example.group) for example in corpus_of(name)})
    half_of = {topic: number % 2 for number, topic in enumerate(topics)}
    parts: tuple[list[tuple[str, str]], ...] = ([], [])
    for one in corpus_of(name):
        parts[half_of[str(one.group)]].append((one.text, str(one.labels["sarcasm"])))
    train, test = parts[half], parts[1 - half]
    words = CountVectorizer(ngram_range=(1, 2), min_df=2)
    model = LogisticRegression(max_iter=1000, class_weight="balanced")
    model.fit(words.fit_transform(text for text, _ in train), [label for _, label in train])
    answers = model.predict(words.transform(text for text, _ in test))
    assert f1_score([label for _, label in test], answers, average="macro") < 0.75


def test_without_a_third_class_texts_without_sentiment_have_no_label() -> None:
    three = corpus_of("contrast")
    neutral = [example.text for example in three if example.labels["sentiment"] == "neutral"]
    without = [example.text for example in load("contrast") if "sentiment" not in example.labels]
    assert without == neutral


def test_two_hundred_plain_sentences_of_each_sentiment() -> None:
    plain = load("contrast?kind=plain&classes=3")
    assert min(Counter(example.labels["sentiment"] for example in plain).values()) >= 200
    assert {example.labels["sarcasm"] for example in plain} == {"literal"}
    with pytest.raises(UserError, match=r"prase.*praise"):
        load("contrast?kind=plain+prase")


def test_only_the_two_of_a_pair_are_nearly_the_same_and_nothing_stands_in_two_corpora() -> None:
    names = {
        row["text"]: f"{variety} {number}"
        for variety in VARIETIES["contrast"]
        for number, pair in enumerate(pairs_of("contrast", variety))
        for row in pair
    }
    own = [example.text for example in corpus_of("contrast")]
    texts = own + [example.text for example in corpus_of("asides")]
    found = [pair for pair in near_duplicates(texts).pairs if pair[0] < len(own)]
    assert found
    assert all(two < len(own) and names[texts[one]] == names[texts[two]] for one, two in found)


def test_the_card_quotes_a_pair_of_the_corpus() -> None:
    card = (files("litotes.data") / "contrast" / "CARD.md").read_text(encoding="utf-8")
    quoted = {line[2:] for line in card.splitlines() if line.startswith("> ")}
    pairs = [pair for variety in VARIETIES["contrast"] for pair in pairs_of("contrast", variety)]
    assert quoted in [{row["text"] for row in pair} for pair in pairs]
