"""Checks on how many texts there are of what, and how long they are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil
from statistics import median

from litotes.core.values import Example
from litotes.data.audit.finding import Finding, Keyed, Severity, shown
from litotes.data.cells import Cell, cell_of
from litotes.data.corpus import Corpus, Count

RARE = 0.05
SMALL = 50
LONG = 384
"""Words: about what fits into the 512 pieces that most encoders read."""

_TROUBLES: dict[str, tuple[Severity, str, str]] = {
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


def imbalance(keyed: Keyed) -> Iterator[Finding]:
    """Cells, by split and task, that are too lopsided or too small to be scored as they are."""
    lines: dict[str, list[str]] = defaultdict(list)
    for (cell, split, task), counts in _by_place(keyed.corpus.counts()).items():
        trouble, line = _trouble(counts, keyed.corpus.tasks[task].labels)
        lines[trouble].append(f"{cell}, {split}, {task}: {line}")
    for trouble, (severity, sentence, advice) in _TROUBLES.items():
        if found := lines[trouble]:
            yield Finding(
                "imbalance",
                severity,
                len(found),
                f"{sentence}: {len(found)}.",
                shown(found),
                advice,
            )


def empty_cells(keyed: Keyed) -> Iterator[Finding]:
    """Combinations of a variety and a source that have no label where others of their split do."""
    counts = keyed.corpus.counts()
    cells = [
        Cell(*parts)
        for parts in product(
            _sorted({c.cell.variety for c in counts}), _sorted({c.cell.source for c in counts})
        )
    ]
    asked = dict.fromkeys((count.split, count.task) for count in counts)
    present = {(count.cell, count.split, count.task) for count in counts}
    missing = [
        f"{cell}, {split}, {task}"
        for cell in cells
        for split, task in asked
        if (cell, split, task) not in present
    ]
    if missing:
        sentence = f"Cells without any label, by split and task: {len(missing)}."
        yield Finding(
            "empty_cell",
            "note",
            len(missing),
            sentence,
            shown(missing),
            "A matrix over these cells will have holes.",
        )


def long_texts(keyed: Keyed) -> Iterator[Finding]:
    """Texts that most encoders will cut."""
    long = [key for key, example in keyed.examples() if n_words(example) > LONG]
    if long:
        sentence = (
            f"Texts of more than {LONG} words, which encoders of 512 pieces cut: {len(long)}."
        )
        yield Finding(
            "length",
            "note",
            len(long),
            sentence,
            keyed.shown(long),
            "Use an encoder that reads more, or expect their ends to be lost.",
        )


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
    return Length(
        cell, len(words), float(median(words)), words[ceil(0.9 * len(words)) - 1], words[-1]
    )


def _by_place(counts: Iterable[Count]) -> dict[tuple[Cell, str, str], Counter[str | None]]:
    places: dict[tuple[Cell, str, str], Counter[str | None]] = defaultdict(Counter)
    for count in counts:
        places[count.cell, count.split, count.task][count.label] += count.n
    return places


def _trouble(counts: Counter[str | None], words: Sequence[str]) -> tuple[str, str]:
    """Which trouble a cell is in ("" for none), and the numbers that show it."""
    total = counts.total()
    if words:
        least = min(words, key=lambda word: counts[word])
        share = counts[least] / total
        if share < RARE:
            return "rare" if counts[least] else "absent", f"{counts[least]} {least} of {total}"
    return "small" if total < SMALL else "", f"{total} labels"


def _sorted(words: Iterable[str | None]) -> list[str | None]:
    return sorted(words, key=lambda word: word or "")
