"""patterns: how often a map shows each of five patterns.

Kovaleva et al. 2019, arXiv 1908.08593, §4.1; Sun and Marasović 2021, table 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from litotes.encoder.walk import TextAttention
from litotes.explanation.analyses.analysis import (
    Analysis,
    Number,
    Result,
    RunningMean,
    Table,
    by_kind,
    half_widths,
    kinds_shown,
    means,
)
from litotes.explanation.analyses.drawing import (
    KIND_STYLES,
    Box,
    NamedMean,
    Series,
    draw_ranking,
    draw_series,
    in_rows,
    label_width,
    legend_above,
    new_canvas,
    ranking_height,
    remove_frame,
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
        """Whether the kinds differ, which stands after their shares; where they are one, its
        shares.
        """
        place = len(KINDS) if len(self.kinds) > 1 else 0
        return (self.findings()[place],)

    def told_apart(self) -> list[tuple[str, float, float]]:
        """The patterns whose share differs by more than its interval, with both."""
        found = []
        for name, change in self.difference.items():
            width = self.difference_half_width[name]
            if change is not None and abs(change) > (width or math.inf):
                found.append((name, change, width or 0.0))
        return found

    def figure(self) -> Figure:
        """How often maps show each pattern, standard against effective, over all and by layer
        (figure 4 of the paper).
        """
        n_rows = -(-len(self.classes) // _ABREAST)
        canvas = new_canvas(_WIDTH, _TOP + n_rows * _LAYERS)
        self._draw_shares(canvas.chart(Box(0, 0, 0.6 * _WIDTH, _TOP)))
        if len(self.kinds) > 1:
            differences = []
            for name, value in self.difference.items():
                width = self.difference_half_width[name]
                if value is not None:
                    ends = None if width is None else (100 * (value - width), 100 * (value + width))
                    differences.append(NamedMean(name, 100 * value, ends))
            height = min(_TOP, ranking_height(len(differences)) + 0.6)
            box = Box(0.6 * _WIDTH, 0, 0.4 * _WIDTH, height)
            ax = canvas.chart(box, left=label_width(differences))
            draw_ranking(differences, ax, has_zero_line=True)
            ax.set_title("Effective less standard", fontsize=9)
            ax.set_xlabel("points, with 95 % interval", fontsize=8)
        boxes = in_rows(len(self.classes), Box(0, _TOP, _WIDTH, _LAYERS), abreast=_ABREAST)
        for place, box in enumerate(boxes):
            self._draw_layers(place, canvas.chart(box))
        return canvas.figure

    def _draw_shares(self, ax: Axes) -> None:
        for number, kind in enumerate(self.kinds):
            style, shift = KIND_STYLES[kind], (number - (len(self.kinds) - 1) / 2) * _BAR
            places = [place + shift for place in range(len(self.classes))]
            shares = [100 * (self.shares[kind][name] or 0.0) for name in self.classes]
            widths = [100 * (self.half_width[kind][name] or 0.0) for name in self.classes]
            look: dict[str, Any] = {"color": style.fill, "edgecolor": style.colour}
            look |= {"ecolor": "#222222", "capsize": 2, "error_kw": {"elinewidth": 1.2}}
            hatch = None if style.filled else "////"
            ax.bar(places, shares, _BAR, yerr=widths, hatch=hatch, label=kind, **look)
        names = [name.replace("+", "\n+ ") for name in self.classes]
        ax.set_xticks(range(len(names)), names)
        ax.set_ylim(bottom=0)
        ax.set_ylabel("% of the maps", fontsize=8)
        remove_frame(ax)
        legend_above(ax)

    def _draw_layers(self, place: int, ax: Axes) -> None:
        """A line for each kind over the layers; one scale for all patterns."""
        series = {}
        for kind in self.kinds:
            shares = [layer[place] for layer in self.by_layer[kind]]
            values = [None if share is None else 100 * share for share in shares]
            series[kind] = Series(values, [None] * len(shares), KIND_STYLES[kind])
        draw_series(series, ax, most_numbers=12)
        ax.set_ylim(-4, 104)
        ax.set_title(self.classes[place], fontsize=9)
        ax.set_xlabel("layer", fontsize=8)
        ax.set_ylabel("% of the maps", fontsize=8)


class PatternsAnalysis(Analysis):
    """Which of five patterns the maps show (vertical, diagonal, both, block, heterogeneous)."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.by_layer = by_kind(self.shape[0], len(CLASSES))
        self.shares, self.difference = by_kind(len(CLASSES)), RunningMean(len(CLASSES))
        self.agreement, self.sure = by_kind(), by_kind()
        self.n_large = 0

    def add(self, observation: Observation) -> None:
        """Every map counts alike; a text is the unit of the intervals, for its maps are not
        independent.
        """
        self.n_texts += 1
        views = observation.layers
        large = [n for n, view in enumerate(views) if len(view.origin) >= FEWEST_PIECES]
        if not large:
            return
        self.n_large += 1
        shares = {}
        for kind, maps in observation.maps.items():
            shares[kind] = self._add(kind, observation, maps, large)
        self.difference.add(shares["effective"] - shares["standard"])

    def _add(
        self, kind: str, observation: Observation, maps: Sequence[Tensor], large: Sequence[int]
    ) -> Tensor:
        """The shares of the patterns among the maps of one kind. (class,)

        large: the layers that see enough pieces for a pattern.
        """
        # {layer: (attention_head, class)}
        found = {layer: classify(maps[layer]).probabilities.double().cpu() for layer in large}
        counts = torch.zeros(self.shape[0], len(CLASSES), dtype=torch.float64)
        for layer, probabilities in found.items():
            counts[layer] = torch.bincount(probabilities.argmax(-1), minlength=len(CLASSES))
        self.by_layer[kind].add(counts / counts.sum(-1, keepdim=True))  # NaN without a large map
        shares = counts.sum(0) / counts.sum()
        self.shares[kind].add(shares)
        self.sure[kind].add(torch.cat(list(found.values())).amax(-1).mean())
        # Rules are slow: they are asked about one map of the text, which depends on the text alone.
        place = sum(observation.read.pieces.ids)
        layer = large[place % len(large)]
        head = (place // len(large)) % len(observation.layers[layer].heads)
        segments = segments_of(observation.layers[layer], observation)
        answer = tuple(CLASSES)[int(found[layer][head].argmax())]
        ruled = by_rules(maps[layer][head].double().cpu(), segments)
        self.agreement[kind].add(float(ruled == answer))
        return shares

    def result(self) -> PatternShares:
        names = tuple(CLASSES)
        return PatternShares(
            n_texts=self.n_texts,
            n_large=self.n_large,
            classes=names,
            shares=means(self.shares, names),
            half_width=half_widths(self.shares, names),
            by_layer=means(self.by_layer),
            difference=means(self.difference, names),
            difference_half_width=half_widths(self.difference, names),
            agreement=means(self.agreement),
            sure=means(self.sure),
        )


def segments_of(view: TextAttention, observation: Observation) -> Tensor | None:
    """Which text of a pair each piece still there belongs to, (piece,); None where there is no
    pair. A fused piece goes with the first.
    """
    if not any(word.is_pair for word in observation.read.words):
        return None
    # RoBERTa's type ids do not tell the two apart
    first_of_pair = min(word.pieces[0] for word in observation.read.words if word.is_pair)
    return (view.origin.cpu() >= first_of_pair).long()
