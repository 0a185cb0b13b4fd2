"""From the words in a column of labels to a task: any words or numbers will do.

words                        labels
happy, sad, Sad              happy, sad           case does not count; the commonest spelling stays
1.0, 2, 10                   1, 2, 10             numbers are classes, in the order of numbers
pos, 0 (sentiment, sarcasm)  positive, negative   where the known spellings are used
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite

from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.data.corpus import SARCASM, SENTIMENT, SENTIMENT_3, SPELLINGS, unknown_labels

_FEW = 10
"""So many different labels are believed of a table of any size."""


@dataclass(frozen=True)
class LabelWords:
    """How a column of labels is read: the task, the label that each word stands for, and notes."""

    task: Task
    meanings: Mapping[str, str]
    notes: tuple[str, ...] = ()


def read_label_words(name: str, words: Mapping[str, int], place: str) -> LabelWords:
    """words: how often each occurs. place: the column, for errors and notes."""
    n_rows = sum(words.values())
    if len(words) > _FEW and len(words) > n_rows / 2:
        raise UserError(
            f"{place} holds {len(words)} different labels in {n_rows} rows: that is an id, a free"
            " text or a number to predict. Name a column with few different words, or add"
            " numbers=yes."
        )
    if _are_numbers(words):
        is_spelt = words.keys() <= SPELLINGS.get(name, {}).keys()
        return _spelt(name, words, place) if is_spelt else _numbers(name, words)
    if any(word.casefold() in SPELLINGS.get(name, {}) for word in words):
        return _spelt(name, words, place)
    return _own(name, words, place)


def read_several_words(name: str, words: Mapping[str, int], place: str) -> LabelWords:
    """The same of a column in which a text may have several labels: the words as they are."""
    if len(words) < 2:
        found = f"only {next(iter(words))!r:.60}" if words else "no label at all"
        raise UserError(
            f"{place} holds {found}: a task with several labels for one text needs two labels or"
            " more. Check the sign between them, several=."
        )
    own = _own(name, words, place)
    return LabelWords(Task(name, own.task.labels, multi_label=True), own.meanings, own.notes)


def _are_numbers(words: Iterable[str]) -> bool:
    try:
        return all(isfinite(float(word)) for word in words)
    except ValueError:
        return False


def _numbers(name: str, words: Iterable[str]) -> LabelWords:
    """Numbers as classes. A table with a missing cell stores 1 as 1.0: both are the same class."""
    meanings = {word: word for word in words}
    if all(float(word).is_integer() for word in words):
        meanings = {word: _without_fraction(word) for word in words}
    labels = sorted(set(meanings.values()), key=lambda word: (float(word), word))
    return LabelWords(Task(name, tuple(labels)), meanings)


def _without_fraction(word: str) -> str:
    whole, _, fraction = word.partition(".")
    return whole if not fraction.strip("0") else word


def _own(name: str, words: Mapping[str, int], place: str) -> LabelWords:
    """The words as they are."""
    meanings = _join_cases(words)
    labels = tuple(sorted(set(meanings.values())))
    return LabelWords(Task(name, labels), meanings, _case_notes(meanings, place))


def _join_cases(words: Mapping[str, int]) -> dict[str, str]:
    """For each word the commonest spelling of it; case alone makes no other word."""
    spellings: dict[str, list[str]] = defaultdict(list)
    for word in words:
        spellings[word.casefold()].append(word)
    meanings: dict[str, str] = {}
    for same in spellings.values():
        commonest = min(same, key=lambda word: (-words[word], word))
        meanings |= dict.fromkeys(same, commonest)
    return meanings


def _case_notes(meanings: Mapping[str, str], place: str) -> tuple[str, ...]:
    joined: dict[str, list[str]] = defaultdict(list)
    for word, label in meanings.items():
        if word != label:
            joined[label].append(word)
    if not joined:
        return ()
    arrows = "; ".join(f"{', '.join(sorted(same))} → {label}" for label, same in joined.items())
    return (f"{place}: labels that differ only in case are one label: {arrows}.",)


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
    """The sentence about words that are no known spelling, beside others that are."""
    unknown = unknown_labels(task)
    words = ", ".join(map(repr, unknown))
    verb = "is not a known label" if len(unknown) == 1 else "are not known labels"
    return (
        f"{place}: {words} {verb} of {task.name}, others in it are. Map them in the recipe,"
        f' [data.labels.{task.name}] "{unknown[0]}" = "neutral" ("" takes the label away; on the'
        f" command line --set data.labels.{task.name}.WORD=LABEL), or give the task a name of its"
        " own to keep all words as they are: label=COLUMN&task=NAME."
    )


def count_words(labels: Iterable[Mapping[str, object]], task: str) -> Counter[str]:
    """How often each word of a task occurs among the labels of examples."""
    return Counter(str(own[task]) for own in labels if task in own)
