"""Which texts a model of words may be scored on: the test split, or texts it has not seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.words import WordCorpus, load_words
from litotes.model.folder import read_trained_texts, text_hash


def fair_words(source: str, model: str | Path) -> WordCorpus:
    """The test split of a source; of one without, all texts that the model was not trained on.

    What the user should know is in the notes of the corpus.
    """
    corpus = load_words(source)
    trained_on = read_trained_texts(model) or frozenset()
    for split in ("test", "valid"):
        chosen = corpus.only(split)
        if chosen.examples:
            n_seen = sum(_hash(one.text) in trained_on for one in chosen)
            note = (
                f"WARNING: the model was trained on {n_seen} of these {len(chosen)} texts: scores"
                " on them are too high."
            )
            return replace(chosen, notes=(note,) if n_seen else ())
    fresh = tuple(one for one in corpus if _hash(one.text) not in trained_on)
    if not fresh:
        raise UserError(
            f"The model was trained on all {len(corpus)} texts of {corpus.name}: scores on them"
            " would say nothing. Give texts that are new to it."
        )
    note = (
        f"{corpus.name} has no split: the {len(fresh)} texts that the model was not trained on are"
        " used."
    )
    return replace(corpus, examples=fresh, notes=(note,))


def _hash(text: str) -> str:
    return text_hash(Example(text, {}))
