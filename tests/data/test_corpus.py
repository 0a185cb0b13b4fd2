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
from litotes.data.corpus import Cell, Corpus, Count, text_key

MakeCorpus = Callable[[Iterable[Example]], Corpus]
TASKS = {
    "sentiment": Task("sentiment", ("negative", "positive")),
    "sarcasm": Task("sarcasm", ("literal", "sarcastic")),
}


@pytest.fixture
def small(corpus: MakeCorpus) -> Corpus:
    return corpus(
        [
            Example(
                "a",
                {"sentiment": "positive", "sarcasm": "literal"},
                variety="en-UK",
                source="Reddit",
            ),
            Example(
                "b", {"sentiment": "negative"}, variety="en-AU", source="Reddit", split="valid"
            ),
            Example("c", {"sarcasm": "sarcastic"}, variety="en-AU", source="Google"),
            Example("d", {}, variety="en-AU", source="Google", split="test"),
        ]
    )


def texts(corpus: Corpus) -> str:
    return "".join(example.text for example in corpus)


def test_where_selects_one_word_or_several(small: Corpus) -> None:
    assert texts(small.where(variety="en-AU")) == "bcd"
    assert texts(small.where(variety=["en-AU", "en-UK"], source="Reddit")) == "ab"
    assert texts(small.where(split=("train", "test"), source={"Google"})) == "cd"
    assert small.where() == small


def test_where_takes_other_labels_away(small: Corpus) -> None:
    sarcasm = small.where(task="sarcasm")
    assert texts(sarcasm) == "ac"
    assert [dict(example.labels) for example in sarcasm] == [
        {"sarcasm": "literal"},
        {"sarcasm": "sarcastic"},
    ]
    assert list(sarcasm.tasks) == ["sarcasm"]
    assert small.examples[0].labels == {"sentiment": "positive", "sarcasm": "literal"}, (
        "the whole is untouched"
    )


@pytest.mark.parametrize(
    ("selection", "told"),
    [
        (
            {"variety": "en-AA"},
            "made: There is no variety 'en-AA'. Did you mean 'en-AU'? Known: en-AU, en-UK.",
        ),
        (
            {"source": "reddit"},
            "made: There is no source 'reddit'. Did you mean 'Reddit'? Known: Google, Reddit.",
        ),
        (
            {"task": ["sarcasm", "irony"]},
            "made: There is no task 'irony'. Known: sarcasm, sentiment.",
        ),
        ({"split": "dev"}, "made: There is no split 'dev'. Known: test, train, valid."),
        (
            {"variety": "en-UK", "source": ["Google"]},
            (
                "No example of made fits variety=en-UK source=Google. "
                "There are: en-AU Google (train, test); en-AU Reddit (valid); en-UK Reddit (train)."
            ),
        ),
        ({"task": []}, "No example of made fits task=."),
    ],
)
def test_where_explains_what_it_cannot_find(
    small: Corpus, selection: dict[str, str], told: str
) -> None:
    with pytest.raises(UserError) as caught:
        small.where(**selection)
    assert str(caught.value).startswith(told)


def test_where_says_when_a_corpus_names_no_varieties(corpus: MakeCorpus) -> None:
    with pytest.raises(
        UserError, match="names no variety for its examples, so variety='en-AU' selects nothing"
    ):
        corpus([Example("a", {})]).where(variety="en-AU")


def test_cells_are_sorted_and_named(small: Corpus) -> None:
    assert [str(cell) for cell in small.cells()] == ["en-AU Google", "en-AU Reddit", "en-UK Reddit"]
    assert [str(cell) for cell in (Cell(None, "X"), Cell("en-IN", None), Cell(None, None))] == [
        "X",
        "en-IN",
        "all",
    ]


def test_test_split_is_one_with_labels(small: Corpus, corpus: MakeCorpus) -> None:
    assert small.splits() == ("train", "valid", "test")
    assert small.test_split() == "valid", "the test text has no label"
    assert (
        corpus([*small, Example("e", {"sarcasm": "literal"}, split="test")]).test_split() == "test"
    )
    with pytest.raises(UserError, match=r"set a part of it aside with Corpus\.hold_out"):
        small.where(split="train").test_split()


def test_counts(small: Corpus) -> None:
    assert small.where(variety="en-AU").counts() == (
        Count(Cell("en-AU", "Google"), "train", "sarcasm", "sarcastic", 1),
        Count(Cell("en-AU", "Reddit"), "valid", "sentiment", "negative", 1),
    )


def test_counts_put_numbers_together() -> None:
    scores = Corpus(
        "scores",
        tuple(Example(str(n), {"warmth": n / 2}) for n in range(3)),
        {"warmth": Task("warmth", ())},
    )
    assert scores.counts() == (Count(Cell(None, None), "train", "warmth", None, 3),)


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
@given(st.text())
@example("ß\u0301")  # folds to an s with a combining accent, which must be composed again
def test_text_key_of_a_key_is_itself(text: str) -> None:
    assert text_key(text_key(text)) == text_key(text)


