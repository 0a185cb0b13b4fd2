"""Which texts of a corpus a model may be scored on: the test split, or texts it has not seen, with
labels that it knows.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from litotes.core.errors import UserError
from litotes.core.json_text import parse_as
from litotes.data.corpus import Corpus
from litotes.model.folder import ModelFolder
from litotes.model.trained_texts import text_hash


def select_fair_texts(corpus: Corpus, trained_on: Set[str] | None) -> Corpus:
    """The test split; of a corpus without one, all texts that the model was not trained on.

    trained_on: the hashes of the texts it was; None: its folder does not state them. What the user
    should know is in the notes of the corpus.
    """
    if corpus.splits() != ("train",):
        return warn_of_trained_texts(corpus.where(split=corpus.test_split()), trained_on)
    if trained_on is None:
        return corpus.with_notes(
            f"{corpus.name} has no split: all of its {len(corpus)} texts are used. Whether the"
            " model was trained on some of them is not known, since its folder does not state its"
            " texts."
        )
    fresh = tuple(example for example in corpus if text_hash(example) not in trained_on)
    n_seen = len(corpus) - len(fresh)
    if not fresh:
        raise UserError(
            f"The model was trained on all {n_seen} texts of {corpus.name}: scores on them would"
            " say nothing. Give texts that are new to it."
        )
    if not n_seen:
        note = f"{corpus.name} has no split: all of its {len(corpus)} texts are used."
    else:
        note = (
            f"{corpus.name} has no split: the {len(fresh)} texts that the model was not trained on"
            f" are used, {n_seen} others are left out."
        )
    return replace(corpus, examples=fresh).with_notes(note)


def warn_of_trained_texts(corpus: Corpus, trained_on: Set[str] | None) -> Corpus:
    """The same corpus, with a note where the model was trained on some of its texts."""
    n_seen = sum(text_hash(example) in trained_on for example in corpus) if trained_on else 0
    if not n_seen:
        return corpus
    return corpus.with_notes(
        f"WARNING: the model was trained on {n_seen} of these {len(corpus)} texts: scores on them"
        " are too high."
    )


def map_labels_as_trained(corpus: Corpus, folder: ModelFolder) -> Corpus:
    """The corpus with labels that the model does not know mapped as its recipe maps them."""
    for part in folder.models:
        words = {}
        for task, mapping in _stated_mapping(part).items():
            if task in corpus.tasks and task in part.tasks:
                strange = set(corpus.tasks[task].labels) - set(part.tasks[task].labels)
                words[task] = {word: label for word, label in mapping.items() if word in strange}
        corpus = corpus.map_labels(words)
    return corpus


def _stated_mapping(folder: ModelFolder) -> dict[str, dict[str, str]]:
    """The `data.labels` of the recipe that made the model."""
    recipe = folder.description.get("facts", {}).get("recipe", {})
    try:
        return parse_as(dict[str, dict[str, str]], recipe.get("data", {}).get("labels", {}))
    except ValueError as error:
        raise folder.damaged(f"the labels of its recipe: {error}") from error
