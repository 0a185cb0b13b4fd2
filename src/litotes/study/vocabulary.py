"""The `[[coverage]]` entries of a study: which frequent pieces corpora share, beside the paper's
figure 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from litotes.data.coverage import Coverage, coverage, parts_of, pieces
from litotes.encoders.pretrained import load_tokenizer
from litotes.study.job import corpus_of
from litotes.study.paper import printed_coverage
from litotes.study.plan import CoverageSettings, Study
from litotes.study.setup import base_recipe

CLOSE = 0.03
"""A deviation that a slightly other copy of a corpus may make; docs/results/coverage.md has
examples.
"""

Shares = Mapping[tuple[str, str], float]
Groups = tuple[str, str]


@dataclass(frozen=True)
class Vocabulary:
    """A coverage entry with its result and the paper's shares, {(of, among): share}, for the parts
    that have the same names.
    """

    settings: CoverageSettings
    coverage: Coverage
    paper: Shares

    def as_json(self) -> dict[str, Any]:
        beside = [
            {"of": of, "among": among, "share": self.coverage.share(of, among), "paper": share}
            for (of, among), share in self.paper.items()
        ]
        return {
            "name": self.settings.name,
            **self.coverage.as_json(),
            "beside": beside,
            "words": list(vocabulary_words(self)),
        }


def vocabularies(study: Study) -> tuple[Vocabulary, ...]:
    """All entries, counted in the training texts, in pieces of the encoder that the runs share."""
    if not study.settings.coverage:
        return ()
    counted = pieces(load_tokenizer(base_recipe(study).model.encoder).written)
    found = []
    for entry in study.settings.coverage:
        corpora = [
            corpus_of(study.settings.sources.get(name, name)).where(split="train")
            for name in entry.data
        ]
        result = coverage([part for corpus in corpora for part in parts_of(corpus)], by=counted)
        found.append(
            Vocabulary(entry, result, printed_coverage(result.names) if entry.figure else {})
        )
    return tuple(found)


def vocabulary_words(vocabulary: Vocabulary) -> Iterator[str]:
    """The closest and the furthest parts, the deviation from the paper by group, and rows that look
    exchanged.
    """
    yield from _extremes(vocabulary.coverage)
    yield from vocabulary.coverage.notes()
    by_group = deviations(vocabulary)
    if not by_group:
        return
    close = [groups for groups, deviation in by_group.items() if deviation <= CLOSE]
    figure = f"Beside the paper's figure {vocabulary.settings.figure}"
    yield f"{figure}: {len(close)} of {len(by_group)} groups of shares agree to within {CLOSE}."
    largest = ", ".join(
        f"{_arrow(groups)} {deviation:.3f}" for groups, deviation in by_group.items()
    )
    yield f"Largest deviation by group: {largest}."
    for of, (first, second), printed, swapped in exchanges(vocabulary):
        yield (
            f"The paper's shares of {of} in {first} and in {second} look exchanged: as printed they"
            f" deviate from ours by up to {printed:.3f}, with the two groups exchanged by up to"
            f" {swapped:.3f}."
        )


def deviations(vocabulary: Vocabulary) -> dict[Groups, float]:
    """The largest deviation from the paper by (group of, group among)."""
    largest: dict[Groups, float] = {}
    names = _groups(vocabulary.coverage)
    for (of, among), share in vocabulary.paper.items():
        groups = names[of], names[among]
        largest[groups] = max(
            largest.get(groups, 0.0), abs(vocabulary.coverage.share(of, among) - share)
        )
    return largest


def exchanges(vocabulary: Vocabulary) -> Iterator[tuple[str, tuple[str, str], float, float]]:
    """Rows whose two groups of columns fit ours better exchanged: (of, groups, largest deviation as
    printed, exchanged).

    Better: less than half of the deviation, in the worst of all shares.
    """
    groups = _groups(vocabulary.coverage)
    for of in dict.fromkeys(of for of, _ in vocabulary.paper):
        row = {
            among: share for (of_here, among), share in vocabulary.paper.items() if of_here == of
        }
        among_groups = tuple(dict.fromkeys(groups[among] for among in row))
        if len(among_groups) != 2:
            continue
        swapped = {
            _in_group(among, groups[among], among_groups): share for among, share in row.items()
        }
        if swapped.keys() != row.keys():
            continue
        ours = {among: vocabulary.coverage.share(of, among) for among in row}
        as_printed = max(abs(ours[among] - row[among]) for among in row)
        exchanged = max(abs(ours[among] - swapped[among]) for among in row)
        if exchanged < as_printed / 2:
            yield of, (among_groups[0], among_groups[1]), as_printed, exchanged


def _in_group(name: str, own: str, both: tuple[str, ...]) -> str:
    """The same variety in the other group: en-AU Google sentiment → en-AU Reddit sentiment."""
    other = both[1] if own == both[0] else both[0]
    return f"{name.removesuffix(own)}{other}"


def _groups(result: Coverage) -> dict[str, str]:
    return dict(zip(result.names, result.groups, strict=True))


def _arrow(groups: Groups) -> str:
    return groups[0] if groups[0] == groups[1] else f"{groups[0]} in {groups[1]}"


def _extremes(result: Coverage) -> Iterator[str]:
    """Between parts of the same task: under another task they may hold the same texts."""
    parts = list(zip(result.names, result.groups, strict=True))
    shares = {
        (of, among): result.share(of, among)
        for place, (of, own) in enumerate(parts)
        for among, other in parts[place + 1 :]
        if own.rpartition(" ")[2] == other.rpartition(" ")[2]
    }
    if shares:
        most, least = (
            max(shares, key=lambda pair: shares[pair]),
            min(shares, key=lambda pair: shares[pair]),
        )
        yield (
            f"Of {len(result.names)} parts {most[0]} and {most[1]} share most of their"
            f" {result.top:,} most frequent {result.by} ({shares[most]:.3f}), {least[0]} and"
            f" {least[1]} fewest ({shares[least]:.3f})."
        )
