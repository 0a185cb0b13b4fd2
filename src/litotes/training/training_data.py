"""From a recipe's `[data]` table to the texts a run learns from, chooses by and is tested on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from litotes.core.errors import UserError
from litotes.core.registry import pick
from litotes.core.values import Example, Label
from litotes.data.corpus import Corpus, example_key, unknown_labels
from litotes.data.labels import unknown_note
from litotes.data.near_duplicates import remove_texts_of
from litotes.data.rewrites import REWRITES
from litotes.data.rewrites.rewrite import rewrite_share
from litotes.data.sources import has_prefix, load, load_with_test_part
from litotes.training.recipe import Recipe


@dataclass(frozen=True)
class TrainingData:
    """A corpus ready for training: the texts to learn from, those to choose the epoch by, those to
    test on.

    reserved: training texts that nothing of the training has seen, for choices made afterwards.
    notes: sentences the user should read. replaced: training texts that are learned from as a
    rewrite changed them, as they were before; rewritten: the same as they are now.
    """

    whole: Corpus
    train: Corpus
    held_out: Corpus | None
    reserved: Corpus | None
    test: Corpus | None
    notes: tuple[str, ...]
    replaced: tuple[Example, ...] = ()
    rewritten: tuple[Example, ...] = ()

    def seen(self) -> list[Example]:
        """All texts that the model or a choice about it depends on."""
        parts = (self.train, self.held_out, self.reserved)
        texts = [example for part in parts if part is not None for example in part]
        return [*texts, *self.replaced]

    def before_rewrites(self, examples: Sequence[Example]) -> list[Example]:
        """The examples as they were before any rewrite."""
        pairs = zip(self.rewritten, self.replaced, strict=True)
        before = {example_key(after): old for after, old in pairs}
        return [before.get(example_key(example), example) for example in examples]

    def facts(self, *, n_train: int) -> dict[str, Any]:
        """What a model folder says of the data. n_pairs: of the texts learned from, if any."""
        n_pairs = sum(example.pair is not None for example in self.train)
        pairs = {"n_pairs": n_pairs} if n_pairs else {}
        sha256 = self.whole.fingerprint()
        return {"name": self.whole.name, "sha256": sha256, "n_train": n_train, **pairs}

    def fingerprint(self) -> str:
        """A hash of the texts learned from, chosen by and tested on."""
        texts = (self.train, self.held_out, self.reserved, self.test)
        parts = [part.fingerprint() if part is not None else "" for part in texts]
        return sha256("".join(parts).encode()).hexdigest()


def prepare(recipe: Recipe, corpus: Corpus | None = None) -> TrainingData:
    """Loads the corpus, treats leaks and labels as the recipe says, selects, and holds a slice of
    train out.

    corpus: texts that are already in memory, in place of those of `data.source`.
    """
    if corpus is None:
        corpus = load_with_test_part(recipe.data.source)
    data = _split(recipe, corpus)
    for name, task in data.train.tasks.items():
        labels = _labels_in(data.train, name)
        if not task.is_regression and len(labels) < 2:
            only = f"only {next(iter(labels))!r}" if labels else "none"
            raise UserError(
                f"The training texts of {data.train.name} carry {only} of the {name} labels"
                f" {', '.join(task.labels)}: nothing to learn."
            )
    return data


def learnable_tasks(recipe: Recipe) -> list[str]:
    """The tasks of which the training texts, once prepared, show at least two answers."""
    train = _split(recipe, load_with_test_part(recipe.data.source)).train
    return [name for name in train.tasks if len(_labels_in(train, name)) > 1]


def unlabelled_texts(data: TrainingData, among: Corpus | None = None) -> list[Example]:
    """Training texts without their labels, for which a teacher has an answer: those of the whole
    source (or of `among`) that are neither learned from by label nor kept apart.
    """
    known = [*data.train, *data.replaced]
    for part in (data.held_out, data.reserved):
        known += [] if part is None else part.examples
    known += [example for example in data.whole if example.split != "train"]
    keys = {example_key(example) for example in known}
    groups = {example.group for example in known} - {None}
    others = {}
    for example in data.whole if among is None else among:
        key = example_key(example)
        if example.split == "train" and key not in keys and example.group not in groups:
            others[key] = replace(example, labels={})
    return list(others.values())


def _split(recipe: Recipe, corpus: Corpus) -> TrainingData:
    """The corpus, cleaned, in the parts that a run needs."""
    whole, notes = _clean(corpus, recipe)
    where = recipe.data.where
    chosen = whole.where(variety=where.variety, source=where.source, task=recipe.data.tasks)
    if "train" not in chosen.splits():
        raise UserError(
            f"{recipe.data.source} has no training texts for this selection, only"
            f" {', '.join(chosen.splits())}."
        )
    # only texts with a label can teach
    train = chosen.where(split="train", task=list(chosen.tasks))
    held_out, reserved = None, None
    seed = recipe.seed if recipe.training.split_seed is None else recipe.training.split_seed
    if recipe.training.reserved:
        train, reserved = train.hold_out(recipe.training.reserved, seed=seed)
    if recipe.training.held_out:
        train, held_out = train.hold_out(recipe.training.held_out, seed=seed)
    test = _test_part(chosen)
    if test is None:
        notes.append(
            "There is no labelled test split: the model is not tested. Add test=0.2 to the source"
            " of a table, or test the model on other texts with `litotes evaluate`."
        )
    data = TrainingData(whole, train, held_out, reserved, test, tuple(notes))
    return _rewrite(data, recipe) if recipe.data.rewrites else data


def _rewrite(data: TrainingData, recipe: Recipe) -> TrainingData:
    """The data with a share of the training texts changed by the recipe's rewrites."""
    names = recipe.data.rewrites
    rewrites = [pick(REWRITES, name, "rewrite of data.rewrites called") for name in names]
    changed, _ = rewrite_share(
        data.train.examples, rewrites, share=recipe.data.rewrite_share, seed=recipe.seed
    )
    apart = _keys_apart(data)
    examples, replaced, rewritten = [], [], []
    for before, after in zip(data.train, changed, strict=True):
        # a rewrite may end in a text that the model is chosen by or tested on
        if after is before or example_key(after) in apart:
            examples.append(before)
            continue
        examples.append(after)
        replaced.append(before)
        rewritten.append(after)
    note = (
        f"{len(replaced)} of {len(data.train)} training texts are learned from as the rewrites"
        f" {', '.join(names)} change them."
    )
    return replace(
        data,
        train=replace(data.train, examples=tuple(examples)),
        replaced=tuple(replaced),
        rewritten=tuple(rewritten),
        notes=(*data.notes, note),
    )


