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
TEST_SHARE = {"sampler": 0.3, "contrast": 0.3, "asides": 0.15}
EVERY = pytest.mark.parametrize("name", VARIETIES)
MEANT = pytest.mark.parametrize("name", ["contrast", "asides"])


@cache
def corpus_of(name: str) -> Corpus:
    return load(name if name == "sampler" else f"{name}?classes=3")


@cache
def pairs_of(name: str) -> list[list[dict[str, str]]]:
    """Texts that are to differ in what is meant."""
    found = defaultdict(list)
    for variety in VARIETIES[name]:
        lines = (files("litotes.data") / name / f"{variety}.jsonl").read_text(encoding="utf-8")
        for row in map(json.loads, lines.splitlines()):
            found[variety, row.get("pair")].append(row)
    return [rows for (_, pair), rows in found.items() if pair is not None and len(rows) > 1]


@EVERY
def test_labels_varieties_forms_and_topics(name: str) -> None:
    corpus, splits = corpus_of(name), defaultdict(set)
    assert len(corpus) >= (600 if name == "sampler" else 3000)
    assert {example.source for example in corpus} == FORMS[name]
    assert {example.variety for example in corpus} == set(VARIETIES[name])
    for example in corpus:
        assert set(example.labels) == {"sentiment", "sarcasm"}
        splits[example.group or example.text].add(example.split)
    assert set(map(len, splits.values())) == {1}, "a topic is trained on or tested on"
    share = sum(one == {"test"} for one in splits.values()) / len(splits)
    assert share == pytest.approx(TEST_SHARE[name], abs=0.06)


@EVERY
@pytest.mark.slow
def test_the_audit_finds_neither_leaks_nor_labels_that_contradict(name: str) -> None:
    findings = {one.kind: one for one in audit(corpus_of(name)).findings}
    assert set(findings) <= {"imbalance", "empty_cell", "near_duplicate"}
    if "near_duplicate" in findings:
        assert "across splits: 0" in findings["near_duplicate"].sentence


@EVERY
def test_the_card_counts_right_and_neither_class_is_rare(name: str) -> None:
    corpus = corpus_of(name)
    card = (files("litotes.data") / name / "CARD.md").read_text(encoding="utf-8")
    assert f"**{len(corpus):,} texts**" in card
    labels = ["negative", "neutral", "positive", "literal", "sarcastic"]
    for variety in VARIETIES[name]:
        part = corpus.where(variety=variety)
        words = Counter(label for example in part for label in example.labels.values())
        low, high = SARCASTIC[name]
        assert low < words["sarcastic"] / len(part) < high, variety
        numbers = [len(part), *(words[label] for label in labels)]
        if name == "sampler":
            forms = Counter(example.source for example in part)
            numbers[1:3] = forms["review"], forms["forum"], words["negative"]
        assert f"| {variety} | {' | '.join(map(str, numbers))} |" in card
    if name != "sampler":
        parts = (len(corpus.where(split=split)) for split in ("train", "test"))
        assert "{:,} for training, {:,} for testing".format(*parts) in card
    if name == "contrast":
        quoted = {line[2:] for line in card.splitlines() if line.startswith("> ")}
        assert quoted in [{row["text"] for row in pair} for pair in pairs_of(name)]


@MEANT
def test_neither_sentiment_nor_length_tells_sarcasm_and_pairs_differ(name: str) -> None:
    meant = Counter((e.labels["sarcasm"], e.labels["sentiment"]) for e in corpus_of(name))
    assert meant["literal", "negative"] > 0.4 * meant["sarcastic", "negative"]
    assert meant["sarcastic", "positive"] > 0.08 * meant["sarcastic", "negative"]
    plain = {example.text for example in load("contrast?kind=plain&classes=3")}  # all literal
    lengths = defaultdict(list)
    for example in corpus_of(name):
        if example.text not in plain:
            lengths[example.labels["sarcasm"]].append(len(example.text.split()))
    assert median(lengths["sarcastic"]) == pytest.approx(median(lengths["literal"]), rel=0.15)
    assert len(pairs_of(name)) > (1000 if name == "contrast" else 0)
    for pair in pairs_of(name):
        assert {row["sarcasm"] for row in pair} == {"sarcastic", "literal"}


@MEANT
@pytest.mark.slow
def test_words_alone_do_not_tell_sarcasm_on_other_topics(name: str) -> None:
    """Counts of words and word pairs, fitted on half of the topics, on the others."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score

    topics = sorted({str(example.group) for example in corpus_of(name)})
    half_of = {topic: number % 2 for number, topic in enumerate(topics)}
    halves: tuple[list[tuple[str, str]], ...] = ([], [])
    for one in corpus_of(name):
        halves[half_of[str(one.group)]].append((one.text, str(one.labels["sarcasm"])))
    train, test = halves
    words = CountVectorizer(ngram_range=(1, 2), min_df=2)
    model = LogisticRegression(max_iter=1000, class_weight="balanced")
    model.fit(words.fit_transform(text for text, _ in train), [label for _, label in train])
    answers = model.predict(words.transform(text for text, _ in test))
    assert f1_score([label for _, label in test], answers, average="macro") < 0.75


def test_classes_and_kinds_are_chosen() -> None:
    three = corpus_of("contrast")
    neutral = [example.text for example in three if example.labels["sentiment"] == "neutral"]
    without = [example.text for example in load("contrast") if "sentiment" not in example.labels]
    assert without == neutral
    plain = load("contrast?kind=plain&classes=3")
    assert min(Counter(example.labels["sentiment"] for example in plain).values()) >= 200
    assert {example.labels["sarcasm"] for example in plain} == {"literal"}
    with pytest.raises(UserError, match=r"prase.*praise"):
        load("contrast?kind=plain+prase")


@pytest.mark.slow
def test_only_the_two_of_a_pair_are_nearly_the_same_and_nothing_stands_in_two_corpora() -> None:
    pairs = enumerate(pairs_of("contrast"))
    numbers = {row["text"]: number for number, pair in pairs for row in pair}
    own = [example.text for example in corpus_of("contrast")]
    texts = own + [example.text for example in corpus_of("asides")]
    found = [pair for pair in near_duplicates(texts).pairs if pair[0] < len(own)]
    assert found
    assert all(two < len(own) and numbers[texts[one]] == numbers[texts[two]] for one, two in found)
