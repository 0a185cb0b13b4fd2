"""patterns: how often a map shows each of five patterns.

Kovaleva et al. 2019, arXiv 1908.08593, §4.1; Sun and Marasović 2021, table 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from litotes.encoder.walk import TextAttention
from litotes.explanation.analyses.analysis import (
    Analysis,
    Number,
    Result,
    Table,
    half_widths,
    kinds_shown,
    named,
)
from litotes.explanation.analyses.drawing import (
    KIND_STYLES,
    Box,
    NamedMean,
    add_key,
    draw_series,
    in_rows,
    new_canvas,
    ranking_height,
)
from litotes.explanation.analyses.map_patterns import CLASSES, by_rules, classify
from litotes.explanation.observation import KINDS, Observation
from litotes.model.checkpoint import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEWEST_PIECES = 8
"""Of a map whose pattern can be told: the network has learned from no smaller ones."""

Shares = dict[str, Number]

_WIDTH, _TOP, _LAYERS = 9.6, 3.0, 2.3  # inches
_ABREAST = 3
_BAR = 0.36  # of the place of a pattern
_UNIT = "% of the maps"


@dataclass(frozen=True)
class PatternShares(Result):
    """Shares of all maps of a text, means over texts, {standard, effective: {pattern: share}}, as
    the network sees them.

    half_width: half of the 95 % interval over texts. by_layer: {kind: (layer, pattern)}, patterns
    in the order of `classes`.
    difference, difference_half_width: effective minus standard on the same texts, {pattern: share}.
    agreement: the share of maps on which written rules say the same as the network, {kind: share},
    on one map of every text.
    sure: the mean probability the network gives its answers, {kind: probability}.
    n_large: how many texts have a map of FEWEST_PIECES; smaller ones are not looked at.
    """

    name: ClassVar[str] = "patterns"
    fewest_pieces: ClassVar[int] = FEWEST_PIECES
    meanings: ClassVar[dict[str, str]] = CLASSES
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

    def highlights(self) -> tuple[str, ...]:
        """Picks the finding on whether the kinds differ, which stands after their shares; where
        they are one, its shares.
        """
        place = len(KINDS) if len(self.kinds) > 1 else 0
        return (self.findings()[place],)

    def told_apart(self) -> list[tuple[str, float, float]]:
        """The patterns whose share differs by more than its interval, with both."""
        return [
            (name, change, width)
            for name, change in self.difference.items()
            if (width := self.difference_half_width[name]) is not None
            and change is not None
            and abs(change) > width
        ]

    def figure(self) -> Figure:
        """Draws how often maps show each pattern, standard against effective, over all and by layer
        (figure 4 of the paper).
        """
        n_rows = -(-len(self.classes) // _ABREAST)
        canvas = new_canvas(_WIDTH, _TOP + n_rows * _LAYERS)
        self._draw_shares(canvas.chart(Box(0, 0, 0.6 * _WIDTH, _TOP), y=_UNIT))
        if len(self.kinds) > 1:
            differences = [
                NamedMean.around(name, value, self.difference_half_width[name], scale=100)
                for name, value in self.difference.items()
                if value is not None
            ]
            height = min(_TOP, ranking_height(len(differences)) + 0.6)
            box = Box(0.6 * _WIDTH, 0, 0.4 * _WIDTH, height)
            unit = "points, with 95 % interval"
            canvas.ranking(box, "Effective less standard", differences, x=unit, zero=True)
        boxes = in_rows(len(self.classes), Box(0, _TOP, _WIDTH, _LAYERS), abreast=_ABREAST)
        for place, (name, box) in enumerate(zip(self.classes, boxes, strict=True)):
            # a line for each kind over the layers; one scale for all patterns
            series = {}
            for kind in self.kinds:
                shares = 100 * np.array(self.by_layer[kind], np.float64)[:, place]
                series[kind] = shares.tolist(), [None] * len(shares)
            ax = canvas.chart(box, name, x="layer", y=_UNIT)
            draw_series(series, ax, most_numbers=12, legend=False)
            ax.set_ylim(-4, 104)
        return canvas.figure

    def _draw_shares(self, ax: Axes) -> None:
        places = np.arange(len(self.classes))
        for number, kind in enumerate(self.kinds):
            style, shift = KIND_STYLES[kind], (number - (len(self.kinds) - 1) / 2) * _BAR
            shares = [100 * (self.shares[kind][name] or 0.0) for name in self.classes]
            widths = [100 * (self.half_width[kind][name] or 0.0) for name in self.classes]
            look: dict[str, Any] = {"color": style.fill, "edgecolor": style.colour}
            look |= {"ecolor": "#222222", "capsize": 2, "error_kw": {"elinewidth": 1.2}}
            hatch = None if style.filled else "////"
            ax.bar(places + shift, shares, _BAR, yerr=widths, hatch=hatch, label=kind, **look)
        ax.set_xticks(places, [name.replace("+", "\n+ ") for name in self.classes])
        ax.set_ylim(bottom=0)
        add_key(ax, ax, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)


class PatternsAnalysis(Analysis):
    """Which of five patterns the maps show (vertical, diagonal, both, block, heterogeneous)."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.n_large = 0

    def measure(self, observation: Observation) -> dict[str, Any]:
        """Counts every map alike; a text is the unit of the intervals, for its maps are not
        independent.
        """
        views = observation.layers
        large = [n for n, view in enumerate(views) if len(view.origin) >= FEWEST_PIECES]
        if not large:
            return {}
        self.n_large += 1
        names = ("by_layer", "shares", "sure", "agreement")
        found: dict[str, dict[str, Any]] = {name: {} for name in names}
        for kind in KINDS:
            maps = {layer: observation.maps[layer][kind] for layer in large}
            # {layer: (attention_head, class)}
            seen = {layer: classify(maps[layer]).probabilities.double().cpu() for layer in large}
            counts = torch.zeros(self.shape[0], len(CLASSES), dtype=torch.float64)
            for layer, probabilities in seen.items():
                counts[layer] = torch.bincount(probabilities.argmax(-1), minlength=len(CLASSES))
            # NaN without a large map
            found["by_layer"][kind] = counts / counts.sum(-1, keepdim=True)
            found["shares"][kind] = counts.sum(0) / counts.sum()
            found["sure"][kind] = torch.cat(list(seen.values())).amax(-1).mean()
            found["agreement"][kind] = _agree(observation, maps, seen, large)
        shares = found["shares"]
        difference = shares["effective"] - shares["standard"]
        by_name = {kind: named(CLASSES, values) for kind, values in shares.items()}
        return {**found, "shares": by_name, "difference": named(CLASSES, difference)}

    def result(self) -> PatternShares:
        shares = half_widths(self.means["shares"]) if self.n_large else None
        return self.means_as(
            PatternShares, n_large=self.n_large, classes=tuple(CLASSES), half_width=shares
        )


def _agree(
    observation: Observation,
    maps: Mapping[int, Tensor],
    seen: Mapping[int, Tensor],
    large: Sequence[int],
) -> bool:
    """Tells whether written rules say the same as the network. They are slow: they are asked about
    one map of the text, which depends on the text alone.
    """
    place = sum(observation.read.pieces.ids)
    layer = large[place % len(large)]
    view = observation.layers[layer]
    head = (place // len(large)) % len(view.heads)
    ruled = by_rules(maps[layer][head].double().cpu(), segments_of(view, observation))
    return ruled == tuple(CLASSES)[int(seen[layer][head].argmax())]


def segments_of(view: TextAttention, observation: Observation) -> Tensor | None:
    """Tells which text of a pair each piece still there belongs to, (piece,); None where there is
    no pair. A fused piece goes with the first.
    """
    if not any(word.is_pair for word in observation.read.words):
        return None
    # RoBERTa's type ids do not tell the two apart
    first_of_pair = min(word.pieces[0] for word in observation.read.words if word.is_pair)
    return (view.origin.cpu() >= first_of_pair).long()
