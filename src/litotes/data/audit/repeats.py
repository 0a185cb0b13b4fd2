"""Checks for texts that occur more than once: leaks between splits, duplicates, contradicting
labels.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from litotes.core.values import Label
from litotes.data.audit.finding import Finding, Keyed
from litotes.data.near_duplicates import THRESHOLD, near_duplicates

_MEND = "Train on what corpus.without_leaks() keeps"


def leaks(keyed: Keyed) -> Iterator[Finding]:
    """Training labels whose text also sits outside training, for the same task or for another."""
    held: dict[str, set[str]] = defaultdict(set)  # text → the tasks it is held out for
    for key, example in keyed.examples():
        if example.split != "train":
            # a text without labels waits to be asked for every task
            held[key] |= set(example.labels or keyed.corpus.tasks)
    training = [
        (key, task)
        for key, example, task, _ in keyed.labels()
        if example.split == "train" and key in held
    ]
    if same := [key for key, task in training if task in held[key]]:
        sentence = (
            f"Training labels whose text is also in valid or test for the same task: {len(same)}."
        )
        yield Finding("leak", "error", len(same), sentence, keyed.shown(same), f"{_MEND}.")
    if other := [key for key, task in training if task not in held[key]]:
        sentence = (
            "Training labels whose text is in valid or test for another task, so that training"
            f" both tasks leaks: {len(other)}."
        )
        advice = f"{_MEND}, or on one task at a time, corpus.where(task=…)."
        yield Finding("cross_task_leak", "error", len(other), sentence, keyed.shown(other), advice)


def group_leaks(keyed: Keyed) -> Iterator[Finding]:
    """Training texts of a group that also sits outside training."""
    groups = {example.group for example in keyed.corpus if example.split != "train"} - {None}
    if torn := [
        key
        for key, example in keyed.examples()
        if example.split == "train" and example.group in groups
    ]:
        sentence = f"Training texts of a group that is also in valid or test: {len(torn)}."
        yield Finding("group_leak", "error", len(torn), sentence, keyed.shown(torn), f"{_MEND}.")


def label_conflicts(keyed: Keyed) -> Iterator[Finding]:
    """Texts with different labels for one task."""
    labels: dict[tuple[str, str], set[Label]] = defaultdict(set)
    for key, _, task, label in keyed.labels():
        labels[key, task].add(label)
    if conflicts := [key for (key, _), found in labels.items() if len(found) > 1]:
        sentence = f"Texts that carry different labels for the same task: {len(conflicts)}."
        advice = (
            "Decide on one label for each, or take these texts out: no model can be right on both."
        )
        yield Finding(
            "label_conflict", "warning", len(conflicts), sentence, keyed.shown(conflicts), advice
        )


def exact_duplicates(keyed: Keyed) -> Iterator[Finding]:
    """Texts labelled again for the same task in the same split."""
    times = Counter((key, example.split, task) for key, example, task, _ in keyed.labels())
    if n := sum(times.values()) - len(times):
        sentence = f"Labels of a text that the same split already has for the same task: {n}."
        repeated = keyed.shown(key for (key, _, _), n_times in times.items() if n_times > 1)
        advice = "Keep one of each: a repeated text weighs double, in training and in scores."
        yield Finding("exact_duplicate", "warning", n, sentence, repeated, advice)


def near_duplicate_pairs(keyed: Keyed) -> Iterator[Finding]:
    """Pairs of different texts that are nearly the same, and how many of them lie in different
    splits.
    """
    splits: dict[str, set[str]] = defaultdict(set)
    for key, example in keyed.examples():
        splits[key].add(example.split)
    texts = sorted(splits)
    found = near_duplicates(texts)
    pairs = [(texts[one], texts[other]) for one, other in found.pairs]
    across = [pair for pair in pairs if len(splits[pair[0]] | splits[pair[1]]) > 1]
    if pairs:
        n = f"{len(pairs)}" if found.is_complete else f"at least {len(pairs)}"
        sentence = (
            f"Pairs of texts with {THRESHOLD:.0%} or more of their word 3-grams in common: {n}, of"
            f" them across splits: {len(across)}."
        )
        advice = (
            "Look at them: versions of one text belong in one split, and a shared group keeps them"
            " there."
        )
        first = keyed.shown((across or pairs)[0])
        yield Finding(
            "near_duplicate", "warning" if across else "note", len(pairs), sentence, first, advice
        )
