"""patterns: how often a map shows each of five patterns.

Kovaleva et al. 2019, arXiv 1908.08593, §4.1; Sun and Marasović 2021, table 2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from litotes.core.numbers import format_signed
from litotes.encoder.attention.observer import TextAttention
from litotes.explanation.analyses.analysis import Measure, Result
from litotes.explanation.analyses.kinds import kinds_shown
from litotes.explanation.analyses.means import (
    Number,
    RunningMean,
    Table,
    half_widths,
    means,
    number,
    numbers,
    tables,
)
from litotes.explanation.analyses.patterns.classes import CLASSES
from litotes.explanation.analyses.patterns.network import classify
from litotes.explanation.analyses.patterns.rules import by_rules
from litotes.explanation.observation import KINDS, Observation
from litotes.model.checkpoint import Model

FEWEST_PIECES = 8
"""Of a map whose pattern can be told: the network has learned from no smaller ones."""

Shares = dict[str, Number]


@dataclass(frozen=True)
class PatternShares(Result):
    """Shares of all maps of a text, means over texts, {standard, effective: {pattern: share}}, as
    the network sees them.

    half_width: half of the 95 % interval over texts. by_layer: {kind: (layer, pattern)}, patterns
    in the order of `classes`.
    difference, difference_half_width: effective less standard on the same texts, {pattern: share}.
    agreement: the share of maps on which written rules say the same as the network, {kind: share},
    on one map of every text.
    sure: the mean probability the network gives its answers, {kind: probability}.
    n_large: how many texts have a map of FEWEST_PIECES; smaller ones are not looked at.
    """

    n_large: int
    classes: tuple[str, ...]
    shares: dict[str, Shares]
    half_width: dict[str, Shares]
    by_layer: dict[str, Table]
    difference: Shares
    difference_half_width: Shares
    agreement: Shares
    sure: Shares

    @property
    def kinds(self) -> tuple[str, ...]:
        """One where standard and effective maps are the same."""
        return kinds_shown({kind: self.shares[kind].values() for kind in KINDS})

    def nothing_to_say(self) -> str | None:
        if self.n_large:
            return None
        return f"says nothing of texts so short: a pattern needs {FEWEST_PIECES} pieces"

    def findings(self) -> tuple[str, ...]:
        kinds = self.kinds
        some = ""
        if self.n_large < self.n_texts:
            some = (
                f" of {FEWEST_PIECES} pieces and more ({self.n_large:,} of {self.n_texts:,} texts)"
            )
        shares = {kind: _list_shares(self.shares[kind]) for kind in kinds}
        said = [f"{kind.capitalize()} maps{some}: {listed}." for kind, listed in shares.items()]
        moved = self._differences()
        if len(kinds) == 1:
            said.append("Standard and effective maps are the same: the texts are short.")
        elif moved:
            said.append(
                f"Against standard attention, effective attention shows {', '.join(moved)}."
            )
        else:
            said.append("No pattern is told apart between standard and effective attention.")
        agreed = 100 * (self.agreement["standard"] or 0)
        said.append(f"Written rules agree with the network on {agreed:.0f} % of the standard maps.")
        return tuple(said)

    def _differences(self) -> list[str]:
        """The patterns whose share differs by more than its interval."""
        said = []
        for name, change in self.difference.items():
            width = self.difference_half_width[name]
            if change is not None and abs(change) > (width or math.inf):
                more = "more" if change > 0 else "fewer"
                points = format_signed(100 * change, 1)
                said.append(f"{more} {name} ({points} ± {100 * (width or 0):.1f} points)")
        return said


class PatternsMeasure(Measure):
    """Which of five patterns the maps show (vertical, diagonal, both, block, heterogeneous)."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.by_layer = {kind: RunningMean(self.n_layers, len(CLASSES)) for kind in KINDS}
        self.shares = {kind: RunningMean(len(CLASSES)) for kind in KINDS}
        self.difference = RunningMean(len(CLASSES))
        self.agreement = {kind: RunningMean() for kind in KINDS}
        self.sure = {kind: RunningMean() for kind in KINDS}
        self.n_texts = self.n_large = 0

    def add(self, observation: Observation) -> None:
        """Every map counts alike; a text is the unit of the intervals, for its maps are not
        independent.
        """
        self.n_texts += 1
        if not _large_layers(observation):
            return
        self.n_large += 1
        shares = {}
        for kind, maps in observation.maps.items():
            shares[kind] = self._add(kind, observation, maps)
        self.difference.add(shares["effective"] - shares["standard"])

    def _add(self, kind: str, observation: Observation, maps: Sequence[Tensor]) -> Tensor:
        """The shares of the patterns among the maps of one kind. (class,)"""
        # {layer: (attention_head, class)}
        probabilities = {}
        for layer in _large_layers(observation):
            probabilities[layer] = classify(maps[layer]).probabilities.double().cpu()
        answers = {layer: found.argmax(-1) for layer, found in probabilities.items()}
        counts = torch.zeros(self.n_layers, len(CLASSES), dtype=torch.float64)
        for layer, found in answers.items():
            counts[layer] = torch.bincount(found, minlength=len(CLASSES))
        self.by_layer[kind].add(counts / counts.sum(-1, keepdim=True))  # NaN without a large map
        shares = counts.sum(0) / counts.sum()
        self.shares[kind].add(shares)
        self.sure[kind].add(torch.cat(list(probabilities.values())).amax(-1).mean())
        self._add_agreement(kind, observation, maps, answers)
        return shares

    def _add_agreement(
        self,
        kind: str,
        observation: Observation,
        maps: Sequence[Tensor],
        answers: Mapping[int, Tensor],
    ) -> None:
        """Whether written rules say the same as the network, on one map of the text."""
        layer, head = self._spot_check(observation)
        segments = segments_of(observation.layers[layer], observation)
        answer = tuple(CLASSES)[int(answers[layer][head])]
        ruled = by_rules(maps[layer][head].double().cpu(), segments)
        self.agreement[kind].add(float(ruled == answer))

    def _spot_check(self, observation: Observation) -> tuple[int, int]:
        """One map of the text, chosen by its pieces: rules are slow, and one a text is enough."""
        place = sum(observation.read.pieces.ids)  # any number that depends on the text alone
        layers = _large_layers(observation)
        layer = layers[place % len(layers)]
        return layer, (place // len(layers)) % len(observation.layers[layer].heads)

    def result(self) -> PatternShares:
        return PatternShares(
            n_texts=self.n_texts,
            n_large=self.n_large,
            classes=tuple(CLASSES),
            shares=_by_kind_and_class(means(self.shares)),
            half_width=_by_kind_and_class(half_widths(self.shares)),
            by_layer=tables(means(self.by_layer)),
            difference=_by_class(self.difference.mean),
            difference_half_width=_by_class(self.difference.half_width),
            agreement={kind: number(running.mean) for kind, running in self.agreement.items()},
            sure={kind: number(running.mean) for kind, running in self.sure.items()},
        )


def _large_layers(observation: Observation) -> list[int]:
    """The layers that see enough pieces for a pattern."""
    layers = []
    for layer, view in enumerate(observation.layers):
        if len(view.origin) >= FEWEST_PIECES:
            layers.append(layer)
    return layers


def segments_of(view: TextAttention, observation: Observation) -> Tensor | None:
    """Which text of a pair each piece still there belongs to, (piece,); None where there is no
    pair. A fused piece goes with the first.
    """
    if not any(word.is_pair for word in observation.read.words):
        return None
    # RoBERTa's type ids do not tell the two apart
    first_of_pair = min(word.pieces[0] for word in observation.read.words if word.is_pair)
    return (view.origin.cpu() >= first_of_pair).long()


def _by_class(values: Tensor) -> Shares:
    return dict(zip(CLASSES, numbers(values), strict=True))


def _by_kind_and_class(values: Mapping[str, Tensor]) -> dict[str, Shares]:
    return {kind: _by_class(one) for kind, one in values.items()}


def _list_shares(shares: Shares) -> str:
    return ", ".join(f"{name} {100 * (share or 0):.1f} %" for name, share in shares.items())
