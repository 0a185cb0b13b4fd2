"""Each kind of trouble is found where it was put, and none where there is none."""

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from litotes.core.values import Example, Label, Task
from litotes.data.audit import CHECKS, Finding, audit
from litotes.data.corpus import Cell, Corpus

MakeCorpus = Callable[[Iterable[Example]], Corpus]
WORDS = [
    f"{start}{middle}{end}"
    for start in "bdfgkm"
    for middle in "aeiou"
    for end in ("nt", "rk", "ss", "ll")
]


@pytest.fixture
def clean(corpus: MakeCorpus) -> Corpus:
    """Two varieties and two sources, train and test, sixty texts of ten random words in each."""
    draw = random.Random(0)
    return corpus(
        Example(
            " ".join(draw.choices(WORDS, k=10)),
            {
                "sentiment": ("negative", "positive")[n % 2],
                "sarcasm": ("literal", "sarcastic")[n % 3 == 0],
            },
            variety=variety,
            source=source,
            split=split,
        )
        for variety in ("en-AU", "en-UK")
        for source in ("Google", "Reddit")
        for split in ("train", "test")
        for n in range(60)
    )


def findings(corpus: Corpus, kind: str) -> list[Finding]:
    return [finding for finding in audit(corpus).findings if finding.kind == kind]


def plus(corpus: Corpus, *more: Example) -> Corpus:
    return replace(corpus, examples=corpus.examples + more)


def like(example: Example, **changes: object) -> Example:
    return replace(example, **changes)  # type: ignore[arg-type]


def test_a_clean_corpus_has_no_findings(clean: Corpus) -> None:
    found = audit(clean)
    assert found.findings == ()
    assert (found.corpus, found.n_examples) == ("made", 480)


def test_leak(clean: Corpus) -> None:
    held = next(example for example in clean if example.split == "test")
    (finding,) = findings(plus(clean, like(held, text=held.text.upper(), split="train")), "leak")
    assert (finding.severity, finding.n) == ("error", 2), "both labels of the text"
    assert finding.examples == (held.text.upper(),), "one of the two spellings"
    assert "without_leaks" in finding.advice


def test_a_text_in_an_unlabelled_test_split_is_a_leak_for_every_task(clean: Corpus) -> None:
    train = clean.examples[0]
    leaky = plus(clean, like(train, split="valid", labels={}))
    assert [finding.n for finding in findings(leaky, "leak")] == [2]
    assert not findings(leaky, "cross_task_leak")


def test_cross_task_leak(clean: Corpus) -> None:
    held = like(clean.examples[0], text="only once", split="test", labels={"sarcasm": "literal"})
    leaky = plus(clean, held, like(held, split="train", labels={"sentiment": "positive"}))
    (finding,) = findings(leaky, "cross_task_leak")
    assert (finding.severity, finding.n, finding.examples) == ("error", 1, ("only once",))
    assert not findings(leaky, "leak")
    assert not findings(leaky.where(task="sarcasm"), "cross_task_leak"), (
        "one task alone does not leak"
    )
    assert not findings(leaky.without_leaks()[0], "cross_task_leak")


def test_group_leak(clean: Corpus) -> None:
    train = like(clean.examples[0], text="one version", group="g")
    (finding,) = findings(
        plus(clean, train, like(train, text="quite another", split="test")), "group_leak"
    )
    assert (finding.severity, finding.n, finding.examples) == ("error", 1, ("one version",))


def test_a_pair_the_other_way_round_leaks(clean: Corpus) -> None:
    one = like(clean.examples[0], text="Is it warm?", pair="Is it hot?", split="train")
    other = like(one, text="is it hot?", pair="Is it warm?", split="test")
    (finding,) = findings(plus(clean, one, other), "leak")
    assert finding.n == len(one.labels)


def test_exact_duplicate(clean: Corpus) -> None:
    again = like(clean.examples[0], labels={"sarcasm": clean.examples[0].labels["sarcasm"]})
    found = audit(plus(clean, again, like(again, text=again.text + " ")))
    assert [(finding.kind, finding.n) for finding in found.findings] == [("exact_duplicate", 2)]


def test_label_conflict(clean: Corpus) -> None:
    labels: dict[str, Label] = {"sentiment": "positive"}  # the first text is negative
    found = audit(plus(clean, like(clean.examples[0], labels=labels)))
    assert [(finding.kind, finding.n) for finding in found.findings] == [
        ("label_conflict", 1),
        ("exact_duplicate", 1),
    ]


@pytest.mark.parametrize(
    ("split", "severity", "n_across"), [("train", "note", 0), ("test", "warning", 1)]
)
def test_near_duplicate(clean: Corpus, split: str, severity: str, n_across: int) -> None:
    text = " ".join(WORDS[:40])
    one = like(clean.examples[0], text=text)
    (finding,) = findings(
        plus(clean, one, like(one, text=f"{text} indeed!", split=split)), "near_duplicate"
    )
    assert (finding.severity, finding.n) == (severity, 1)
    assert finding.sentence.endswith(f"1, of them across splits: {n_across}.")
    assert [example[:100] for example in finding.examples] == [text[:100]] * 2, (
        "both texts of the pair"
    )


