"""The audit of a corpus: leaks, contradictions, duplicates, imbalance and over-long texts."""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice, product
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any, Literal

from litotes.core.progress import Watch
from litotes.core.values import Example, Label
from litotes.data.corpus import Cell, Corpus, Count, cell_of, example_key, leak_key
from litotes.data.near_duplicates import THRESHOLD, near_duplicates

# What the checks of the audit read and what they report.

Severity = Literal["error", "warning", "note"]

_ENTRIES = tomllib.loads(Path(__file__).with_name("findings.toml").read_text("utf-8"))
_N_LINES, _N_CHARS = 3, 120


@dataclass(frozen=True)
class Finding:
    """One kind of problem: how bad it is, how often it occurs, a few examples and what to do."""

    kind: str
    severity: Severity
    n: int
    sentence: str
    examples: tuple[str, ...]
    advice: str


def _found(
    name: str, n: int, lines: Iterable[str], *, severity: Severity | None = None, **facts: object
) -> Iterator[Finding]:
    """Makes the finding that is called so in `findings.toml`, if there are any.

    lines: examples, of which the first few are shown, shortened.
    """
    if n:
        entry = _ENTRIES[name]
        sentence = entry["sentence"].format(n=n, **facts)
        shown = tuple(
            line if len(line) <= _N_CHARS else f"{line[: _N_CHARS - 1]}…"
            for line in islice(lines, _N_LINES)
        )
        kind = entry.get("kind", name)
        yield Finding(kind, severity or entry["severity"], n, sentence, shown, entry["advice"])


@dataclass(frozen=True)
class KeyedCorpus:
    """A corpus with the key of each example, which all checks compare texts by."""

    corpus: Corpus
    keys: tuple[str, ...]

    def examples(self) -> Iterator[tuple[str, Example]]:
        """Every example with its key."""
        return zip(self.keys, self.corpus, strict=True)

    def sample(self, keys: Iterable[str]) -> Iterator[str]:
        """A few of the texts with these keys, the same few in whatever order the examples come."""
        wanted = sorted(set(keys))[:_N_LINES]
        written: dict[str, list[str]] = {key: [] for key in wanted}
        for key, example in self.examples():
            if key in written:
                written[key].append(" ".join(f"{example.text} {example.pair or ''}".split()))
        return map(min, written.values())

    def labels(self) -> Iterator[tuple[str, Example, str, Label]]:
        """Key, example, task and label of every label given."""
        for key, example in self.examples():
            for task, label in example.labels.items():
                yield key, example, task, label


# Checks for repeated texts: leaks between splits, duplicates, contradicting labels.


def leaks(keyed: KeyedCorpus) -> Iterator[Finding]:
    """Training labels whose text is also outside training, for the same task or for another."""
    held: dict[str, set[str]] = defaultdict(set)  # the tasks that each text is held out for
    for example in keyed.corpus:
        if example.split != "train":
            # a text without labels is held out for every task
            held[leak_key(example)] |= set(example.labels or keyed.corpus.tasks)
    same: list[str] = []
    other: list[str] = []
    for key, example, task, _ in keyed.labels():
        tasks = held.get(leak_key(example))
        if example.split == "train" and tasks is not None:
            (same if task in tasks else other).append(key)
    yield from _found("leak", len(same), keyed.sample(same))
    yield from _found("cross_task_leak", len(other), keyed.sample(other))


def group_leaks(keyed: KeyedCorpus) -> Iterator[Finding]:
    """Training texts of a group that is also outside training."""
    groups = {example.group for example in keyed.corpus if example.split != "train"} - {None}
    torn = [
        key
        for key, example in keyed.examples()
        if example.split == "train" and example.group in groups
    ]
    yield from _found("group_leak", len(torn), keyed.sample(torn))


def label_conflicts(keyed: KeyedCorpus) -> Iterator[Finding]:
    """Texts with different labels for one task."""
    labels: dict[tuple[str, str], set[Label]] = defaultdict(set)
    for key, _, task, label in keyed.labels():
        labels[key, task].add(label)
    conflicts = [key for (key, _), found in labels.items() if len(found) > 1]
    yield from _found("label_conflict", len(conflicts), keyed.sample(conflicts))


def exact_duplicates(keyed: KeyedCorpus) -> Iterator[Finding]:
    """Texts labelled again for the same task in the same split."""
    times = Counter((key, example.split, task) for key, example, task, _ in keyed.labels())
    repeated = keyed.sample(key for (key, _, _), n_times in times.items() if n_times > 1)
    yield from _found("exact_duplicate", times.total() - len(times), repeated)


