"""Selecting from a corpus and dividing it."""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from litotes.core.errors import UserError
from litotes.core.values import Example, Task
from litotes.data.corpus import (
    Block,
    Cell,
    Corpus,
    Count,
    choose,
    components,
    fraction,
    split_by_hash,
    text_key,
)

MakeCorpus = Callable[[Iterable[Example]], Corpus]


@pytest.fixture
def small(corpus: MakeCorpus) -> Corpus:
    both = {"sentiment": "positive", "sarcasm": "literal"}
    return corpus(
        [
            Example("a", both, variety="en-UK", source="Reddit"),
            Example("b", {"sentiment": "negative"}, None, "en-AU", "Reddit", "valid"),
            Example("c", {"sarcasm": "sarcastic"}, None, "en-AU", "Google"),
            Example("d", {}, None, "en-AU", "Google", "test"),
        ]
    )


def texts(corpus: Corpus) -> str:
    return "".join(example.text for example in corpus)


def test_where_selects_words_and_takes_other_labels_away(small: Corpus) -> None:
    assert texts(small.where(variety="en-AU")) == "bcd"
    assert texts(small.where(variety=["en-AU", "en-UK"], source="Reddit")) == "ab"
    assert texts(small.where(split=("train", "test"), source={"Google"})) == "cd"
    assert small.where() == small
    sarcasm = small.where(task="sarcasm")
    assert [(one.text, dict(one.labels)) for one in sarcasm] == [
        ("a", {"sarcasm": "literal"}),
        ("c", {"sarcasm": "sarcastic"}),
    ]
    assert list(sarcasm.tasks) == ["sarcasm"]
    assert len(small.examples[0].labels) == 2, "the whole is untouched"


@pytest.mark.parametrize(
    ("selection", "told"),
    [
        ({"variety": "en-AA"}, "made: .*variety 'en-AA'. .*'en-AU'.* Known: en-AU, en-UK"),
        ({"source": "reddit"}, "made: .*source 'reddit'. .*'Reddit'.* Known: Google, Reddit"),
        ({"task": ["sarcasm", "irony"]}, "made: .*task 'irony'. Known: sarcasm, sentiment"),
        ({"split": "dev"}, "made: .*split 'dev'. Known: test, train, valid"),
        (
            {"variety": "en-UK", "source": ["Google"]},
            r"made fits variety=en-UK source=Google. .*en-AU Google \(train, test\); en-AU Reddit"
            r" \(valid\); en-UK Reddit \(train\)",
        ),
        ({"task": []}, "made fits task="),
    ],
)
def test_where_explains_what_it_cannot_find(
    small: Corpus, selection: dict[str, str], told: str
) -> None:
    with pytest.raises(UserError, match=told):
        small.where(**selection)
    nameless = replace(small, examples=(Example("a", {}),))
    with pytest.raises(UserError, match=r"names no variety .* variety='en-AU' selects nothing"):
        nameless.where(variety="en-AU")


def test_cells_splits_and_counts(small: Corpus) -> None:
    assert [str(cell) for cell in small.cells()] == ["en-AU Google", "en-AU Reddit", "en-UK Reddit"]
    odd = Cell(None, "X"), Cell("en-IN", None), Cell(None, None)
    assert list(map(str, odd)) == ["X", "en-IN", "all"]
    assert small.splits() == ("train", "valid", "test")
    assert small.test_split() == "valid", "the test text has no label"
    labelled = Example("e", {"sarcasm": "literal"}, split="test")
    assert replace(small, examples=(*small, labelled)).test_split() == "test"
    with pytest.raises(UserError, match=r"set a part of it aside with Corpus\.hold_out"):
        small.where(split="train").test_split()
    assert small.where(variety="en-AU").counts() == (
        Count(Cell("en-AU", "Google"), "train", "sarcasm", "sarcastic", 1),
        Count(Cell("en-AU", "Reddit"), "valid", "sentiment", "negative", 1),
    )
    several = [Example("x", {"mood": ("glad", "calm"), "warmth": n / 2}) for n in range(3)]
    counts = replace(small, examples=tuple(several)).counts()
    assert [(one.label, one.n) for one in counts] == [("calm", 3), ("glad", 3), (None, 3)]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Good  Tea\n", "good tea", True),
        ("ﬁne", "FINE", True),
        ("Straße", "STRASSE", True),
        ("good tea", "goodtea", False),
        ("tea!", "tea", False),
    ],
)
def test_text_key(one: str, other: str, same: bool) -> None:
    assert (text_key(one) == text_key(other)) is same


@pytest.mark.slow
@settings(max_examples=50)
@given(st.text())
@example("ß\u0301")  # folds to an s with a combining accent, which must be composed again
def test_text_key_of_a_key_is_itself(text: str) -> None:
    assert text_key(text_key(text)) == text_key(text)


