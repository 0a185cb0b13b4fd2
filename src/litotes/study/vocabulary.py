"""The `[[coverage]]` entries of a study: which frequent pieces corpora share, and how far that is
from published shares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from litotes.core.pages import render_paragraphs
from litotes.core.registry import grouped
from litotes.data.coverage import Coverage, coverage, parts_of, pieces
from litotes.encoder.pretrained import load_tokenizer
from litotes.study.plan import CoverageSettings, Study, base_recipe
from litotes.study.runs import load_once

CLOSE = 0.03
"""A deviation that a slightly different copy of a corpus may make; docs/results/coverage.md has
examples.
"""

Shares = Mapping[tuple[str, str], float]
"""By (of, among)."""
Groups = tuple[str, str]
"""The group `of` and the group `among`."""


@dataclass(frozen=True)
class Exchange:
    """A published row whose two groups of columns fit ours better when exchanged.

    as_printed, exchanged: the largest deviation from ours.
    """

    of: str
    groups: Groups
    as_printed: float
    exchanged: float


@dataclass(frozen=True)
class Vocabulary:
    """A coverage entry with its result, and published shares for the parts of the same names."""

    settings: CoverageSettings
    coverage: Coverage
    published: Shares

    @property
    def groups(self) -> dict[str, str]:
        """The group of each part."""
        return dict(zip(self.coverage.names, self.coverage.groups, strict=True))

    def deviations(self) -> dict[Groups, float]:
        """The largest deviation from the published shares, by groups."""
        groups, found = self.groups, dict[Groups, float]()
        for pair, share in self.published.items():
            key = groups[pair[0]], groups[pair[1]]
            found[key] = max(found.get(key, 0.0), abs(self.coverage.share(*pair) - share))
        return found

    def exchanges(self) -> Iterator[Exchange]:
        """Finds published rows whose two groups of columns fit ours better when exchanged: with
        less than half of the deviation, in the worst of all shares.
        """
        groups = self.groups
        for of, row in grouped(self.published, lambda pair: pair[0]).items():
            both = tuple(dict.fromkeys(groups[among] for _, among in row))
            if len(both) != 2:
                continue
            other = {both[0]: both[1], both[1]: both[0]}
            # the same variety in the other group: en-AU Google sentiment → en-AU Reddit sentiment
            partners = [(of, one.removesuffix(groups[one]) + other[groups[one]]) for _, one in row]
            if set(partners) == set(row):
                ours = [self.coverage.share(*pair) for pair in row]
                as_printed, exchanged = (
                    max(
                        abs(share - self.published[pair])
                        for share, pair in zip(ours, pairs, strict=True)
                    )
                    for pairs in (row, partners)
                )
                if exchanged < as_printed / 2:
                    yield Exchange(of, (both[0], both[1]), as_printed, exchanged)

    def extremes(self) -> tuple[tuple[Groups, float], tuple[Groups, float]] | None:
        """The two parts that share most and the two that share fewest, of those of the same task:
        under another task they may hold the same texts.
        """
        shares = {
            (of, among): self.coverage.share(of, among)
            for (of, own), (among, other) in combinations(self.groups.items(), 2)
            if own.rpartition(" ")[2] == other.rpartition(" ")[2]
        }
        if not shares:
            return None
        most, least = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
        return (most, shares[most]), (least, shares[least])

    @property
    def words(self) -> tuple[str, ...]:
        """The parts that share most and fewest, and the deviation from published shares."""
        return render_paragraphs(
            "study/words.txt", "vocabulary", one=self, extremes=self.extremes(), close=CLOSE
        )

    def as_json(self) -> dict[str, Any]:
        beside = [
            {"of": pair[0], "among": pair[1], "share": self.coverage.share(*pair), "paper": share}
            for pair, share in self.published.items()
        ]
        own = {"name": self.settings.name, **self.coverage.as_json()}
        return {**own, "beside": beside, "words": list(self.words)}


def count_vocabularies(study: Study) -> tuple[Vocabulary, ...]:
    """All entries, counted in the training texts, in pieces of the encoder that the runs share."""
    if not study.settings.coverage:
        return ()
    by = pieces(load_tokenizer(base_recipe(study).model.encoder).piece_strings)
    found = []
    for entry in study.settings.coverage:
        corpora = [load_once(study.settings.sources.get(name, name)) for name in entry.data]
        parts = [part for one in corpora for part in parts_of(one.where(split="train"))]
        result = coverage(parts, by=by)
        shares: Shares = {}
        if entry.figure is not None and study.published is not None:
            shares = study.published.shares_for(result.names)
        found.append(Vocabulary(entry, result, shares))
    return tuple(found)
