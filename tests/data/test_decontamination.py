"""Texts of a later test are kept out of training, however they are spelt."""

from dataclasses import replace

import pytest

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data import near_duplicates
from litotes.data.corpus import Corpus
from litotes.data.near_duplicates import remove_texts_of

LONG = (
    "The gorgeous continuation of a trilogy so huge that no column of words describes the vision of"
    " its maker at all"
)


def corpus(*texts: tuple[str, str]) -> Corpus:
    return Corpus("made", tuple(Example(text, {}, split=split) for text, split in texts), {})


def test_other_spellings_and_near_copies_are_left_out() -> None:
    trained = corpus(
        ("It\u2019s a ``dull'' film, is n't it?", "train"),
        (f"{LONG}.", "train"),
        ("A film about kettles and what they sing", "train"),
        ("It's a dull film, isn't it", "test"),
    )
    tested = corpus(
        ("it 's a dull film , isn't it ?", "valid"),
        (LONG.replace("at all", ""), "test"),
        ("kettles sing", "train"),
    )
    kept, n_avoided = remove_texts_of(trained, [tested])
    assert n_avoided == 2
    assert [example.text for example in kept] == [
        "A film about kettles and what they sing",
        "It's a dull film, isn't it",
    ]


def test_training_texts_of_the_other_corpus_may_stay() -> None:
    same = corpus(("A kettle that sings", "train"))
    assert remove_texts_of(same, [same]) == (same, 0)


def test_signs_without_a_letter_are_not_all_the_same() -> None:
    assert remove_texts_of(corpus(("!!!", "train")), [corpus(("???", "test"))])[1] == 0


def test_training_texts_that_resemble_each_other_do_not_hide_a_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(near_duplicates, "MAX_CANDIDATES", 20)
    letters = [(f"{LONG} {number}", "train") for number in range(10)]  # 45 pairs
    copied = "A kettle that sings all day in the kitchen of a house by the sea is a friend"
    assert (
        remove_texts_of(
            corpus(*letters, (copied, "train")), [corpus((f"{copied} indeed", "test"))]
        )[1]
        == 1
    )
    with pytest.raises(UserError, match="too many"):
        remove_texts_of(
            corpus(*letters),
            [corpus(*((f"{LONG} {word}", "test") for word in ("one", "two", "three")))],
        )


@pytest.mark.parametrize(
    ("trained", "tested"),
    [("\U0001f602\U0001f602", "\U0001f602\U0001f602"), ("?!", "?! "), ("caf\u00e9", "cafe\u0301")],
)
def test_short_texts_are_recognised_without_words_and_in_every_normal_form(
    trained: str, tested: str
) -> None:
    assert remove_texts_of(corpus((trained, "train")), [corpus((tested, "test"))])[1] == 1


def test_a_pair_the_other_way_round_is_the_same_pair() -> None:
    one, other = Example("Is it warm?", {}, pair="No."), Example("No.", {}, pair="Is it warm?")
    tests = [Corpus("made", (replace(other, split="test"),), {})]
    assert remove_texts_of(Corpus("made", (one,), {}), tests)[1] == 1