def test_without_leaks_drops_texts_pairs_and_groups(corpus: MakeCorpus) -> None:
    whole = corpus(
        [
            Example("Same", {"sentiment": "positive"}),
            Example("other", {}, group="g"),
            Example("pair", {}, pair="one"),
            Example("Two", {}, pair="PAIR"),  # the other way round
            Example("kept", {}, group="h"),
            Example("same ", {"sarcasm": "literal"}, split="valid"),
            Example("x", {}, split="test", group="g"),
            Example("pair", {}, pair="two", split="test"),
        ]
    )
    clean, n_dropped = whole.without_leaks()
    assert n_dropped == 3
    assert [example.text for example in clean] == ["pair", "kept", "same ", "x", "pair"]
    assert clean.without_leaks() == (clean, 0)


def test_a_pair_the_other_way_round_is_on_the_same_side(corpus: MakeCorpus) -> None:
    pairs = [("Is it warm?", "Is it hot?"), ("Is it late?", "What time is it?")]
    both = [Example(one, {}, pair=other) for one, other in pairs]
    both += [Example(other.upper(), {}, pair=one) for one, other in pairs]
    for seed in range(5):
        rest, held = (
            {frozenset((one.text.casefold(), str(one.pair).casefold())) for one in side}
            for side in corpus(both).hold_out(0.5, seed=seed)
        )
        assert rest
        assert held
        assert not rest & held


def test_fingerprint_depends_on_content_and_not_on_order(small: Corpus) -> None:
    assert replace(small, examples=small.examples[::-1]).fingerprint() == small.fingerprint()
    first, *others = small.examples
    changes = ({"text": "A"}, {"split": "test"}, {"labels": {}}, {"group": "g"}, {"pair": "p"})
    changed = [(replace(first, **change), *others) for change in changes]  # type: ignore[arg-type]
    changed += [small.examples, (*small.examples, first)]
    assert len({replace(small, examples=one).fingerprint() for one in changed}) == 7


EXAMPLES = st.lists(
    st.builds(
        Example,
        text=st.sampled_from(["tea", "Tea ", "scone", "jam", "cream", "milk", "bun", "egg"]),
        labels=st.sampled_from([{}, {"sentiment": "negative"}, {"sentiment": "positive"}]),
        variety=st.sampled_from(["en-AU", "en-UK", None]),
        group=st.sampled_from([None, None, "g", "h"]),
    ),
    min_size=2,
    max_size=30,
)


@pytest.mark.slow
@settings(max_examples=100)
@given(EXAMPLES, st.floats(0.01, 0.99), st.integers(0, 5), st.randoms(use_true_random=False))
def test_hold_out_keeps_its_promises(
    examples: list[Example], share: float, seed: int, shuffler: random.Random
) -> None:
    def keys(part: Iterable[Example]) -> set[str]:
        groups = {f"group {one.group}" for one in part} - {"group None"}
        return {text_key(one.text) for one in part} | groups

    whole = Corpus("made", tuple(examples), {})
    reached, n_before = keys(examples[:1]), 0
    while len(reached) > n_before:
        n_before = len(reached)
        reached |= keys([one for one in examples if keys([one]) & reached])
    if all(keys([one]) & reached for one in examples):  # all are tied to the first
        with pytest.raises(UserError, match="cannot be divided"):
            whole.hold_out(share, seed=seed)
        return
    rest, held = whole.hold_out(share, seed=seed)
    assert rest.examples
    assert held.examples
    parts = replace(whole, examples=rest.examples + held.examples)
    assert parts.fingerprint() == whole.fingerprint(), "nothing is lost"
    assert not keys(rest) & keys(held)
    shuffled = replace(whole, examples=tuple(shuffler.sample(examples, len(examples))))
    assert shuffled.hold_out(share, seed=seed)[1].fingerprint() == held.fingerprint()