def test_without_leaks_drops_texts_and_groups(corpus: MakeCorpus) -> None:
    whole = corpus(
        [
            Example("Same", {"sentiment": "positive"}),
            Example("other", {}, group="g"),
            Example("pair", {}, pair="one"),
            Example("kept", {}, group="h"),
            Example("same ", {"sarcasm": "literal"}, split="valid"),
            Example("x", {}, split="test", group="g"),
            Example("pair", {}, pair="two", split="test"),
        ]
    )
    clean, n_dropped = whole.without_leaks()
    assert n_dropped == 2
    assert [example.text for example in clean] == ["pair", "kept", "same ", "x", "pair"]
    assert clean.without_leaks() == (clean, 0)


def test_a_pair_the_other_way_round_is_on_the_same_side(corpus: MakeCorpus) -> None:
    pairs = [("Is it warm?", "Is it hot?"), ("Is it late?", "What time is it?")]
    both = [Example(one, {}, pair=other) for one, other in pairs]
    both += [Example(other.upper(), {}, pair=one) for one, other in pairs]
    for seed in range(5):
        rest, held = corpus(both).hold_out(0.5, seed=seed)
        sides = [
            {frozenset((one.text.casefold(), str(one.pair).casefold())) for one in side}
            for side in (rest, held)
        ]
        assert not sides[0] & sides[1]
    leaking = corpus([both[0], replace(both[2], split="test"), both[1]])
    clean, n_dropped = leaking.without_leaks()
    assert (n_dropped, [example.text for example in clean]) == (1, ["IS IT HOT?", "Is it late?"])


def test_fingerprint_depends_on_content_and_not_on_order(small: Corpus) -> None:
    assert replace(small, examples=small.examples[::-1]).fingerprint() == small.fingerprint()
    twice = replace(small, examples=(*small.examples, small.examples[0]))
    changed = [
        replace(small.examples[0], **change)
        for change in ({"text": "A"}, {"split": "test"}, {"labels": {}}, {"group": "g"})
    ]
    prints = {
        replace(small, examples=(example, *small.examples[1:])).fingerprint() for example in changed
    }
    assert len({small.fingerprint(), twice.fingerprint()} | prints) == 6


EXAMPLES = st.lists(
    st.builds(
        Example,
        text=st.sampled_from(["tea", "Tea ", "scone", "jam", "cream", "milk", "bun", "egg"]),
        labels=st.fixed_dictionaries(
            {}, optional={"sentiment": st.sampled_from(TASKS["sentiment"].labels)}
        ),
        variety=st.sampled_from(["en-AU", "en-UK", None]),
        group=st.sampled_from([None, None, "g", "h"]),
    ),
    min_size=2,
    max_size=30,
)


def divisible(examples: list[Example]) -> bool:
    """Whether they fall into two parts, found by spreading from the first example."""
    reached = {0}
    while True:
        ties = {
            tie
            for place in reached
            for tie in (text_key(examples[place].text), ("group", examples[place].group))
        } - {("group", None)}
        wider = {
            place
            for place, example in enumerate(examples)
            if text_key(example.text) in ties or ("group", example.group) in ties
        }
        if wider == reached:
            return len(reached) < len(examples)
        reached = wider


@pytest.mark.slow
@settings(max_examples=300)
@given(EXAMPLES, st.floats(0.01, 0.99), st.integers(0, 5), st.randoms(use_true_random=False))
def test_hold_out_keeps_its_promises(
    examples: list[Example], share: float, seed: int, shuffler: random.Random
) -> None:
    whole = Corpus("made", tuple(examples), TASKS)
    if not divisible(examples):
        with pytest.raises(UserError, match="cannot be divided"):
            whole.hold_out(share, seed=seed)
        return
    rest, held = whole.hold_out(share, seed=seed)
    assert len(rest) > 0
    assert len(held) > 0
    assert len(rest) + len(held) == len(whole)
    assert rest.fingerprint() != whole.fingerprint()
    assert (
        Corpus("made", rest.examples + held.examples, TASKS).fingerprint() == whole.fingerprint()
    ), "nothing is lost"
    assert not {text_key(example.text) for example in rest} & {
        text_key(example.text) for example in held
    }
    assert not ({example.group for example in rest} & {example.group for example in held}) - {None}
    shuffled = Corpus("made", tuple(shuffler.sample(examples, len(examples))), TASKS)
    assert shuffled.hold_out(share, seed=seed)[1].fingerprint() == held.fingerprint(), (
        "the order does not matter"
    )


