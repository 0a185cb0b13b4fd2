"""Each kind of trouble is found where it was put, and none where there is none."""

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from litotes.core.values import Example, Task
from litotes.data.audit import CHECKS, Finding, audit
from litotes.data.corpus import Cell, Corpus

MakeCorpus = Callable[[Iterable[Example]], Corpus]
WORDS = [f"{a}{b}{c}" for a in "bdfgkm" for b in "aeiou" for c in ("nt", "rk", "ss", "ll")]


@pytest.fixture
def clean(corpus: MakeCorpus) -> Corpus:
    """Two varieties and two sources, train and test, sixty texts of ten random words in each."""
    draw = random.Random(0)
    moods, tones = ("negative", "positive"), ("sarcastic", "literal", "literal")
    return corpus(
        Example(
            " ".join(draw.choices(WORDS, k=10)),
            {"sentiment": moods[n % 2], "sarcasm": tones[n % 3]},
            None,
            variety,
            source,
            split,
        )
        for variety in ("en-AU", "en-UK")
        for source in ("Google", "Reddit")
        for split in ("train", "test")
        for n in range(60)
    )


def plus(corpus: Corpus, *more: Example) -> Corpus:
    return replace(corpus, examples=corpus.examples + more)


def like(example: Example, **changes: object) -> Example:
    return replace(example, **changes)  # type: ignore[arg-type]


def summary(found: Iterable[Finding]) -> list[tuple[str, str, int]]:
    return [(finding.kind, finding.severity, finding.n) for finding in found]


def test_a_clean_corpus_has_no_findings(clean: Corpus) -> None:
    told: list[tuple[str, int, int, str]] = []
    found = audit(clean, progress=lambda *one: told.append(one))
    assert found.findings == ()
    assert (found.corpus, found.n_examples) == ("made", 480)
    assert told == [("audit", n, len(CHECKS), "") for n in range(1, len(CHECKS) + 1)]


def test_leaks(clean: Corpus) -> None:
    held, first = clean.examples[60], clean.examples[0]
    assert held.split == "test"
    loud = audit(plus(clean, like(held, text=held.text.upper(), split="train"))).findings
    assert summary(loud) == [("leak", "error", 2)], "both labels of the text"
    assert loud[0].examples == (held.text.upper(),), "one of the two spellings"
    assert "without_leaks" in loud[0].advice
    # an unlabelled text is held out for every task
    silent = audit(plus(clean, like(first, split="valid", labels={}))).findings
    assert summary(silent) == [("leak", "error", 2)]
    pair = like(first, text="Is it warm?", pair="Is it hot?")
    turned = like(pair, text="is it hot?", pair="Is it warm?", split="test")
    assert summary(audit(plus(clean, pair, turned)).findings) == [("leak", "error", 2)]
    once = like(first, text="only once", split="test", labels={"sarcasm": "literal"})
    leaky = plus(clean, once, like(once, split="train", labels={"sentiment": "positive"}))
    across = audit(leaky).findings
    assert summary(across) == [("cross_task_leak", "error", 1)]
    assert across[0].examples == ("only once",)
    assert not audit(leaky.where(task="sarcasm")).findings, "one task alone does not leak"
    assert not audit(leaky.without_leaks()[0]).findings
    train = like(first, text="one version", group="g")
    torn = audit(plus(clean, train, like(train, text="quite another", split="test"))).findings
    assert summary(torn) == [("group_leak", "error", 1)]
    assert torn[0].examples == ("one version",)


def test_duplicates_and_conflicts(clean: Corpus) -> None:
    first = clean.examples[0]
    again = like(first, labels={"sarcasm": first.labels["sarcasm"]})
    twice = audit(plus(clean, again, like(again, text=again.text + " ")))
    assert summary(twice.findings) == [("exact_duplicate", "warning", 2)]
    other = audit(plus(clean, like(first, labels={"sentiment": "positive"})))  # it is negative
    assert summary(other.findings) == [
        ("label_conflict", "warning", 1),
        ("exact_duplicate", "warning", 1),
    ]
    told = json.loads(json.dumps(other.as_json()))
    assert told["findings"][0]["examples"] == [first.text]
    cell = {"variety": "en-AU", "source": "Google"}
    assert {**told["balance"][4], "n": 0} == {
        "cell": cell,
        "split": "test",
        "task": "sarcasm",
        "label": "literal",
        "n": 0,
    }
    many = [like(first, text=f"{n} " + "very " * 100) for n in range(5) for _ in range(2)]
    (finding,) = (one for one in audit(plus(clean, *many)).findings if "exact" in one.kind)
    assert finding.n == 10
    assert [len(example) for example in finding.examples] == [120] * 3
    assert all(example.endswith("…") for example in finding.examples)


