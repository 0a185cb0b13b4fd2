"""Checks for repeated texts: leaks between splits, duplicates, contradicting labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from litotes.core.values import Label
from litotes.data.audit.finding import Finding, KeyedCorpus, Severity
from litotes.data.keys import leak_key
from litotes.data.near_duplicates import THRESHOLD, near_duplicates

_ADVICE = "Train on what corpus.without_leaks() keeps"


def leaks(keyed: KeyedCorpus) -> Iterator[Finding]:
    """Training labels whose text is also outside training, for the same task or for another."""
    held = _held_out_tasks(keyed)
    same: list[str] = []
    other: list[str] = []
    for key, example, task, _ in keyed.labels():
        alike = leak_key(example)
        if example.split == "train" and alike in held:
            (same if task in held[alike] else other).append(key)
    if same:
        sentence = (
            f"Training labels whose text is also in valid or test for the same task: {len(same)}."
        )
        yield Finding("leak", "error", len(same), sentence, keyed.sample(same), f"{_ADVICE}.")
    if other:
        sentence = (
            "Training labels whose text is in valid or test for another task, so that training"
            f" both tasks leaks: {len(other)}."
        )
        advice = f"{_ADVICE}, or on one task at a time, corpus.where(task=…)."
        yield Finding("cross_task_leak", "error", len(other), sentence, keyed.sample(other), advice)


def _held_out_tasks(keyed: KeyedCorpus) -> dict[str, set[str]]:
    """By the `leak_key` of each text outside training: the tasks it is held out for."""
    held: dict[str, set[str]] = defaultdict(set)
    for example in keyed.corpus:
        if example.split != "train":
            # a text without labels is held out for every task
            held[leak_key(example)] |= set(example.labels or keyed.corpus.tasks)
    return held


def group_leaks(keyed: KeyedCorpus) -> Iterator[Finding]:
    """Training texts of a group that is also outside training."""
    groups = {example.group for example in keyed.corpus if example.split != "train"} - {None}
    torn = []
    for key, example in keyed.examples():
        if example.split == "train" and example.group in groups:
            torn.append(key)
    if torn:
        sentence = f"Training texts of a group that is also in valid or test: {len(torn)}."
        yield Finding("group_leak", "error", len(torn), sentence, keyed.sample(torn), f"{_ADVICE}.")


def label_conflicts(keyed: KeyedCorpus) -> Iterator[Finding]:
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
            "label_conflict", "warning", len(conflicts), sentence, keyed.sample(conflicts), advice
        )


def exact_duplicates(keyed: KeyedCorpus) -> Iterator[Finding]:
    """Texts labelled again for the same task in the same split."""
    times = Counter((key, example.split, task) for key, example, task, _ in keyed.labels())
    if n := sum(times.values()) - len(times):
        sentence = f"Labels of a text that the same split already has for the same task: {n}."
        repeated = keyed.sample(key for (key, _, _), n_times in times.items() if n_times > 1)
        advice = "Keep one of each: a repeated text weighs double, in training and in scores."
        yield Finding("exact_duplicate", "warning", n, sentence, repeated, advice)


def near_duplicate_pairs(keyed: KeyedCorpus) -> Iterator[Finding]:
    """Pairs of different texts that are nearly the same, and how many are in different splits."""
    splits: dict[str, set[str]] = defaultdict(set)
    for key, example in keyed.examples():
        splits[key].add(example.split)
    texts = sorted(splits)
    found = near_duplicates(texts)
    if not found.pairs:
        return
    pairs = [(texts[one], texts[other]) for one, other in found.pairs]
    across = [(one, other) for one, other in pairs if len(splits[one] | splits[other]) > 1]
    n = f"{len(pairs)}" if found.is_complete else f"at least {len(pairs)}"
    sentence = (
        f"Pairs of texts with {THRESHOLD:.0%} or more of their word 3-grams in common: {n}, of"
        f" them across splits: {len(across)}."
    )
    advice = (
        "Look at them: versions of one text belong in one split, and a shared group keeps them"
        " there."
    )
    severity: Severity = "warning" if across else "note"
    first = keyed.sample((across or pairs)[0])
    yield Finding("near_duplicate", severity, len(pairs), sentence, first, advice)
