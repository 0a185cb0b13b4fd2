"""From a recipe's `[data]` table to the texts a run learns from, chooses by and is tested on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    notes: sentences the user should read. rewritten: training texts that are learned from as a
    rewrite changed them, before and after.
    """

    whole: Corpus
    train: Corpus
    held_out: Corpus | None
    reserved: Corpus | None
    test: Corpus | None
    notes: tuple[str, ...]
    rewritten: tuple[tuple[Example, Example], ...] = ()

    def kept_apart(self) -> list[Example]:
        """The training texts that are held out or reserved."""
        return [one for part in (self.held_out, self.reserved) for one in part or ()]

    def other_splits(self) -> list[Example]:
        """The texts that are not for training."""
        return [example for example in self.whole if example.split != "train"]

    def seen(self) -> list[Example]:
        """All texts that the model or a choice about it depends on."""
        return [*self.train, *self.kept_apart(), *(before for before, _ in self.rewritten)]

    def before_rewrites(self, examples: Sequence[Example]) -> list[Example]:
        """The examples as they were before any rewrite."""
        first = {example_key(after): before for before, after in self.rewritten}
        return [first.get(example_key(example), example) for example in examples]

    def facts(self, *, n_train: int) -> dict[str, Any]:
        """Collects what a model folder says of the data. n_pairs: of texts learned from, if any."""
        facts = {"name": self.whole.name, "sha256": self.whole.fingerprint(), "n_train": n_train}
        n_pairs = sum(example.pair is not None for example in self.train)
        return facts | ({"n_pairs": n_pairs} if n_pairs else {})

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
    read = load_with_test_part(recipe.data.source) if corpus is None else corpus
    data = _split(recipe, read)
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
    known = [*data.seen(), *data.other_splits()]
    keys, groups = set(map(example_key, known)), {example.group for example in known} - {None}
    others = {
        example_key(example): replace(example, labels={})
        for example in (data.whole if among is None else among)
        if example.split == "train" and example.group not in groups
    }
    return [example for key, example in others.items() if key not in keys]


def _split(recipe: Recipe, corpus: Corpus) -> TrainingData:
    """The corpus, cleaned, in the parts that a run needs."""
    whole, notes = _clean(corpus, recipe)
    where, settings = recipe.data.where, recipe.training
    chosen = whole.where(variety=where.variety, source=where.source, task=recipe.data.tasks)
    if "train" not in chosen.splits():
        found = ", ".join(chosen.splits())
        raise UserError(f"{recipe.data.source} has no training texts for this selection: {found}.")
    # only texts with a label can teach
    train, test = chosen.where(split="train", task=list(chosen.tasks)), None
    seed = recipe.seed if settings.split_seed is None else settings.split_seed
    apart: list[Corpus | None] = []
    for share in (settings.reserved, settings.held_out):
        train, part = train.hold_out(share, seed=seed) if share else (train, None)
        apart.append(part)
    if any(example.labels for example in chosen if example.split != "train"):
        test = chosen.where(split=chosen.test_split(), task=list(chosen.tasks))
    else:
        notes.append(
            "There is no labelled test split: the model is not tested. Add test=0.2 to the source"
            " of a table, or test the model on other texts with `litotes evaluate`."
        )
    reserved, held_out = apart
    data = TrainingData(whole, train, held_out, reserved, test, tuple(notes))
    return _rewrite(data, recipe) if recipe.data.rewrites else data


def _rewrite(data: TrainingData, recipe: Recipe) -> TrainingData:
    """The data with a share of the training texts changed by the recipe's rewrites."""
    names, train = recipe.data.rewrites, data.train.examples
    rewrites = [pick(REWRITES, name, "rewrite of data.rewrites called") for name in names]
    changed, _ = rewrite_share(train, rewrites, share=recipe.data.rewrite_share, seed=recipe.seed)
    # a rewrite may end in a text that the model is chosen by or tested on
    apart = [*data.kept_apart(), *data.other_splits()]
    keys, examples, rewritten = set(map(example_key, apart)), [], []
    for before, after in zip(train, changed, strict=True):
        if after is not before and example_key(after) not in keys:
            rewritten.append((before, after))
            examples.append(after)
        else:
            examples.append(before)
    note = (
        f"{len(rewritten)} of {len(train)} training texts are learned from as the rewrites"
        f" {', '.join(names)} change them."
    )
    return replace(
        data,
        train=replace(data.train, examples=tuple(examples)),
        rewritten=tuple(rewritten),
        notes=(*data.notes, note),
    )


def _labels_in(corpus: Corpus, task: str) -> set[Label]:
    return {example.labels[task] for example in corpus if task in example.labels}


def _clean(corpus: Corpus, recipe: Recipe) -> tuple[Corpus, list[str]]:
    """The corpus with labels, leaks and texts to avoid treated as the recipe says, and notes."""
    settings, notes = recipe.data, list(corpus.notes)
    whole, mapped = _with_labels(corpus, settings.labels)
    whole, leaked = _without_leaks(whole, settings.leaks)
    notes += mapped + leaked
    if settings.avoid:
        whole, n_avoided = remove_texts_of(whole, list(map(_load_avoided, settings.avoid)))
        names = ", ".join(source.partition(":")[0] for source in settings.avoid)
        notes.append(
            f"{n_avoided} training texts are, nearly or exactly, among the test texts of {names}"
            " and were left out."
        )
    if has_prefix(settings.source):
        notes.append(
            "Trained on texts that begin with their source and variety (prefix=variety): it must be"
            " asked with such texts."
        )
    return whole, notes


def _with_labels(
    corpus: Corpus, labels: Mapping[str, Mapping[str, str]]
) -> tuple[Corpus, list[str]]:
    """The corpus with label words replaced, and a sentence for each task about them."""
    for name, task in corpus.tasks.items():
        # words that are no known label, next to others that are, must be mapped before training
        if set(unknown_labels(task)) - labels.get(name, {}).keys():
            raise UserError(unknown_note(task, corpus.name))
    whole, notes = corpus.map_labels(labels), []
    for name, words in labels.items():
        now = [
            f"{word} → {words.get(word, word) or '(no label)'}"
            for word in corpus.tasks[name].labels
        ]
        notes.append(f"Labels of {name} in {corpus.name}: {', '.join(now)}.")
    return whole, notes


def _without_leaks(corpus: Corpus, treatment: str) -> tuple[Corpus, list[str]]:
    """The corpus with its leaking texts dropped, kept or joined, and a sentence about them."""
    clean, n_leaks = corpus.without_leaks()
    if not n_leaks:
        return corpus, []
    if treatment == "drop":
        return clean, [
            f"{n_leaks} training texts also sit in another split (under this or another task) and"
            " were dropped. Keep them with --set data.leaks=keep."
        ]
    note = f"WARNING: {n_leaks} training texts also sit in another split and were kept, as told"
    if treatment == "keep":
        return corpus, [f"{note}: scores on it will be too high."]
    joined, n_joined = corpus.join_labels()
    return joined, [
        f"{note}; {n_joined} of them were given labels from there: scores on it are worthless but"
        " to show what such a leak does."
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