@pytest.mark.parametrize(
    ("split", "severity", "n_across"), [("train", "note", 0), ("test", "warning", 1)]
)
def test_near_duplicates(clean: Corpus, split: str, severity: str, n_across: int) -> None:
    text = " ".join(WORDS[:40])
    one = like(clean.examples[0], text=text)
    found = audit(plus(clean, one, like(one, text=f"{text} indeed!", split=split))).findings
    assert summary(found) == [("near_duplicate", severity, 1)]
    assert "80% or more" in found[0].sentence
    assert found[0].sentence.endswith(f"common: 1, of them across splits: {n_across}.")
    assert [example[:100] for example in found[0].examples] == [text[:100]] * 2


def test_lopsided_small_and_empty_cells(clean: Corpus) -> None:
    examples = []
    for n, example in enumerate(clean):
        labels, n_in_cell = dict(example.labels), n % 60
        match example.variety, example.source, example.split:
            case "en-AU", "Google", "train":
                labels["sarcasm"] = "literal"
            case "en-AU", "Google", "test":
                labels["sarcasm"] = "sarcastic" if n_in_cell < 2 else "literal"
            case "en-AU", "Reddit", "test":
                labels["sarcasm"] = "sarcastic" if n_in_cell < 3 else "literal"  # just enough
            case "en-UK", "Google", "test" if n_in_cell >= 49:
                continue
            case "en-UK", "Google", "train" if n_in_cell >= 50:
                continue
            case "en-UK", "Reddit", "test":
                continue
        examples.append(replace(example, labels=labels))
    found = audit(replace(clean, examples=tuple(examples))).findings
    assert [(one.severity, one.examples) for one in found] == [
        ("warning", ("en-AU Google, train, sarcasm: 0 sarcastic of 60",)),
        ("warning", ("en-AU Google, test, sarcasm: 2 sarcastic of 60",)),
        (
            "note",
            tuple(f"en-UK Google, test, {task}: 49 labels" for task in ("sarcasm", "sentiment")),
        ),
        ("note", ("en-UK Reddit, test, sarcasm", "en-UK Reddit, test, sentiment")),
    ]
    assert [one.kind for one in found] == ["imbalance"] * 3 + ["empty_cell"]
    scores = tuple(Example(f"{n} apart", {"warmth": 1.5}) for n in range(3))
    (finding,) = audit(Corpus("scores", scores, {"warmth": Task("warmth", ())})).findings
    assert (finding.kind, finding.examples) == ("imbalance", ("all, train, warmth: 3 labels",))


def test_lengths(clean: Corpus) -> None:
    draw = random.Random(1)
    long = " ".join(draw.choices(WORDS, k=385))
    first = clean.examples[0]
    found = audit(plus(clean, like(first, text=long), like(first, text=long[4:], pair=None)))
    assert ("length", "note", 1) in summary(found.findings)
    one = found.lengths[0]
    assert (one.cell, one.n) == (Cell("en-AU", "Google"), 122)
    assert (one.median, one.percentile_90, one.longest) == (10.0, 10, 385)
    few = audit(Corpus("few", tuple(Example("w " * n, {}) for n in range(1, 11)), {})).lengths[0]
    assert (few.median, few.percentile_90, few.longest) == (5.5, 9, 10)


def test_findings_come_worst_first_and_in_the_same_order(clean: Corpus) -> None:
    held = clean.examples[60]
    leaked = [like(one, split="train") for one in clean.examples[60:65]]
    # a note that is looked for before the warning that a class is absent
    near = [like(clean.examples[0], text=" ".join(WORDS[:40]) + end) for end in (" a", " b")]
    lonely = like(held, text="far away", variety="en-NZ")
    spoilt = plus(clean, *leaked, held, *near, lonely)
    shuffled = tuple(random.Random(2).sample(spoilt.examples, len(spoilt)))
    severities = [finding.severity for finding in audit(spoilt).findings]
    assert severities == sorted(severities, key=("error", "warning", "note").index)
    assert len(set(severities)) == 3
    assert audit(replace(spoilt, examples=shuffled)) == audit(spoilt)
