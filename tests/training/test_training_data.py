"""From a corpus to the texts a run learns from, chooses by and is tested on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from litotes.core.errors import UserError
from litotes.core.values import Example, Task
from litotes.data.corpus import SARCASM, Corpus, example_key
from litotes.data.rewrites import REWRITES
from litotes.encoder import pretrained
from litotes.encoder.packing import make_text_set
from litotes.pruning.phases import fold_recipe
from litotes.training.classification import training_notes
from litotes.training.recipe import Recipe
from litotes.training.training_data import TrainingData, learnable_tasks, prepare, unlabelled_texts


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
    assert rewritten.rewritten == tuple(changed)
    # what the model must not be tested on holds the texts as they were, too
    assert {id(before) for before, _ in rewritten.rewritten} <= set(map(id, rewritten.seen()))
    assert any("upper-case" in note for note in rewritten.notes)


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
    assert len(data.rewritten) == len(data.train)
    assert unlabelled_texts(data) == []


def test_no_text_is_rewritten_into_one_that_is_kept_apart() -> None:
    texts = [f"They will come in {number} days.|train" for number in range(12)]
    recipe = Recipe().changed(
        data__rewrites=["would-will"], data__rewrite_share=1.0, training__held_out=0.0
    )
    data = prepare(recipe, made(*texts, "They would come in 3 days.|test"))
    assert data.train.examples[3].text == "They will come in 3 days."
    assert [before.text for before, _ in data.rewritten] == [
        one.partition("|")[0] for place, one in enumerate(texts) if place != 3
    ]


def test_the_models_of_a_fold_learn_from_texts_that_were_rewritten_once() -> None:
    recipe = Recipe().changed(data__rewrites=["emoji"], data__rewrite_share=1.0)
    texts = made(*(f"They will come in {number} days.|train" for number in range(12)))
    train = prepare(recipe, texts).train
    again = prepare(fold_recipe(recipe, 0), replace(train, examples=train.examples[::2]))
    assert again.rewritten == ()
    assert all(example in train.examples for example in again.train)


def table_of(file: Path, rows: list[str]) -> Recipe:
    """Of a table with two tasks and a split."""
    file.write_text("\n".join(["text,split,sentiment,sarcasm", *rows]) + "\n")
    columns = "split=split&label.sentiment=sentiment&label.sarcasm=sarcasm"
    return Recipe().changed(data__source=f"table:{file}?{columns}", training__held_out=0.0)


def test_leaking_texts_are_treated_as_told(tmp_path: Path) -> None:
    """Whatever the task under which they are in the other split."""
    rows = [f"training text number {n},train,{n % 2},{n % 2 if n > 2 else ''}" for n in range(20)]
    rows += [f"training text number {n},test,,{n % 2}" for n in range(3)]
    rows += [f"test text number {n},test,{n % 2},{n % 2}" for n in range(10)]
    recipe = table_of(tmp_path / "leaky.csv", rows)
    dropped = prepare(recipe.changed(data__tasks=["sentiment"]))
    assert len(dropped.train) == 17
    assert "3 training texts also sit in another split" in dropped.notes[0]
    kept, joined = (prepare(recipe.changed(data__leaks=how)) for how in ("keep", "join"))
    assert len(kept.train) == len(joined.train) == 20
    assert kept.notes[0].startswith("WARNING: 3 training texts")
    assert "3 of them were given labels from there" in joined.notes[0]
    assert joined.train.examples[1].labels["sarcasm"] == "sarcastic"


def test_one_class_is_nothing_to_learn_from(tmp_path: Path) -> None:
    rows = [f"text {n},train,same,{n % 2}" for n in range(9)]
    flat = table_of(tmp_path / "flat.csv", rows)
    with pytest.raises(UserError, match=r"only 'same'.*nothing to learn"):
        prepare(flat)
    assert learnable_tasks(flat) == ["sarcasm"]
    with pytest.raises(UserError, match="Did you mean 'would-will'"):
        prepare(flat.changed(data__tasks=["sarcasm"], data__rewrites=["would-wil"]))
    with pytest.raises(UserError, match=r"to be left out.*nowhere"):
        prepare(flat.changed(data__avoid=["besstie:/nowhere"]))


def test_texts_to_avoid_are_left_out_in_whatever_spelling(tmp_path: Path) -> None:
    rows = [f"the tea number {n} is {('good', 'bad')[n % 2]},train,{n % 2},1" for n in range(20)]
    tests = [f"The TEA number {n} is {('good', 'bad')[n % 2]}!,test,{n % 2},1" for n in range(3)]
    recipe = table_of(tmp_path / "mine.csv", rows).changed(data__tasks=["sentiment"])
    recipe = recipe.changed(data__source=recipe.data.source.replace("split=split", "test=0"))
    avoid = table_of(tmp_path / "theirs.csv", [*tests, *rows[10:]]).data.source
    found = prepare(recipe.changed(data__avoid=[avoid]))
    assert len(found.train) == 17
    assert any(note.startswith("3 training texts are, nearly") for note in found.notes)
    assert any("There is no labelled test split" in note for note in found.notes)


def kept_apart(**changes: int | None) -> list[list[str]]:
    """The texts held out and reserved."""
    data = prepare(Recipe().changed(training__reserved=0.2, **changes))
    return [sorted(map(example_key, part or ())) for part in (data.held_out, data.reserved)]


def test_seeds_keep_other_texts_apart_unless_told() -> None:
    first = kept_apart(seed=0)
    assert all(first)
    assert kept_apart(seed=1) != first
    assert kept_apart(seed=1, training__split_seed=0) == first


def test_cut_and_unreadable_training_texts_are_counted(tiny: pretrained.Pretrained) -> None:
    examples = tuple(Example(text, {"sarcasm": "literal"}) for text in ("x " * 300, "😀", "tea"))
    corpus = Corpus("made", examples, {"sarcasm": SARCASM})
    data = TrainingData(corpus, corpus, corpus, None, None, ())
    texts = make_text_set(examples, [SARCASM], tiny.tokenizer)
    cut, unreadable = training_notes(Recipe(), data, texts, 0.5)
    assert cut.startswith("1 of 3 training texts are longer than the encoder reads")
    assert unreadable.startswith("1 of 3 training texts are unreadable")
