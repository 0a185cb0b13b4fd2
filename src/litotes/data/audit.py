"""The audit of a corpus: leaks, contradictions, duplicates, imbalance and over-long texts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, product
from math import ceil
from statistics import median
from typing import Any, Literal

from litotes.core.progress import Watch
from litotes.core.values import Example, Label
from litotes.data.corpus import Cell, Corpus, Count, cell_of, example_key, leak_key
from litotes.data.near_duplicates import THRESHOLD, near_duplicates

# What the checks of the audit read and what they report.

Severity = Literal["error", "warning", "note"]

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


@dataclass(frozen=True)
class KeyedCorpus:
    """A corpus with the key of each example, which all checks compare texts by."""

    corpus: Corpus
    keys: tuple[str, ...]

    def examples(self) -> Iterator[tuple[str, Example]]:
        """Every example with its key."""
        return zip(self.keys, self.corpus, strict=True)

    def sample(self, keys: Iterable[str]) -> tuple[str, ...]:
        """A few of the texts with these keys, the same few in whatever order the examples come."""
        wanted = sorted(set(keys))[:_N_LINES]
        written: dict[str, list[str]] = {key: [] for key in wanted}
        for key, example in self.examples():
            if key in written:
                written[key].append(" ".join(f"{example.text} {example.pair or ''}".split()))
        return sample_lines(min(written[key]) for key in wanted)

    def labels(self) -> Iterator[tuple[str, Example, str, Label]]:
        """Key, example, task and label of every label given."""
        for key, example in self.examples():
            for task, label in example.labels.items():
                yield key, example, task, label


def sample_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """The first few lines, shortened."""
    return tuple(
        line if len(line) <= _N_CHARS else f"{line[: _N_CHARS - 1]}…"
        for line in islice(lines, _N_LINES)
    )


# Checks for repeated texts: leaks between splits, duplicates, contradicting labels.

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
    torn = [
        key
        for key, example in keyed.examples()
        if example.split == "train" and example.group in groups
    ]
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


# Checks on how many texts there are of what, and how long they are.

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
    missing = [
        f"{Cell(variety, source)}, {split}, {task}"
        for variety, source, (split, task) in product(varieties, sources, labelled)
        if (Cell(variety, source), split, task) not in present
    ]
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