def test_hold_out_is_stratified(corpus: MakeCorpus) -> None:
    cells = {
        ("en-AU", "positive"): 200,
        ("en-AU", "negative"): 50,
        ("en-UK", "positive"): 20,
        ("en-UK", "negative"): 100,
    }
    whole = corpus(
        Example(f"{variety} {label} {n}", {"sentiment": label}, variety=variety)
        for (variety, label), size in cells.items()
        for n in range(size)
    )
    drawn = set()
    for seed in range(5):
        _, held = whole.hold_out(0.1, seed=seed)
        found = Counter((example.variety, example.labels["sentiment"]) for example in held)
        assert all(abs(found[cell] - 0.1 * size) <= 1 for cell, size in cells.items())
        drawn.add(held.fingerprint())
    assert len(drawn) == 5, "each seed draws differently"


def test_hold_out_takes_large_groups_as_often_as_small_ones(corpus: MakeCorpus) -> None:
    sizes = {**{f"small {n}": 1 for n in range(300)}, **{f"large {n}": 6 for n in range(50)}}
    whole = corpus(
        Example(f"{group} {n}", {}, group=group)
        for group, size in sizes.items()
        for n in range(size)
    )
    _, held = whole.hold_out(0.2, seed=1)
    found = Counter(str(example.group).split()[0] for example in held)
    assert found["small"] == pytest.approx(60, abs=6)
    assert found["large"] == pytest.approx(60, abs=6)


def test_hold_out_does_not_depend_on_the_order_within_groups(corpus: MakeCorpus) -> None:
    examples = [
        Example(f"{group} {n}", {}, group=str(group)) for group in range(100) for n in range(3)
    ]
    held = [
        corpus(order).hold_out(0.2, seed=4)[1].fingerprint() for order in (examples, examples[::-1])
    ]
    assert held[0] == held[1]


def test_hold_out_spreads_numbers() -> None:
    scores = Corpus(
        "scores",
        tuple(Example(str(n), {"warmth": n / 100}) for n in range(500)),
        {"warmth": Task("warmth", ())},
    )
    _, held = scores.hold_out(0.2, seed=0)
    means = [
        sum(float(example.labels["warmth"]) for example in part) / len(part)
        for part in (held, scores)
    ]
    assert means[0] == pytest.approx(means[1], abs=0.1)


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan")])
def test_hold_out_refuses_an_impossible_share(small: Corpus, share: float) -> None:
    with pytest.raises(UserError, match="give a number between 0 and 1"):
        small.hold_out(share, seed=0)


def test_labels_can_be_renamed_merged_and_taken_away() -> None:
    three = Task("mood", ("bad", "so-so", "good"))
    examples = tuple(Example(f"text {word}", {"mood": word}) for word in three.labels)
    corpus = Corpus("made", examples, {"mood": three})
    merged = corpus.map_labels({"mood": {"so-so": "bad"}})
    assert merged.tasks["mood"].labels == ("bad", "good")
    assert [example.labels for example in merged] == [
        {"mood": "bad"},
        {"mood": "bad"},
        {"mood": "good"},
    ]
    without = corpus.map_labels({"mood": {"so-so": ""}})
    assert [example.labels for example in without] == [{"mood": "bad"}, {}, {"mood": "good"}]
    with pytest.raises(UserError, match="no task 'moood'"):
        corpus.map_labels({"moood": {}})


def test_joining_labels_gives_training_texts_what_other_splits_know() -> None:
    tasks = {name: Task(name, ("no", "yes")) for name in ("glad", "ironic")}
    examples = (
        Example("Both splits", {"glad": "yes"}, split="train"),
        Example("both  SPLITS", {"ironic": "no", "glad": "no"}, split="valid"),
        Example("Train alone", {"glad": "no"}, split="train"),
    )
    joined, n = Corpus("made", examples, tasks).join_labels()
    assert n == 1
    assert [example.labels for example in joined] == [
        {"glad": "yes", "ironic": "no"},
        {"ironic": "no", "glad": "no"},
        {"glad": "no"},
    ]


def test_a_notebook_shows_the_counts_escaped() -> None:
    examples = (
        Example("one", {"mood": "<b>"}, variety="en-AU", source="a & b"),
        Example("two", {"mood": "<b>", "warmth": 0.5}, variety="en-AU", source="a & b"),
    )
    tasks = {"mood": Task("mood", ("<b>",)), "warmth": Task("warmth", ())}
    shown = Corpus("<script>", examples, tasks)._repr_html_()
    assert "<caption>&lt;script&gt;: 2 texts</caption>" in shown
    assert "<script>" not in shown
    assert "<b>" not in shown
    assert shown.count("en-AU a &amp; b") == 2
    assert shown.index("&lt;b&gt;</td><td>2</td>") < shown.index("a number</td><td>1</td>")
