"""`training.split_seed`: runs of several seeds that keep the same texts apart."""

from __future__ import annotations

from litotes.data.corpus import example_key
from litotes.training.recipe import Recipe
from litotes.training.training_data import prepare


def _apart(**changes: int | None) -> tuple[frozenset[str], frozenset[str]]:
    recipe = Recipe().changed(data__source="sampler", training__reserved=0.2, **changes)
    data = prepare(recipe)
    assert data.held_out is not None
    assert data.reserved is not None
    held_out = frozenset(map(example_key, data.held_out))
    return held_out, frozenset(map(example_key, data.reserved))


def test_seeds_keep_other_texts_apart_unless_told() -> None:
    first = _apart(seed=0)
    assert _apart(seed=1) != first
    assert _apart(seed=1, training__split_seed=0) == first


def test_a_run_without_it_is_named_as_before() -> None:
    told = Recipe().changed(training__split_seed=0)
    assert told.key() != Recipe().key()
    assert Recipe().changed(training__split_seed=None).key() == Recipe().key()
