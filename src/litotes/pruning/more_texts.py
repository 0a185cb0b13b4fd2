"""Texts beyond those of `--data`: without labels, for agreement; with labels, for a report."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from litotes.core.errors import UserError
from litotes.core.values import Example
from litotes.data.corpus import Corpus
from litotes.data.keys import example_key
from litotes.data.sources import load
from litotes.model.checkpoint import Model
from litotes.model.folder import text_hash
from litotes.pruning.result import PruneSettings
from litotes.training.training_data import TrainingData, unlabelled_texts


def read_more_texts(
    settings: PruneSettings, data: TrainingData, dense: Model, known: frozenset[str] | None
) -> tuple[tuple[Example, ...], Corpus | None, tuple[str, ...]]:
    """The texts of `unlabelled`, those of `held_out`, and what the user should know about them.

    known: hashes of the texts that the dense model was trained on; None: it does not say. What a
    model learned from, or another set of texts has, is left out: each text plays one part.
    """
    used = {*map(text_hash, data.seen()), *map(text_hash, unlabelled_texts(data)), *(known or ())}
    reporting: Corpus | None = None
    unlabelled: tuple[Example, ...] = ()
    notes = []
    if known is None and (settings.held_out or settings.unlabelled):
        notes.append(
            "The model does not say which texts it was trained on: some of --held-out or"
            " --unlabelled may be among them."
        )
    if settings.held_out is not None:
        reporting, note = _labelled_texts(settings.held_out, dense, used)
        used |= set(map(text_hash, reporting))
        notes.append(note)
    if settings.unlabelled is not None:
        used |= set() if data.test is None else set(map(text_hash, data.test))
        unlabelled, note = _texts_without_labels(settings.unlabelled, used)
        notes.append(note)
    return unlabelled, reporting, tuple(notes)


def _labelled_texts(source: str, dense: Model, used: Collection[str]) -> tuple[Corpus, str]:
    corpus = load(source)
    for name, task in dense.classifier.tasks.items():
        found = corpus.tasks.get(name)
        if found is None or found.labels != task.labels:
            words = "no labels" if found is None else f"the labels {', '.join(found.labels)}"
            raise UserError(
                f"--held-out {source} has {words} for {name}, which this model answers with"
                f" {', '.join(task.labels) or 'a number'}. Choose texts with the same labels."
            )
    chosen = corpus.where(task=list(dense.classifier.tasks))
    fresh = _unused(chosen.examples, used)
    for name in dense.classifier.tasks:
        if not any(name in example.labels for example in fresh):
            raise UserError(
                f"--held-out {source}: none of its {len(corpus)} texts is both labelled for {name}"
                " and new to the model. Choose texts that nothing was trained on."
            )
    n_known = len(chosen) - len(fresh)
    note = f"{len(fresh)} texts of {corpus.name} report and do not choose{_left_out(n_known)}."
    return replace(chosen, examples=fresh), note


def _texts_without_labels(source: str, used: Collection[str]) -> tuple[tuple[Example, ...], str]:
    corpus = load(source)
    fresh = _unused(corpus.examples, used)
    if not fresh:
        raise UserError(
            f"--unlabelled {source}: all of its {len(corpus)} texts are trained on, chosen by or"
            " tested on already. Choose other texts of the same kind."
        )
    n_known = len(corpus) - len(fresh)
    note = (
        f"{len(fresh)} texts of {corpus.name} count by agreement alone{_left_out(n_known)}. They"
        " must be of the same kind as those to be answered."
    )
    return tuple(replace(example, labels={}) for example in fresh), note


def _unused(examples: Collection[Example], used: Collection[str]) -> tuple[Example, ...]:
    """Each text once, those in use left out."""
    once = {example_key(example): example for example in examples}
    return tuple(example for example in once.values() if text_hash(example) not in used)


def _left_out(n: int) -> str:
    return f" ({n} others were used already, or come twice)" if n else ""
