"""The corpora of a study: each is read once, and known by its texts wherever it lies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.storage import sha256_of
from litotes.data.corpus import Corpus
from litotes.data.sources import load_with_test_part
from litotes.evaluation.evaluate import check_labels
from litotes.study.plan import TestedOn, short_hash
from litotes.training.recipe import Recipe

FORMAT = "1"
"""Of what a run writes, or of how it is made: a new number makes all runs again."""


def forget() -> None:
    """Files may have changed since an earlier study of this process."""
    for cached in (load_once, fingerprint, _encoder_hashes):
        cached.cache_clear()


@cache
def load_once(source: str) -> Corpus:
    """A corpus is read once, however many runs of this process are tested on it.

    Whatever a run is trained or tested on, a table without a split is divided in the same way.
    """
    return load_with_test_part(source)


@cache
def fingerprint(source: str) -> str:
    return load_once(source).fingerprint()


@cache
def _encoder_hashes(encoder: str) -> str:
    """The hashes of an encoder's files where it is a folder.

    Bundled encoders and Hub revisions are known by their names.
    """
    folder = Path(encoder)
    if not folder.is_dir():
        return ""
    files = sorted([*folder.glob("*.safetensors"), *folder.glob("*.json")])
    return " ".join(sha256_of(file) for file in files)


def run_key(recipe: Recipe) -> str:
    """The name of a run: its recipe, the texts it reads, and the encoder it starts from."""
    texts, encoder = fingerprint(recipe.data.source), _encoder_hashes(recipe.model.encoder)
    return short_hash(FORMAT, recipe.key(), texts, encoder)


def key_of_test(test: TestedOn, recipe: Recipe) -> str:
    """The name of a test: which texts, and what the columns are.

    Labels are mapped as in training when the corpus is the same.
    """
    source = test.data or recipe.data.source
    own = json.dumps(recipe.data.labels, sort_keys=True) if source == recipe.data.source else ""
    return short_hash(source, fingerprint(source), test.where.model_dump_json(), test.by, own)


def select_test_texts(test: TestedOn, recipe: Recipe, tasks: Sequence[str]) -> Corpus:
    """The texts of a test that carry a label of one of the tasks."""
    corpus = load_once(test.data or recipe.data.source)
    if test.data in (None, recipe.data.source):
        corpus = corpus.map_labels(recipe.data.labels)
    common = [task for task in tasks if task in corpus.tasks]
    if not common:
        raise UserError(
            f"{corpus.name} is labelled for {', '.join(corpus.tasks)}; models of {', '.join(tasks)}"
            " cannot be tested on it."
        )
    chosen = corpus.where(variety=test.where.variety, source=test.where.source, task=common)
    return chosen.where(split=chosen.test_split())


def check_test(test: TestedOn, recipe: Recipe, tasks: Sequence[str] | None) -> None:
    """A test must be of classification tasks whose labels the model learns.

    tasks: those that are tested; None: all that the model learns.
    """
    corpus = load_once(recipe.data.source).map_labels(recipe.data.labels)
    trained_on = corpus.where(task=recipe.data.tasks)
    tested = [task for name, task in trained_on.tasks.items() if tasks is None or name in tasks]
    for task in tested:
        if not task.is_choice:
            kind = "several labels" if task.multi_label else "a number"
            raise UserError(
                f"{task.name} of {trained_on.name} is answered with {kind}; a study is of"
                " macro-F1 of one label. Leave it out of data.tasks."
            )
    chosen = select_test_texts(test, recipe, [task.name for task in tested])
    for name in chosen.tasks:
        check_labels(trained_on.tasks[name], chosen)
