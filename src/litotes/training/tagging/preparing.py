"""From texts of words to those a run learns from, chooses by and is tested on."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from litotes.core.errors import UserError
from litotes.data.words.corpus import WordCorpus, WordExample, labels_of
from litotes.training.tagging.recipe import WordRecipe


@dataclass(frozen=True)
class WordData:
    """labels: all that the model may answer. notes: sentences the user should read."""

    train: WordCorpus
    held_out: WordCorpus | None
    test: WordCorpus | None
    labels: tuple[str, ...]
    notes: tuple[str, ...]

    def seen(self) -> list[WordExample]:
        """All texts that the model or a choice about it depends on."""
        return [*self.train, *(self.held_out or ())]

    def fingerprint(self) -> str:
        parts = (self.train, self.held_out, self.test)
        hashes = ["" if part is None else part.fingerprint() for part in parts]
        return sha256("".join(hashes).encode()).hexdigest()


def prepare_words(recipe: WordRecipe, corpus: WordCorpus) -> WordData:
    """Treats leaks as the recipe says, and holds a slice of train out."""
    notes = list(corpus.notes)
    whole = corpus.for_kind(recipe.kind)
    clean, n_leaks = whole.without_leaks()
    if n_leaks and recipe.data.leaks == "drop":
        whole = clean
        notes.append(
            f"{n_leaks} training texts also sit in another split and were dropped. Keep them with"
            " --set data.leaks=keep."
        )
    elif n_leaks:
        notes.append(
            f"WARNING: {n_leaks} training texts also sit in another split and were kept, as told:"
            " scores on it will be too high."
        )
    train = whole.only("train")
    if not train.examples:
        raise UserError(f"{recipe.data.source} has no training texts.")
    labels = corpus.labels if recipe.kind == "tagging" else ()
    if recipe.kind == "tagging" and len(labels_of(train.examples)) < 2:
        raise UserError(f"The training texts of {corpus.name} carry one label: nothing to learn.")
    held_out = None
    if recipe.training.held_out:
        train, held_out = train.hold_out(recipe.training.held_out, seed=recipe.seed)
    test = whole.only("test")
    if not test.examples:
        test = whole.only("valid")
    if not test.examples:
        notes.append(
            "There is no test split: the model is not tested. Add test=0.2 to the source, or test"
            " the model on other texts with `litotes evaluate`."
        )
    return WordData(train, held_out, test if test.examples else None, labels, tuple(notes))
