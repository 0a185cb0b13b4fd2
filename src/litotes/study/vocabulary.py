"""The `[[coverage]]` entries of a study: which frequent pieces corpora share, and how far that is
from published shares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from litotes.data.coverage import Coverage, Part, coverage, parts_of, pieces
from litotes.encoder.pretrained import load_tokenizer
from litotes.study.plan import CoverageSettings, Study
from litotes.study.runs import load_once
from litotes.study.setup import base_recipe

CLOSE = 0.03
"""A deviation that a slightly different copy of a corpus may make; docs/results/coverage.md has
examples.
"""

Shares = Mapping[tuple[str, str], float]
"""By (of, among)."""
Groups = tuple[str, str]
"""The group `of` and the group `among`."""


@dataclass(frozen=True)
class Vocabulary:
    """A coverage entry with its result, and published shares for the parts of the same names."""

    settings: CoverageSettings
    coverage: Coverage
    published: Shares

    def as_json(self) -> dict[str, Any]:
        compared = []
        for (of, among), share in self.published.items():
            ours = self.coverage.share(of, among)
            compared.append({"of": of, "among": among, "share": ours, "paper": share})
        return {
            "name": self.settings.name,
            **self.coverage.as_json(),
            "beside": compared,
            "words": list(vocabulary_sentences(self)),
        }


@dataclass(frozen=True)
class Exchange:
    """A published row whose two groups of columns fit ours better when exchanged.

    as_printed, exchanged: the largest deviation from ours.
    """

    of: str
    groups: Groups
    as_printed: float
    exchanged: float


def count_vocabularies(study: Study) -> tuple[Vocabulary, ...]:
    """All entries, counted in the training texts, in pieces of the encoder that the runs share."""
    if not study.settings.coverage:
        return ()
    by = pieces(load_tokenizer(base_recipe(study).model.encoder).piece_strings)
    found = []
    for entry in study.settings.coverage:
        result = coverage(_training_parts(entry, study), by=by)
        shares: Shares = {}
        if entry.figure is not None and study.published is not None:
            shares = study.published.shares_for(result.names)
        found.append(Vocabulary(entry, result, shares))
    return tuple(found)


def _training_parts(entry: CoverageSettings, study: Study) -> list[Part]:
    parts: list[Part] = []
    for name in entry.data:
        corpus = load_once(study.settings.sources.get(name, name))
        parts += parts_of(corpus.where(split="train"))
    return parts


def vocabulary_sentences(vocabulary: Vocabulary) -> Iterator[str]:
    """The closest and the furthest parts, the deviation from published shares by group, and rows
    that look exchanged.
    """
    yield from _extremes(vocabulary.coverage)
    yield from vocabulary.coverage.notes()
    by_group = deviations(vocabulary)
    if not by_group:
        return
    n_close = sum(deviation <= CLOSE for deviation in by_group.values())
    figure = f"Beside the paper's figure {vocabulary.settings.figure}"
    yield f"{figure}: {n_close} of {len(by_group)} groups of shares agree to within {CLOSE}."
    largest = [f"{_arrow(groups)} {deviation:.3f}" for groups, deviation in by_group.items()]
    yield f"Largest deviation by group: {', '.join(largest)}."
    for row in exchanges(vocabulary):
        yield (
            f"The paper's shares of {row.of} in {row.groups[0]} and in {row.groups[1]} look"
            f" exchanged: as printed they deviate from ours by up to {row.as_printed:.3f}, with the"
            f" two groups exchanged by up to {row.exchanged:.3f}."
        )


def deviations(vocabulary: Vocabulary) -> dict[Groups, float]:
    """The largest deviation from the published shares, by groups."""
    largest: dict[Groups, float] = {}
    names = _groups(vocabulary.coverage)
    for (of, among), share in vocabulary.published.items():
        groups = names[of], names[among]
        deviation = abs(vocabulary.coverage.share(of, among) - share)
        largest[groups] = max(largest.get(groups, 0.0), deviation)
    return largest


def exchanges(vocabulary: Vocabulary) -> Iterator[Exchange]:
    """Published rows whose two groups of columns fit ours better when exchanged.

    Better: less than half of the deviation, in the worst of all shares.
    """
    rows: dict[str, dict[str, float]] = {}
    for (of, among), share in vocabulary.published.items():
        rows.setdefault(of, {})[among] = share
    for of, row in rows.items():
        exchange = _exchange(of, row, vocabulary.coverage)
        if exchange is not None and exchange.exchanged < exchange.as_printed / 2:
            yield exchange


def _exchange(of: str, row: Mapping[str, float], ours: Coverage) -> Exchange | None:
    """What exchanging its two groups does to a row, {among: share}; None where it cannot."""
    groups = _groups(ours)
    both = tuple(dict.fromkeys(groups[among] for among in row))
    if len(both) != 2:
        return None
    swapped = {_other_group(among, groups[among], both): share for among, share in row.items()}
    if swapped.keys() != row.keys():
        return None
    as_printed = max(abs(ours.share(of, among) - row[among]) for among in row)
    exchanged = max(abs(ours.share(of, among) - swapped[among]) for among in row)
    return Exchange(of, both, as_printed, exchanged)


def _other_group(name: str, own: str, both: Groups) -> str:
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
    shares = {}
    for place, (of, own) in enumerate(parts):
        for among, other in parts[place + 1 :]:
            if own.rpartition(" ")[2] == other.rpartition(" ")[2]:
                shares[of, among] = result.share(of, among)
    if not shares:
        return
    most = max(shares, key=lambda pair: shares[pair])
    least = min(shares, key=lambda pair: shares[pair])
    yield (
        f"Of {len(result.names)} parts {most[0]} and {most[1]} share most of their"
        f" {result.top:,} most frequent {result.by} ({shares[most]:.3f}), {least[0]} and"
        f" {least[1]} fewest ({shares[least]:.3f})."
    )
