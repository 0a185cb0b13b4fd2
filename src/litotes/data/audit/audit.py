"""What in a corpus would spoil a score, worst first, each finding with what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from litotes.core.progress import Watch
from litotes.data.audit.balance import Length, empty_cells, imbalance, lengths, long_texts
from litotes.data.audit.finding import Finding, KeyedCorpus, with_keys
from litotes.data.audit.repeats import (
    exact_duplicates,
    group_leaks,
    label_conflicts,
    leaks,
    near_duplicate_pairs,
)
from litotes.data.corpus import Corpus, Count

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
    keyed = with_keys(corpus)
    findings: list[Finding] = []
    for n_done, check in enumerate(CHECKS, start=1):
        findings += check(keyed)
        if progress is not None:
            progress("audit", n_done, len(CHECKS), "")
    findings.sort(key=lambda finding: _SEVERITIES.index(finding.severity))
    return Audit(corpus.name, len(corpus), tuple(findings), corpus.counts(), lengths(corpus))
