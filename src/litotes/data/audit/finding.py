"""What the checks of the audit read and what they report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from litotes.core.values import Example, Label
from litotes.data.corpus import Corpus
from litotes.data.keys import example_key

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


def with_keys(corpus: Corpus) -> KeyedCorpus:
    """The corpus with its keys."""
    return KeyedCorpus(corpus, tuple(map(example_key, corpus)))


def sample_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """The first few lines, shortened."""
    sample = []
    for line in islice(lines, _N_LINES):
        is_short = len(line) <= _N_CHARS
        sample.append(line if is_short else f"{line[: _N_CHARS - 1]}…")
    return tuple(sample)
