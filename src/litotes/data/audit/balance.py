"""Checks on how many texts there are of what, and how long they are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil
from statistics import median

from litotes.core.values import Example
from litotes.data.audit.finding import Finding, KeyedCorpus, Severity, sample_lines
from litotes.data.cells import Cell, cell_of
from litotes.data.corpus import Corpus, Count

RARE = 0.05
SMALL = 50
LONG = 384
"""Words: about what fits into the 512 pieces that most encoders read."""

_PROBLEMS: dict[str, tuple[Severity, str, str]] = {
    "absent": (
        "warning",
        "Cells in which a class does not occur",
        "Do not score these cells on that task.",
    ),
    "rare": (
        "warning",
        f"Cells in which a class has under {RARE:.0%} of the labels",
        "Read macro-F1 and its interval there, not accuracy.",
    ),
    "small": ("note", f"Cells with fewer than {SMALL} labels", "Expect wide intervals there."),
}


@dataclass(frozen=True)
class Length:
    """How long the texts of a cell are, in words."""

    cell: Cell
    n: int
    median: float
    percentile_90: int
    longest: int


def imbalance(keyed: KeyedCorpus) -> Iterator[Finding]:
    """Cells, by split and task, that are too lopsided or too small to be scored as they are."""
    lines: dict[str, list[str]] = defaultdict(list)
    for (cell, split, task), counts in _counts_by_place(keyed.corpus.counts()).items():
        problem, line = _problem(counts, keyed.corpus.tasks[task].labels)
        lines[problem].append(f"{cell}, {split}, {task}: {line}")
    for problem, (severity, sentence, advice) in _PROBLEMS.items():
        if found := lines[problem]:
            n = len(found)
            sample = sample_lines(found)
            yield Finding("imbalance", severity, n, f"{sentence}: {n}.", sample, advice)


def empty_cells(keyed: KeyedCorpus) -> Iterator[Finding]:
    """Combinations of a variety and a source that have no label where others of their split do."""
    counts = keyed.corpus.counts()
    varieties = _sorted({count.cell.variety for count in counts})
    sources = _sorted({count.cell.source for count in counts})
    labelled = dict.fromkeys((count.split, count.task) for count in counts)
    present = {(count.cell, count.split, count.task) for count in counts}
    missing = []
    for variety, source, (split, task) in product(varieties, sources, labelled):
        cell = Cell(variety, source)
        if (cell, split, task) not in present:
            missing.append(f"{cell}, {split}, {task}")
    if missing:
        sentence = f"Cells without any label, by split and task: {len(missing)}."
        advice = "A matrix over these cells will have holes."
        sample = sample_lines(missing)
        yield Finding("empty_cell", "note", len(missing), sentence, sample, advice)


def long_texts(keyed: KeyedCorpus) -> Iterator[Finding]:
    """Texts that most encoders will cut."""
    long = [key for key, example in keyed.examples() if n_words(example) > LONG]
    if long:
        sentence = (
            f"Texts of more than {LONG} words, which encoders of 512 pieces cut: {len(long)}."
        )
        advice = "Use an encoder that reads more, or expect their ends to be lost."
        yield Finding("length", "note", len(long), sentence, keyed.sample(long), advice)


def lengths(corpus: Corpus) -> tuple[Length, ...]:
    """How long the texts are, for each cell."""
    words: dict[Cell, list[int]] = defaultdict(list)
    for example in corpus:
        words[cell_of(example)].append(n_words(example))
    return tuple(_length(cell, sorted(words[cell])) for cell in corpus.cells())


def n_words(example: Example) -> int:
    """The words of a text, or of both texts of a pair."""
    return len(f"{example.text} {example.pair or ''}".split())


def _length(cell: Cell, words: Sequence[int]) -> Length:
    """words: how many each text has, in ascending order."""
    percentile_90 = words[ceil(0.9 * len(words)) - 1]
    return Length(cell, len(words), float(median(words)), percentile_90, words[-1])


def _counts_by_place(counts: Iterable[Count]) -> dict[tuple[Cell, str, str], Counter[str | None]]:
    places: dict[tuple[Cell, str, str], Counter[str | None]] = defaultdict(Counter)
    for count in counts:
        places[count.cell, count.split, count.task][count.label] += count.n
    return places


def _problem(counts: Counter[str | None], words: Sequence[str]) -> tuple[str, str]:
    """Which problem a cell has ("" for none), and the numbers that show it."""
    total = counts.total()
    if words:
        rarest = min(words, key=lambda word: counts[word])
        n = counts[rarest]
        if n / total < RARE:
            return "rare" if n else "absent", f"{n} {rarest} of {total}"
    return "small" if total < SMALL else "", f"{total} labels"


def _sorted(words: Iterable[str | None]) -> list[str | None]:
    return sorted(words, key=lambda word: word or "")
