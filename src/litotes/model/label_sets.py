"""Answers that may say "unsure": a set of labels that holds the truth with a promised probability.

    share   c_y = (p_y / t_y) / Σ_k (p_k / t_k)
    set     {y : c_y ≥ least}
    least   the k-th largest share of the gold label among n calibration texts,
            k = ⌈(n + 1) · coverage⌉; 0, which gives every label, if k > n

Split conformal prediction (Vovk, Gammerman & Shafer 2005, §4.2; Angelopoulos & Bates 2021, arXiv
2107.07511, §1): if a new text is exchangeable with the calibration texts, its set holds the gold
label with a probability of at least `coverage`, whatever the model is worth. t is (1 − threshold,
threshold) for two classes with a threshold, else the same for all: a set of one label is then
always the label that the model answers. With a bound for each variety (Mondrian, ibid. §4.5) the
promise holds within each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import compress
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.numbers import Counts, Floats


@dataclass(frozen=True)
class Bound:
    """The least share that a label of the set has, learned from n texts."""

    least: float
    n: int

    def __post_init__(self) -> None:
        if not _is_number(self.least) or not 0 <= self.least <= 1:
            raise ValueError(f"the least share must be from 0 to 1, not {self.least!r:.60}")
        if not isinstance(self.n, int) or isinstance(self.n, bool) or self.n < 1:
            raise ValueError(f"the number of texts calibrated on must be 1 or more, not {self.n!r}")

    def as_json(self) -> dict[str, Any]:
        return {"least": self.least, "n": self.n}

    @classmethod
    def from_json(cls, content: Any) -> Bound:
        if not isinstance(content, dict) or set(content) != {"least", "n"}:
            raise ValueError(f"a bound has a least share and n, not {content!r:.60}")
        return cls(**content)


@dataclass(frozen=True)
class LabelSets:
    """The bounds of one task: of all texts, and of the varieties that had enough of them."""

    coverage: float
    overall: Bound
    varieties: Mapping[str, Bound] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_coverage(self.coverage)
        for name in self.varieties:
            if not isinstance(name, str) or not name or not name.isprintable():
                raise ValueError(f"the name of a variety must be printable, not {name!r:.60}")

    def bound(self, variety: str | None) -> Bound:
        """That of a variety, or of all texts where it has none of its own."""
        return self.overall if variety is None else self.varieties.get(variety, self.overall)

    def as_json(self) -> dict[str, Any]:
        varieties = {name: bound.as_json() for name, bound in self.varieties.items()}
        return {
            "coverage": self.coverage,
            "overall": self.overall.as_json(),
            "varieties": varieties,
        }

    @classmethod
    def from_json(cls, content: Any) -> LabelSets:
        """Reads and checks them; what is not such bounds is a ValueError."""
        keys = {"coverage", "overall", "varieties"}
        if not isinstance(content, dict) or set(content) != keys:
            raise ValueError(f"sets of labels have {', '.join(sorted(keys))}, not {content!r:.60}")
        if not isinstance(content["varieties"], dict):
            raise ValueError("the bounds of varieties are not a table")
        varieties = {}
        for name, own in content["varieties"].items():
            varieties[name] = Bound.from_json(own)
        return cls(content["coverage"], Bound.from_json(content["overall"]), varieties)


def check_label_sets(content: object, tasks: Mapping[str, Sequence[str]]) -> None:
    """Refuses, as a ValueError, what `litotes.json` must not say. tasks: the labels of each."""
    if not isinstance(content, dict):
        raise ValueError("unsure is not a table")
    for task, sets in content.items():
        if not tasks.get(task):
            raise ValueError(f"unsure names {task!r:.60}, which is no task with labels")
        LabelSets.from_json(sets)


def check_coverage(coverage: Any) -> None:
    if not _is_number(coverage) or not 0 < coverage < 1:
        raise ValueError(f"the coverage must be a number between 0 and 1, not {coverage!r:.60}")


def label_shares(probabilities: Floats, threshold: float | None) -> Floats:
    """How much each label is to be believed, so that the answer has the largest share.

    threshold: that of the task's calibration. (text, class) → (text, class)
    """
    if threshold is None:
        return probabilities
    weighed = probabilities / np.array([1 - threshold, threshold])
    return np.asarray(weighed / weighed.sum(1, keepdims=True))


def fit_bound(shares: NDArray[Any], gold: Sequence[int] | Counts, coverage: float) -> Bound:
    """The bound that calibration texts give. shares (text, class), gold (text,)

    Fewer texts than `needed_texts(coverage)` are a UserError: every set would hold every label.
    """
    check_coverage(coverage)
    gold = np.asarray(gold, dtype=np.int64)
    n = len(gold)
    if n < needed_texts(coverage):
        raise UserError(too_few(n, coverage))
    own = np.sort(shares[np.arange(n), gold])[::-1]  # (text,): the gold label's, largest first
    return Bound(float(own[_rank(n, coverage) - 1]), n)


def needed_texts(coverage: float) -> int:
    """The fewest texts that can support a coverage: ⌈1 / (1 − coverage)⌉ − 1, at least 1."""
    return max(1, ceil(1 / (1 - _exactly(coverage))) - 1)


def supported_coverage(n: int) -> float:
    """The highest coverage that n texts can promise: n / (n + 1)."""
    return n / (n + 1)


def too_few(n: int, coverage: float) -> str:
    """The sentence for it."""
    texts = "1 text supports" if n == 1 else f"{n} texts support"
    can = f"{texts} a coverage of at most {int(1000 * supported_coverage(n)) / 1000:g}"
    return (
        f"{can}, and {coverage:g} needs {needed_texts(coverage)}: add texts, or ask for less with"
        " --coverage."
    )


def find_labels(shares: NDArray[Any], labels: Sequence[str], least: float) -> list[tuple[str, ...]]:
    """The set of every text. shares (text, class)"""
    return [tuple(compress(labels, is_in)) for is_in in (shares >= least).tolist()]


def _rank(n: int, coverage: float) -> int:
    return ceil((n + 1) * _exactly(coverage))


def _exactly(coverage: float) -> Fraction:
    """0.9 as nine tenths: the nearest double is a little more, and would cost a rank."""
    return Fraction(repr(float(coverage)))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
