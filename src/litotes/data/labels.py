"""From the words in a column of labels to a task: any words or numbers will do.

words                        labels
happy, sad, Sad              happy, sad           case does not count; the usual spelling stays
1.0, 2, 10                   1, 2, 10             numbers are classes, in the order of numbers
pos, 0 (sentiment, sarcasm)  positive, negative   where the known spellings are used

A cell may hold several labels of one text, with a sign between them:

angry|sad      both
none           no one gave the text any of the labels
(empty)        no one has said: the text has no label for this task
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import isfinite

from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.data.corpus import SARCASM, SENTIMENT, SENTIMENT_3, SPELLINGS, unknown_labels

NONE = "none"
"""The word for a text that has been looked at and has none of the labels."""
BETWEEN = "|"
"""Stands between labels wherever several are written into one cell."""
_FEW = 10
"""So many different labels are believed of a table of any size."""

_KAPPA: Mapping[str, Mapping[tuple[str, str], float]] = {
    # Srirag et al. 2025, BESSTIE: three values a task, read in the order Australian, Indian,
    # British; that order is not confirmed by the paper's own table
    "besstie": {
        ("sentiment", "en-AU"): 0.61,
        ("sentiment", "en-IN"): 0.65,
        ("sentiment", "en-UK"): 0.79,
        ("sarcasm", "en-AU"): 0.47,
        ("sarcasm", "en-IN"): 0.51,
        ("sarcasm", "en-UK"): 0.63,
    }
}


def annotator_kappa(corpus: str, task: str, variety: str) -> float | None:
    """Returns Cohen's κ of two annotators where a corpus states it: a ceiling for any model.

    Anyone who wants more asks a model to know better than the people whose labels it learned.
    """
    return _KAPPA.get(corpus, {}).get((task, variety))


@dataclass(frozen=True)
class LabelWords:
    """The reading of a column of labels: the task, the label each word stands for, and notes."""

    task: Task
    meanings: Mapping[str, str]
    notes: tuple[str, ...] = ()


def split_labels(cell: str, sign: str, place: str) -> tuple[str, ...]:
    """Returns the labels in a cell, each once, in alphabetical order."""
    words = {word.strip() for word in cell.split(sign)} - {""}
    if {word.casefold() for word in words} == {NONE}:
        return ()
    for word in words:
        if word.casefold() == NONE:
            raise UserError(f"{place} holds {NONE!r} next to other labels. Take one of them out.")
        if BETWEEN in word:
            raise UserError(
                f"{place} holds the label {word!r:.60}: answers are written with {BETWEEN} between"
                " labels, so that none can have it in its name. Write several=| in the source."
            )
    return tuple(sorted(words))


def read_label_words(
    name: str, words: Mapping[str, int], place: str, *, several: bool = False
) -> LabelWords:
    """Makes a task of words. words: how often each occurs. place: the column, for errors and notes.

    several: a text may have several of the labels, which are the words as they are.
    """
    if several:
        if len(words) < 2:
            found = f"only {next(iter(words))!r:.60}" if words else "no label at all"
            raise UserError(
                f"{place} holds {found}: a task with several labels for one text needs two labels"
                " or more. Check the sign between them, several=."
            )
        own = _own(name, words, place)
        return replace(own, task=Task(name, own.task.labels, multi_label=True))
    n_rows = sum(words.values())
    if len(words) > _FEW and len(words) > n_rows / 2:
        raise UserError(
            f"{place} holds {len(words)} different labels in {n_rows} rows: that is an id, a free"
            " text or a number to predict. Name a column with few different words, or add"
            " numbers=yes."
        )
    known = SPELLINGS.get(name, {})
    if _are_numbers(words) and not words.keys() <= known.keys():
        return _numbers(name, words)
    is_spelt = bool(known) and (not words or any(word.casefold() in known for word in words))
    return _spelt(name, words, place) if is_spelt else _own(name, words, place)


def _are_numbers(words: Iterable[str]) -> bool:
    try:
        return all(isfinite(float(word)) for word in words)
    except ValueError:
        return False


def _numbers(name: str, words: Iterable[str]) -> LabelWords:
    """Numbers as classes. A table with a missing cell stores 1 as 1.0: both are the same class."""
    meanings = {word: word for word in words}
    if all(float(word).is_integer() for word in words):
        for word in meanings:
            whole, _, fraction = word.partition(".")
            meanings[word] = word if fraction.strip("0") else whole
    labels = sorted(set(meanings.values()), key=lambda word: (float(word), word))
    return LabelWords(Task(name, tuple(labels)), meanings)


def _own(name: str, words: Mapping[str, int], place: str) -> LabelWords:
    """The words as they are: for each its most frequent spelling; case alone makes no other."""
    spellings: dict[str, list[str]] = defaultdict(list)
    for word in words:
        spellings[word.casefold()].append(word)
    meanings: dict[str, str] = {}
    for same in spellings.values():
        commonest = min(same, key=lambda word: (-words[word], word))
        meanings |= dict.fromkeys(same, commonest)
    joined: dict[str, list[str]] = defaultdict(list)
    for word, label in meanings.items():
        if word != label:
            joined[label].append(word)
    arrows = "; ".join(f"{', '.join(sorted(same))} → {label}" for label, same in joined.items())
    note = f"{place}: labels that differ only in case are one label: {arrows}."
    task = Task(name, tuple(sorted(set(meanings.values()))))
    return LabelWords(task, meanings, (note,) if joined else ())


def _spelt(name: str, words: Mapping[str, int], place: str) -> LabelWords:
    """The words of sentiment or sarcasm, some or all of them in a known spelling."""
    known = SPELLINGS[name]
    others = {word: n for word, n in words.items() if word.casefold() not in known}
    meanings = {word: known[word.casefold()] for word in words if word not in others}
    task = SARCASM
    if name == SENTIMENT.name:
        task = SENTIMENT_3 if "neutral" in meanings.values() else SENTIMENT
    if not others:
        return LabelWords(task, meanings)
    own = _own(name, others, place)
    task = Task(name, (*task.labels, *own.task.labels))
    return LabelWords(task, {**meanings, **own.meanings}, (*own.notes, unknown_note(task, place)))


def unknown_note(task: Task, place: str) -> str:
    """Writes the sentence about words that are no known spelling, next to others that are."""
    unknown = unknown_labels(task)
    words = ", ".join(map(repr, unknown))
    verb = "is not a known label" if len(unknown) == 1 else "are not known labels"
    return (
        f"{place}: {words} {verb} of {task.name}, others in it are. Map them in the recipe,"
        f' [data.labels.{task.name}] "{unknown[0]}" = "neutral" ("" takes the label away; on the'
        f" command line --set data.labels.{task.name}.WORD=LABEL), or give the task a name of its"
        " own to keep all words as they are: label=COLUMN&task=NAME."
    )


def count_words(labels: Iterable[object]) -> Counter[str]:
    """Counts each word; of several labels, each of them."""
    counts: Counter[str] = Counter()
    for own in labels:
        counts.update(own if isinstance(own, tuple) else (str(own),))
    return counts
