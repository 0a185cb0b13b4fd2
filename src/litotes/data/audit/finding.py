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

_N_SHOWN, _N_CHARS = 3, 120


@dataclass(frozen=True)
class Finding:
    """One kind of trouble: how bad, how much of it, in a sentence, with up to three examples and
    the way out.
    """

    kind: str
    severity: Severity
    n: int
    sentence: str
    examples: tuple[str, ...]
    advice: str


@dataclass(frozen=True)
class Keyed:
    """A corpus with the key of each example, which all checks compare texts by."""

    corpus: Corpus
    keys: tuple[str, ...]

    def examples(self) -> Iterator[tuple[str, Example]]:
        """Every example with its key."""
        return zip(self.keys, self.corpus, strict=True)

    def shown(self, keys: Iterable[str]) -> tuple[str, ...]:
        """A few of the texts with these keys as they are written, the same few in whatever order
        the examples come.
        """
        wanted = sorted(set(keys))[:_N_SHOWN]
        written: dict[str, list[str]] = {key: [] for key in wanted}
        for key, example in self.examples():
            if key in written:
                written[key].append(" ".join(f"{example.text} {example.pair or ''}".split()))
        return shown(min(written[key]) for key in wanted)

    def labels(self) -> Iterator[tuple[str, Example, str, Label]]:
        """Key, example, task and label of every label given."""
        return (
            (key, example, task, label)
            for key, example in self.examples()
            for task, label in example.labels.items()
        )


def keyed(corpus: Corpus) -> Keyed:
    """The corpus with its keys."""
    return Keyed(corpus, tuple(map(example_key, corpus)))


def shown(lines: Iterable[str]) -> tuple[str, ...]:
    """The first few lines, cut short."""
    return tuple(
        line if len(line) <= _N_CHARS else f"{line[: _N_CHARS - 1]}…"
        for line in islice(lines, _N_SHOWN)
    )
