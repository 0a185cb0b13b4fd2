"""Scores of tags and spans, each with a 95 % interval by drawing texts with replacement.

Words of one text are not independent: a resample takes or leaves whole texts. Every score follows
from counts that add up over texts, so that a resample is a product of matrices.

    F1        = 2·tp / (2·tp + fp + fn)
    entity F1   the same over entities that are found whole: kind, first and last word
                (Tjong Kim Sang and De Meulder 2003, arXiv cs/0306050)
    overlap F1  mean over texts of the F1 of the words inside; two empty spans: 1
                (Rajpurkar et al. 2016, arXiv 1606.05250, §6.1, with words in their places)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from litotes.core.numbers import Counts, Floats, classes_of, confusion, macro_f1
from litotes.data.words import Span, WordExample, entities_of, is_bio
from litotes.evaluation.scores import (
    N_RESAMPLES,
    ClassScores,
    Interval,
    Result,
    class_scores,
    interval,
)

Tags = Sequence[Sequence[str | None]]
"""The tags of each text, of each word; None: no answer, which is wrong."""


@dataclass(frozen=True)
class LabelScores(ClassScores):
    """One label: how many words have it, how well it is found."""

    f1_interval: Interval


@dataclass(frozen=True, repr=False)
class TagScores(Result):
    """A tagging task on one set of texts.

    majority: accuracy of always answering the label that is commonest here. entity_f1: where the
    labels write entities (BIO).
    """

    shown = ("task", "n_words", "accuracy", "interval")

    task: str
    n_texts: int
    n_words: int
    accuracy: float
    interval: Interval
    macro_f1: float
    macro_f1_interval: Interval
    majority: float
    labels: tuple[LabelScores, ...]
    entity_f1: float | None = None
    entity_f1_interval: Interval | None = None
    n_entities: int | None = None


@dataclass(frozen=True, repr=False)
class SpanScores(Result):
    """A span task on one set of texts. majority: exact match of always answering "none"."""

    shown = ("task", "n_texts", "exact_match", "overlap_f1")

    task: str
    n_texts: int
    exact_match: float
    exact_match_interval: Interval
    overlap_f1: float
    overlap_f1_interval: Interval
    majority: float


WordScores = TagScores | SpanScores


def score_tags(
    task: str, labels: Sequence[str], gold: Tags, answers: Tags, *, seed: int = 0
) -> TagScores:
    """Gold and answers: the tags of the same words of the same texts."""
    by_text = _confusions(labels, gold, answers)  # (text, gold, answer)
    total = by_text.sum(0)
    draws = draw_texts(len(by_text), seed=seed)  # (resample, text)
    resampled = np.tensordot(draws, by_text, axes=1)  # (resample, gold, answer)
    among = classes_of(total)
    among[-1] = False  # "no answer" is no label to be averaged over
    by_label = class_scores(labels, *_counts_of_labels(total))
    again = f1_from(*_counts_of_labels(resampled)).T
    entities = _entity_scores(gold, answers, draws) if is_bio(labels) else {}
    return TagScores(
        task,
        n_texts=len(by_text),
        n_words=int(total.sum()),
        accuracy=float(_accuracy(total)),
        interval=interval(_accuracy(resampled)),
        macro_f1=float(macro_f1(total, among)),
        macro_f1_interval=interval(macro_f1(resampled, among)),
        majority=float(total.sum(1).max() / total.sum()),
        labels=tuple(
            LabelScores(**vars(one), f1_interval=interval(f1s))
            for one, f1s in zip(by_label, again, strict=True)
        ),
        **entities,
    )


def score_spans(
    task: str, gold: Sequence[Span | None], answers: Sequence[Span | None], *, seed: int = 0
) -> SpanScores:
    exact = np.array([one == other for one, other in zip(gold, answers, strict=True)], float)
    overlap = np.array([span_overlap(*pair) for pair in zip(gold, answers, strict=True)])
    draws = draw_texts(len(exact), seed=seed) / len(exact)  # (resample, text)
    return SpanScores(
        task,
        n_texts=len(exact),
        exact_match=float(exact.mean()),
        exact_match_interval=interval(draws @ exact),
        overlap_f1=float(overlap.mean()),
        overlap_f1_interval=interval(draws @ overlap),
        majority=float(np.mean([one is None for one in gold])),
    )


def span_overlap(gold: Span | None, answer: Span | None) -> float:
    """F1 of the words inside; 1 if both are empty, 0 if one is."""
    if gold is None or answer is None:
        return float(gold is answer)
    n_shared = max(0, min(gold[1], answer[1]) - max(gold[0], answer[0]))
    return 2 * n_shared / (gold[1] - gold[0] + answer[1] - answer[0])


def draw_texts(n_texts: int, *, seed: int) -> Floats:
    """Draws how often each text is in each resample. (resample, text)"""
    generator = np.random.default_rng(seed)
    counts = generator.multinomial(n_texts, np.full(n_texts, 1 / n_texts), size=N_RESAMPLES)
    return counts.astype(float)


def _confusions(labels: Sequence[str], gold: Tags, answers: Tags) -> Counts:
    """Counts each text's words by (gold, answer); the last class is a word without an answer."""
    number: dict[str | None, int] = {label: place for place, label in enumerate(labels)}
    nothing, by_text = len(labels), []
    for tags, found in zip(gold, answers, strict=True):
        given = [number.get(tag, nothing) for tag in found]
        by_text.append(confusion([number[tag] for tag in tags], given, nothing + 1))
    return np.stack(by_text)


