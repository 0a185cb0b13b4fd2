"""`data.rewrites`: training texts with features of varieties in them."""

from __future__ import annotations

import pytest

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.rewrites import REWRITES
from litotes.data.rewrites.augmentation import rewrite_share
from litotes.training.recipe import Recipe
from litotes.training.training_data import prepare


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