def test_imbalance(clean: Corpus) -> None:
    def in_cell(example: Example, variety: str, split: str) -> bool:
        return (example.variety, example.source, example.split) == (variety, "Google", split)

    examples = []
    for n, example in enumerate(clean):
        labels = dict(example.labels)
        if in_cell(example, "en-AU", "train"):
            labels["sarcasm"] = "literal"
        if in_cell(example, "en-AU", "test"):
            labels["sarcasm"] = "sarcastic" if n % 60 < 2 else "literal"
        if in_cell(example, "en-UK", "test") and n % 60 >= 49:
            continue
        examples.append(replace(example, labels=labels))
    found = findings(replace(clean, examples=tuple(examples)), "imbalance")
    assert [(finding.severity, finding.n) for finding in found] == [
        ("warning", 1),
        ("warning", 1),
        ("note", 2),
    ]
    assert found[0].examples == ("en-AU Google, train, sarcasm: 0 sarcastic of 60",)
    assert found[1].examples == ("en-AU Google, test, sarcasm: 2 sarcastic of 60",)
    assert found[2].examples == (
        "en-UK Google, test, sarcasm: 49 labels",
        "en-UK Google, test, sentiment: 49 labels",
    )


def test_empty_cell(clean: Corpus) -> None:
    cut = tuple(
        example
        for example in clean
        if (example.variety, example.source, example.split) != ("en-UK", "Reddit", "test")
    )
    found = audit(replace(clean, examples=cut))
    assert [(finding.kind, finding.severity, finding.n) for finding in found.findings] == [
        ("empty_cell", "note", 2)
    ]
    assert found.findings[0].examples == (
        "en-UK Reddit, test, sarcasm",
        "en-UK Reddit, test, sentiment",
    )


def test_length(clean: Corpus) -> None:
    draw = random.Random(1)
    long = " ".join(draw.choices(WORDS, k=385))
    found = audit(
        plus(clean, like(clean.examples[0], text=long), like(clean.examples[0], text=long[4:]))
    )
    assert [
        (finding.kind, finding.n) for finding in found.findings if finding.kind == "length"
    ] == [("length", 1)]
    first = found.lengths[0]
    assert (first.cell, first.n, first.median, first.percentile_90, first.longest) == (
        Cell("en-AU", "Google"),
        122,
        10.0,
        10,
        385,
    )


def test_numbers_are_audited_too() -> None:
    scores = Corpus(
        "scores",
        tuple(Example(f"{n} apart", {"warmth": 1.5}) for n in range(3)),
        {"warmth": Task("warmth", ())},
    )
    (finding,) = audit(scores).findings
    assert (finding.kind, finding.examples) == ("imbalance", ("all, train, warmth: 3 labels",))


def test_findings_come_worst_first_and_in_the_same_order(clean: Corpus) -> None:
    held = next(example for example in clean if example.split == "test")
    leaked = [
        like(example, split="train") for example in clean.examples if example.split == "test"
    ][:5]
    # a note, looked for before ...
    near = [
        like(clean.examples[0], text=" ".join(WORDS[:40]) + end) for end in (" indeed", " really")
    ]
    # ... the warning that a class is absent here
    lonely = like(held, text="far away", variety="en-NZ")
    spoilt = plus(clean, *leaked, held, *near, lonely)
    shuffled = replace(
        spoilt, examples=tuple(random.Random(2).sample(spoilt.examples, len(spoilt)))
    )
    severities = [finding.severity for finding in audit(spoilt).findings]
    assert severities == sorted(severities, key=("error", "warning", "note").index)
    assert len(set(severities)) == 3
    assert audit(shuffled) == audit(spoilt)


def test_examples_are_few_and_short(clean: Corpus) -> None:
    repeated = [
        like(clean.examples[0], text=f"{n} " + "very " * 100) for n in range(5) for _ in range(2)
    ]
    (finding,) = findings(plus(clean, *repeated), "exact_duplicate")
    assert len(finding.examples) == 3
    assert all(len(example) == 120 and example.endswith("…") for example in finding.examples)


def test_the_audit_is_json(clean: Corpus) -> None:
    told = json.loads(json.dumps(audit(plus(clean, clean.examples[0])).as_json()))
    assert [finding["kind"] for finding in told["findings"]] == ["exact_duplicate"]
    assert told["balance"][0] == {
        "cell": {"variety": "en-AU", "source": "Google"},
        "split": "train",
        "task": "sarcasm",
        "label": "literal",
        "n": told["balance"][0]["n"],
    }


def test_progress_is_told(clean: Corpus) -> None:
    told: list[tuple[str, int, int, str]] = []

    def watch(what: str, done: int, total: int, note: str) -> None:
        told.append((what, done, total, note))

    audit(clean, progress=watch)
    assert told == [("audit", n, len(CHECKS), "") for n in range(1, len(CHECKS) + 1)]
