"""`data.rewrites`: training texts with features of varieties in them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from litotes.core.errors import UserError
from litotes.core.values import Example, Task
from litotes.data.corpus import Corpus
from litotes.data.rewrites import REWRITES
from litotes.data.rewrites.rewrite import rewrite_share
from litotes.pruning.phases import fold_recipe
from litotes.training.recipe import Recipe
from litotes.training.training_data import prepare, unlabelled_texts


def test_rewrites_are_off_unless_asked_for() -> None:
    plain = prepare(Recipe())
    assert plain.replaced == ()
    assert Recipe().changed(data__rewrite_share=0.3).key() == Recipe().key()


def test_a_share_of_the_training_texts_alone_is_rewritten() -> None:
    recipe = Recipe().changed(data__rewrites=["upper-case"], data__rewrite_share=0.5)
    plain, rewritten = prepare(Recipe()), prepare(recipe)
    assert recipe.key() != Recipe().key()
    assert len(rewritten.train) == len(plain.train)
    pairs = list(zip(plain.train, rewritten.train, strict=True))
    changed = [(old, new) for old, new in pairs if old != new]
    assert 0.35 < len(changed) / len(pairs) < 0.65
    for old, new in changed:
        assert new.text == REWRITES["upper-case"](old.text)
        assert new.labels == old.labels
    assert rewritten.held_out == plain.held_out
    assert rewritten.test == plain.test
    assert rewritten.replaced == tuple(old for old, _ in changed)
    # what the model must not be tested on holds the texts as they were, too
    assert set(map(id, rewritten.replaced)) <= set(map(id, rewritten.seen()))
    assert any("upper-case" in note for note in rewritten.notes)


def test_an_unknown_rewrite_is_named() -> None:
    with pytest.raises(UserError, match="Did you mean 'would-will'"):
        prepare(Recipe().changed(data__rewrites=["would-wil"]))


def test_a_text_that_no_rewrite_applies_to_stays() -> None:
    examples = [Example("12", {}), Example("They will come.", {})]
    rewrites = [REWRITES["knifes"], REWRITES["would-will"]]
    found, replaced = rewrite_share(examples, rewrites, share=1.0, seed=0)
    assert [one.text for one in found] == ["12", "They would come."]
    assert replaced == (examples[1],)


def made(*texts: str) -> Corpus:
    labels = ("negative", "positive")
    examples = [
        Example(text, {"sentiment": labels[place % 2]}, split=split)
        for place, (text, split) in enumerate(one.split("|") for one in texts)
    ]
    return Corpus("made", tuple(examples), {"sentiment": Task("sentiment", labels)})


def test_what_was_rewritten_does_not_come_back_as_a_text_without_a_label() -> None:
    """Or teachers are asked about texts that they were trained on."""
    texts = [f"They will come in {number} days.|train" for number in range(12)]
    recipe = Recipe().changed(data__rewrites=["would-will"], data__rewrite_share=1.0)
    data = prepare(recipe, made(*texts))
    assert len(data.replaced) == len(data.train)
    assert unlabelled_texts(data) == []


def test_no_text_is_rewritten_into_one_that_is_kept_apart() -> None:
    texts = [f"They will come in {number} days.|train" for number in range(12)]
    recipe = Recipe().changed(
        data__rewrites=["would-will"], data__rewrite_share=1.0, training__held_out=0.0
    )
    data = prepare(recipe, made(*texts, "They would come in 3 days.|test"))
    assert data.train.examples[3].text == "They will come in 3 days."
    assert [one.text for one in data.replaced] == [
        one.partition("|")[0] for place, one in enumerate(texts) if place != 3
    ]


def test_the_models_of_a_fold_learn_from_texts_that_were_rewritten_once() -> None:
    recipe = Recipe().changed(data__rewrites=["emoji"], data__rewrite_share=1.0)
    texts = made(*(f"They will come in {number} days.|train" for number in range(12)))
    train = prepare(recipe, texts).train
    again = prepare(fold_recipe(recipe, 0), replace(train, examples=train.examples[::2]))
    assert again.replaced == ()
    assert all(example in train.examples for example in again.train)