def _keys_apart(data: TrainingData) -> set[str]:
    """Of the texts that are held out, reserved or of another split."""
    apart = [example for example in data.whole if example.split != "train"]
    for part in (data.held_out, data.reserved):
        apart += [] if part is None else part.examples
    return set(map(example_key, apart))


def _labels_in(corpus: Corpus, task: str) -> set[Label]:
    return {example.labels[task] for example in corpus if task in example.labels}


def _clean(corpus: Corpus, recipe: Recipe) -> tuple[Corpus, list[str]]:
    """The corpus with labels, leaks and texts to avoid treated as the recipe says, and notes."""
    _check_label_words(corpus, recipe)
    whole, mapped = _map_labels(corpus, recipe)
    notes = [*corpus.notes, *mapped]
    for treat in (_without_leaks, _without_avoided):
        whole, more = treat(whole, recipe)
        notes += more
    if has_prefix(recipe.data.source):
        notes.append(
            "Trained on texts that begin with their source and variety (prefix=variety): it must be"
            " asked with such texts."
        )
    return whole, notes


def _check_label_words(corpus: Corpus, recipe: Recipe) -> None:
    """Words that are no known label, beside others that are, must be mapped before training."""
    for name, task in corpus.tasks.items():
        if set(unknown_labels(task)) - recipe.data.labels.get(name, {}).keys():
            raise UserError(unknown_note(task, corpus.name))


def _map_labels(corpus: Corpus, recipe: Recipe) -> tuple[Corpus, list[str]]:
    """The corpus with its labels replaced as the recipe says, and a sentence for every task where
    something was.
    """
    notes = []
    for name, words in recipe.data.labels.items():
        labels = corpus.tasks[name].labels if name in corpus.tasks else ()
        arrows = ", ".join(f"{word} → {words.get(word, word) or '(no label)'}" for word in labels)
        notes.append(f"Labels of {name} in {corpus.name}: {arrows}.")
    return corpus.map_labels(recipe.data.labels), notes


def _without_leaks(corpus: Corpus, recipe: Recipe) -> tuple[Corpus, list[str]]:
    """The corpus with its leaking texts treated as the recipe says, and a sentence about them."""
    clean, n_leaks = corpus.without_leaks()
    if not n_leaks:
        return corpus, []
    if recipe.data.leaks == "drop":
        return clean, [
            f"{n_leaks} training texts also sit in another split (under this or another task) and"
            " were dropped. Keep them with --set data.leaks=keep."
        ]
    if recipe.data.leaks == "keep":
        note = (
            f"WARNING: {n_leaks} training texts also sit in another split and were kept, as told:"
            " scores on it will be too high."
        )
        return corpus, [note]
    joined, n_joined = corpus.join_labels()
    return joined, [
        f"WARNING: {n_leaks} training texts also sit in another split and were kept, as told;"
        f" {n_joined} of them were given labels from there: scores on it are worthless but to show"
        " what such a leak does."
    ]


def _without_avoided(corpus: Corpus, recipe: Recipe) -> tuple[Corpus, list[str]]:
    """The corpus less the training texts that are in a test to come, and a sentence about them."""
    if not recipe.data.avoid:
        return corpus, []
    avoided = [_load_avoided(source) for source in recipe.data.avoid]
    kept, n_avoided = remove_texts_of(corpus, avoided)
    names = ", ".join(source.partition(":")[0] for source in recipe.data.avoid)
    return kept, [
        f"{n_avoided} training texts are, nearly or exactly, among the test texts of {names} and"
        " were left out."
    ]


def _load_avoided(source: str) -> Corpus:
    try:
        return load(source)
    except UserError as error:
        # a recipe may come from a machine that has them elsewhere
        raise UserError(
            f"The texts of {source} are to be left out, and cannot be read: {error} Say where they"
            " are in data.avoid, or take them out of it (`litotes prune`: --exclude SOURCES, or"
            " --exclude none)."
        ) from error


def _test_part(chosen: Corpus) -> Corpus | None:
    """The labelled part of the test split; None where there is none."""
    if not any(example.labels for example in chosen if example.split != "train"):
        return None
    return chosen.where(split=chosen.test_split(), task=list(chosen.tasks))