def _accuracy(counts: np.ndarray[Any, Any]) -> Floats:
    hits = np.trace(counts, axis1=-2, axis2=-1)
    return np.asarray(hits / np.maximum(counts.sum((-2, -1)), 1), float)


def _counts_of_labels(counts: np.ndarray[Any, Any]) -> list[Any]:
    """Counts words right, found, meant, without "no answer". (…, gold, answer) → (…, label)"""
    hits = np.diagonal(counts, axis1=-2, axis2=-1)
    return [part[..., :-1] for part in (hits, counts.sum(-2), counts.sum(-1))]


def f1_from(hits: Any, n_found: Any, n_gold: Any) -> Floats:
    """2·tp / (found + gold); 0 where there is neither."""
    return np.asarray(2 * hits / np.maximum(n_found + n_gold, 1), float)


def _entity_scores(gold: Tags, answers: Tags, draws: Floats) -> dict[str, Any]:
    counts = []
    for tags, found in zip(gold, answers, strict=True):
        wanted, given = set(entities_of(tags)), set(entities_of(found))
        counts.append((len(wanted & given), len(given), len(wanted)))
    by_text = np.array(counts, float)  # (text, [hits, found, gold])
    total = by_text.sum(0)
    return {
        "entity_f1": float(f1_from(*total)),
        "entity_f1_interval": interval(f1_from(*(draws @ by_text).T)),
        "n_entities": int(total[2]),
    }


# What needs no model: the lines that scores of words are read against.


def most_frequent_tags(
    train: Sequence[WordExample], test: Sequence[WordExample]
) -> list[list[str]]:
    """Each word's commonest tag in training; of words not seen there, the commonest of those that
    occur once, which new words resemble. Jurafsky and Martin, "Speech and Language Processing",
    §17.2. Case counts where the word was seen in it.
    """
    seen = [pair for one in train for pair in zip(one.words, one.tags or (), strict=True)]
    exact = _commonest_by_word(seen)
    folded = _commonest_by_word((word.lower(), tag) for word, tag in seen)
    times = Counter(word for word, _ in seen)
    rare = [tag for word, tag in seen if times[word] == 1]
    default = _commonest(Counter(rare or [tag for _, tag in seen]))
    return [
        [exact.get(word) or folded.get(word.lower(), default) for word in one.words] for one in test
    ]


def _commonest_by_word(seen: Iterable[tuple[str, str]]) -> dict[str, str]:
    by_word: dict[str, Counter[str]] = {}
    for word, tag in seen:
        by_word.setdefault(word, Counter())[tag] += 1
    return {word: _commonest(counts) for word, counts in by_word.items()}


def _commonest(counts: Counter[str]) -> str:
    """Picks the most frequent; of equals, the first in the alphabet, on every machine."""
    return min(counts, key=lambda tag: (-counts[tag], tag))