def test_hold_out_spreads_cells_labels_groups_and_numbers(corpus: MakeCorpus) -> None:
    sizes = {("AU", "positive"): 200, ("AU", "negative"): 50, ("UK", "positive"): 20}
    whole = corpus(
        Example(f"{variety} {label} {n}", {"sentiment": label}, variety=variety)
        for (variety, label), size in sizes.items()
        for n in range(size)
    )
    drawn = set()
    for seed in range(3):
        rest, held = whole.hold_out(0.1, seed=seed)
        found = Counter((str(one.variety), str(one.labels["sentiment"])) for one in held)
        assert all(abs(found[cell] - 0.1 * size) <= 1 for cell, size in sizes.items())
        drawn.add(held.fingerprint())
    assert len(drawn) == 3, "each seed draws differently"
    with_test = whole.with_test_part(0.1, seed=seed)
    assert [one.text for one in with_test] == [one.text for one in whole]
    assert [one.text for one in with_test if one.split == "test"] == [one.text for one in held]
    assert len(rest) + len(held) == 270
    groups = {**{f"small {n}": 1 for n in range(300)}, **{f"large {n}": 6 for n in range(50)}}
    grouped = [
        Example(f"{group} {n}", {}, group=group)
        for group, size in groups.items()
        for n in range(size)
    ]
    _, held = corpus(grouped).hold_out(0.2, seed=1)
    by_size = Counter(str(one.group).split()[0] for one in held)
    assert by_size["small"] == pytest.approx(60, abs=6)
    assert by_size["large"] == pytest.approx(60, abs=6)
    assert corpus(grouped[::-1]).hold_out(0.2, seed=1)[1].fingerprint() == held.fingerprint()
    scores = corpus(Example(str(n), {"warmth": n / 100}) for n in range(500))
    held = scores.hold_out(0.2, seed=0)[1]
    mean = sum(float(str(one.labels["warmth"])) for one in held) / len(held)
    assert mean == pytest.approx(2.495, abs=0.1)


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan")])
def test_hold_out_refuses_an_impossible_share(small: Corpus, share: float) -> None:
    with pytest.raises(UserError, match="give a number between 0 and 1"):
        small.hold_out(share, seed=0)


def test_fractions_are_fixed_and_spread_evenly() -> None:
    """The values are the first six bytes of SHA-256, by another program."""
    assert fraction("") == 0xE3B0C44298FC / 2**48
    assert fraction("abc") == 0xBA7816BF8F01 / 2**48
    tested = sum(split_by_hash(str(n), test_share=0.3) == "test" for n in range(2000))
    assert tested / 2000 == pytest.approx(0.3, abs=0.03)


def test_items_that_share_keys_are_connected_and_blocks_are_chosen_whole() -> None:
    assert components([["a"], ["b"], ["c", "b"], [], ["c", "a"]]) == [0, 0, 0, 3, 0]
    blocks = [Block("x", n / 10, tuple(range(10 * n, 10 * n + 2))) for n in range(10)]
    for start in (0.0, 0.5, 0.99):
        assert len(choose(blocks, share=0.3, start=start)) == 3
    assert choose(blocks[:3], share=0.01, start=0.0) == blocks[:1], "at least one"
    assert choose(blocks[:3], share=0.99, start=0.99) == blocks[1:3], "not all"


def test_labels_can_be_renamed_merged_and_taken_away() -> None:
    three = Task("mood", ("bad", "so-so", "good"))
    examples = tuple(Example(f"text {word}", {"mood": word}) for word in three.labels)
    corpus = Corpus("made", examples, {"mood": three})
    merged = corpus.map_labels({"mood": {"so-so": "bad"}})
    assert merged.tasks["mood"].labels == ("bad", "good")
    assert [example.labels["mood"] for example in merged] == ["bad", "bad", "good"]
    without = corpus.map_labels({"mood": {"so-so": ""}})
    assert [example.labels for example in without] == [{"mood": "bad"}, {}, {"mood": "good"}]
    for wrong, told in (
        ({"moood": {}}, "no task 'moood'"),
        ({"mood": {"god": ""}}, "'god'.*'good'"),
        ({"mood": dict.fromkeys(three.labels, "")}, "no label of mood is left"),
    ):
        with pytest.raises(UserError, match=told):
            corpus.map_labels(wrong)
    several = replace(corpus, examples=(Example("x", {"mood": ("bad", "good")}),))
    mapped = several.map_labels({"mood": {"bad": "", "good": "fine"}})
    assert mapped.examples[0].labels == {"mood": ("fine",)}


def test_joining_labels_gives_training_texts_what_other_splits_know() -> None:
    examples = (
        Example("Both splits", {"glad": "yes"}, split="train"),
        Example("both  SPLITS", {"ironic": "no", "glad": "no"}, split="valid"),
        Example("Train alone", {"glad": "no"}, split="train"),
    )
    joined, n = Corpus("made", examples, {}).join_labels()
    assert n == 1
    assert [dict(example.labels) for example in joined] == [
        {"glad": "yes", "ironic": "no"},
        {"ironic": "no", "glad": "no"},
        {"glad": "no"},
    ]


def test_a_notebook_shows_the_counts_escaped() -> None:
    label = {"mood": "<b>"}
    examples = (
        Example("one", label, variety="en-AU", source="a & b"),
        Example("two", {**label, "warmth": 0.5}, variety="en-AU", source="a & b"),
    )
    shown = Corpus("<script>", examples, {})._repr_html_()
    assert "<caption>&lt;script&gt;: 2 texts</caption>" in shown
    assert "<script>" not in shown
    assert "<b>" not in shown
    assert shown.count("en-AU a &amp; b") == 2
    assert shown.index("&lt;b&gt;</td><td>2</td>") < shown.index("a number</td><td>1</td>")