def near_duplicate_pairs(keyed: KeyedCorpus) -> Iterator[Finding]:
    """Pairs of different texts that are nearly the same, and how many are in different splits."""
    splits: dict[str, set[str]] = defaultdict(set)
    for key, example in keyed.examples():
        splits[key].add(example.split)
    texts = sorted(splits)
    found = near_duplicates(texts)
    pairs = [(texts[one], texts[other]) for one, other in found.pairs]
    across = [(one, other) for one, other in pairs if len(splits[one] | splits[other]) > 1]
    yield from _found(
        "near_duplicate",
        len(pairs),
        keyed.sample(next(iter(across or pairs), ())),
        severity="warning" if across else "note",
        threshold=THRESHOLD,
        at_least="" if found.is_complete else "at least ",
        n_across=len(across),
    )


# Checks on how many texts there are of what, and how long they are.

RARE = 0.05
SMALL = 50
LONG = 384
"""Words: about what fits into the 512 pieces that most encoders read."""


@dataclass(frozen=True)
class Length:
    """The length of the texts of a cell, in words."""

    cell: Cell
    n: int
    median: float
    percentile_90: int
    longest: int


def imbalance(keyed: KeyedCorpus) -> Iterator[Finding]:
    """Cells, by split and task, that are too lopsided or too small to be scored as they are."""
    places: dict[tuple[Cell, str, str], Counter[str | None]] = defaultdict(Counter)
    for count in keyed.corpus.counts():
        places[count.cell, count.split, count.task][count.label] += count.n
    lines: dict[str, list[str]] = {"absent": [], "rare": [], "small": []}
    for (cell, split, task), counts in places.items():
        total, words = counts.total(), keyed.corpus.tasks[task].labels
        rarest = min(words, key=lambda word: counts[word], default=None)
        place = f"{cell}, {split}, {task}"
        if rarest is not None and counts[rarest] / total < RARE:
            problem = "rare" if counts[rarest] else "absent"
            lines[problem].append(f"{place}: {counts[rarest]} {rarest} of {total}")
        elif total < SMALL:
            lines["small"].append(f"{place}: {total} labels")
    for problem, found in lines.items():
        yield from _found(problem, len(found), found, rare=RARE, small=SMALL)


def empty_cells(keyed: KeyedCorpus) -> Iterator[Finding]:
    """Combinations of a variety and a source that have no label where others of their split do."""
    counts = keyed.corpus.counts()
    varieties = _sorted({count.cell.variety for count in counts})
    sources = _sorted({count.cell.source for count in counts})
    labelled = dict.fromkeys((count.split, count.task) for count in counts)
    present = {(count.cell, count.split, count.task) for count in counts}
    missing = [
        f"{Cell(variety, source)}, {split}, {task}"
        for variety, source, (split, task) in product(varieties, sources, labelled)
        if (Cell(variety, source), split, task) not in present
    ]
    yield from _found("empty_cell", len(missing), missing)


def long_texts(keyed: KeyedCorpus) -> Iterator[Finding]:
    """Texts that most encoders will cut."""
    long = [key for key, example in keyed.examples() if n_words(example) > LONG]
    yield from _found("length", len(long), keyed.sample(long), long=LONG)


def lengths(corpus: Corpus) -> tuple[Length, ...]:
    """Measures the lengths of texts, for each cell."""
    words: dict[Cell, list[int]] = defaultdict(list)
    for example in corpus:
        words[cell_of(example)].append(n_words(example))
    found = []
    for cell in corpus.cells():
        own = sorted(words[cell])
        percentile_90 = own[ceil(0.9 * len(own)) - 1]
        found.append(Length(cell, len(own), float(median(own)), percentile_90, own[-1]))
    return tuple(found)


def n_words(example: Example) -> int:
    """The words of a text, or of both texts of a pair."""
    return len(f"{example.text} {example.pair or ''}".split())


def _sorted(words: Iterable[str | None]) -> list[str | None]:
    return sorted(words, key=lambda word: word or "")


# What in a corpus would spoil a score, worst first, each finding with what to do about it.

CHECKS: tuple[Callable[[KeyedCorpus], Iterable[Finding]], ...] = (
    leaks,
    group_leaks,
    label_conflicts,
    exact_duplicates,
    near_duplicate_pairs,
    imbalance,
    empty_cells,
    long_texts,
)
"""In the order of their weight, which decides between findings of the same severity."""

_SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Audit:
    """Everything the audit found out about a corpus."""

    corpus: str
    n_examples: int
    findings: tuple[Finding, ...]
    balance: tuple[Count, ...]
    lengths: tuple[Length, ...]

    def as_json(self) -> dict[str, Any]:
        """The audit as nested dicts, which `json` writes as they are."""
        return asdict(self)


def audit(corpus: Corpus, *, progress: Watch | None = None) -> Audit:
    """Looks for leaks, contradictions, duplicates, imbalance and over-long texts."""
    keyed = KeyedCorpus(corpus, tuple(map(example_key, corpus)))
    findings: list[Finding] = []
    for n_done, check in enumerate(CHECKS, start=1):
        findings += check(keyed)
        if progress is not None:
            progress("audit", n_done, len(CHECKS), "")
    findings.sort(key=lambda finding: _SEVERITIES.index(finding.severity))
    return Audit(corpus.name, len(corpus), tuple(findings), corpus.counts(), lengths(corpus))
