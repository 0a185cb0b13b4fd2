"""Contracts of every rewrite: its examples, where it does not apply, what it never touches."""

from __future__ import annotations

import csv
import gzip
import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from time import process_time

import pytest

from litotes.data.rewrites import REWRITES, TOPICS
from litotes.data.rewrites.control import control_of, word_distance
from litotes.data.rewrites.rewrite import COMMON, FEATURES, VARIETIES
from litotes.data.rewrites.signs import SIGNS, signs_of
from litotes.data.rewrites.vocabulary import VERBS
from litotes.data.sources import load

EWAVE = Path(__file__).parents[3] / "shared" / "data" / "ewave" / "ewave.csv.gz"

NAMES = pytest.mark.parametrize("name", REWRITES)

TEXT = (
    "My wife and I have been coming here for years. The staff are really friendly and the food was"
    " cold, but I will come back to this place. Those people didn't get anything, isn't that sad?"
)
LEFT_ALONE = tomllib.loads(Path(__file__).with_name("left_alone.toml").read_text("utf-8"))
NOTHING = ("", " ", "?!", "12 34", "日本語", "…")


@NAMES
def test_a_rule_does_what_its_examples_say_and_no_more(name: str) -> None:
    """Addresses made of an example's own words are never touched."""
    rewrite = REWRITES[name]
    assert len(rewrite.examples) >= 3
    for before, after in rewrite.examples:
        assert rewrite(before) == after != before
        word = before.split()[0].strip(".,!?")
        kept = (f"@will_{word}", f"https://a.example/the-{word}/are/will", f"#isnt{word}")
        changed = rewrite(" ".join([before, *kept]))
        assert all(address in changed for address in kept)
    texts = [after for _, after in rewrite.examples] + [rewrite(TEXT)]
    again = [rewrite(text) == text for text in texts]
    assert all(again) if rewrite.settles else not all(again)
    for text in NOTHING:
        assert rewrite(text) in (text, f"{text.rstrip()} {rewrite(text)[-1:]}")
    assert rewrite(TEXT, seed=3) == rewrite(TEXT, seed=3)
    assert rewrite.about
    assert rewrite.skips
    assert len(rewrite.about) <= 80
    if rewrite.feature is not None:
        assert rewrite.title == FEATURES[rewrite.feature].name
        assert rewrite.common_in(), "eWAVE calls it common in none of our varieties"


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_only_looks_like_the_feature_is_left_alone(name: str) -> None:
    assert REWRITES[name](LEFT_ALONE[name]) == LEFT_ALONE[name]


@NAMES
def test_long_texts_take_bounded_time(name: str) -> None:
    rewrite = REWRITES[name]
    started = process_time()
    for text in ("a " * 900, "x" * 2000, "I have " * 250, ", who " * 250, "isn't " * 250):
        rewrite(text)
    assert process_time() - started < 1


def test_seeds_and_private_characters() -> None:
    assert len({REWRITES["typo-swap"](TEXT, seed=seed) for seed in range(8)}) > 1
    assert REWRITES["upper-case"]("a \ue000 b \ue123 c") == "A \ue000 B \ue123 C"
    assert REWRITES["typo-key"].values() == {}


def test_the_atlas_says_what_ewave_says() -> None:
    assert sum(map(len, TOPICS.values())) == len(REWRITES), "no name is taken twice"
    numbers = {rewrite.feature for rewrite in REWRITES.values()} - {None}
    assert numbers == set(FEATURES)
    assert len(numbers) > 40
    values = REWRITES["isnt-it"].values()
    assert set(values) == set(VARIETIES)
    assert values["Indian English"] in COMMON
    assert "en-IN" in REWRITES["isnt-it"].common_in()
    if not EWAVE.is_file():
        pytest.skip("eWAVE is not here")
    found: dict[int, dict[str, str]] = {}
    names = {}
    with gzip.open(EWAVE, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            number = int(row["parameter_pk"])
            names[number] = " ".join(row["parameter_name"].split())
            found.setdefault(number, {})[row["language_name"]] = row["attestation"]
    for number, feature in FEATURES.items():
        assert feature.name == names[number]
        assert feature.values == "".join(found[number][variety] for variety in VARIETIES)


def test_forms_of_verbs() -> None:
    forms = {verb.base: verb for verb in VERBS}
    assert forms["go"] == ("go", "goes", "went", "gone", "going")
    assert forms["try"] == ("try", "tries", "tried", "tried", "trying")
    assert forms["stop"] == ("stop", "stops", "stopped", "stopped", "stopping")
    assert (forms["make"].ing, forms["see"].ing, forms["be"].third) == ("making", "seeing", "is")


@NAMES
def test_a_control_changes_as_many_words_elsewhere(name: str) -> None:
    """Counted by another algorithm: words that stand in the one text and not in the other."""
    rewrite = REWRITES[name]
    filler = "Quite a few other words stand around it, long ones and short ones, every one plain. "
    for before, _ in rewrite.examples:
        text = f"{filler}{before}"
        rewritten = rewrite(text)
        control = control_of(text, rewritten)
        if control is None:  # nothing is changed but case and signs, or nearly all
            continue
        assert control == control_of(text, rewritten) != rewritten
        assert control_of(text, control) is not None
        words, others = text.split(), control.split()
        n_changed = sum(one != other for one, other in zip(words, others, strict=True))
        assert word_distance(text, control) == word_distance(text, rewritten) == n_changed
        removed = Counter(plain(text)) - Counter(plain(rewritten))
        added = Counter(plain(rewritten)) - Counter(plain(text))
        assert n_changed > 0
        assert max(removed.total(), added.total()) <= 2 * n_changed


def plain(text: str) -> list[str]:
    return re.findall(r"[@#]?\w+(?:['’]\w+)*", text.casefold())


def test_a_control_misspells_function_words_for_function_words() -> None:
    control = control_of("Staff will help us with nice food", "Staff would help us with nice food")
    assert control is not None
    words = control.split()
    assert [words[n] for n in (0, 1, 2, 5, 6)] == ["Staff", "will", "help", "nice", "food"]
    assert control_of("Will help", "Would aid") is None


@pytest.mark.parametrize("name", SIGNS)
def test_a_sign_tells_what_its_rewrites_write(name: str) -> None:
    """In their examples, and in texts of the sampler."""
    sign = SIGNS[name]
    assert sign.rewrites
    seen: list[bool] = []
    for rewrite in map(REWRITES.__getitem__, sign.rewrites):
        for before, after in rewrite.examples:
            assert not sign.matches(before), before
            seen.append(sign.matches(after))
    assert sum(seen) >= 2 * len(seen) / 3
    pairs = [(text, REWRITES[one](text)) for text in sampled() for one in sign.rewrites]
    seen = [sign.matches(after) for before, after in pairs if after != before]
    assert sum(seen) >= 2 * len(seen) / 3


@cache
def sampled() -> tuple[str, ...]:
    return tuple(example.text for example in load("sampler").examples[:150])


def test_signs_of_a_text() -> None:
    assert signs_of("It ain't good, my favourite colour is sooo bad 🍴") == [
        "ain't",
        "British spelling",
        "sooo",
        "emoji",
    ]
    assert signs_of("The food was good.") == []
