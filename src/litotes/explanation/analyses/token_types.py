"""token_types: what [CLS] weighs in the last layer.

Kovaleva et al. 2019, arXiv 1908.08593; Sun and Marasović 2021, arXiv 2105.08855, §3.2.

    weight(type) = mean over texts of  max_k A[CLS, k]

k goes over the first pieces of the words of that type, or the special pieces themselves. Texts
without a type do not count for it (figure 1 of Sun and Marasović). Also, for every layer, what all
other pieces give to [CLS] and to [SEP] (figures 5 and 6). Both for the weights A and for their
effective part A⊥, which may be below 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from litotes.encoder.tokenizer import ReadText
from litotes.encoder.walk import TextAttention
from litotes.explanation.analyses.analysis import (
    Analysis,
    Number,
    Result,
    Table,
    kinds_shown,
    named,
)
from litotes.explanation.analyses.drawing import (
    Box,
    Canvas,
    MapGroup,
    add_key,
    draw_series,
    in_rows,
    maps_figure,
)
from litotes.explanation.analyses.parts_of_speech import PartOfSpeech, is_installed, tag
from litotes.explanation.observation import KINDS, Observation

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
    difference: standard minus effective on the same texts, {type: weight}.
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

    def figure(self) -> Figure:
        """Draws what [CLS] gives to each type of piece, and what all others give to [CLS] and [SEP]
        (figures 1, 5 and 6 of the paper).
        """
        groups = []
        for name in SPECIAL:
            maps = {f"To {name}, {kind}": self.from_others[name][kind] for kind in self.kinds}
            groups.append(MapGroup(maps, "weight, mean over other pieces", low=0, high=1))
        top = _KEY - len(self.types) // -_ABREAST * _HEIGHT
        return maps_figure(groups, top=top, draw_above=self._draw_panels, least_width=_WIDTH)

    def _draw_panels(self, canvas: Canvas) -> None:
        """A panel for each type by attention head, all on one scale that holds every interval."""
        # (kind, type, attention_head)
        weights = np.array([self.from_first[kind] for kind in self.kinds], np.float64)
        widths = np.array([self.from_first_half_width[kind] for kind in self.kinds], np.float64)
        reach = np.nan_to_num(widths)
        low = min(0.0, np.nanmin(weights - reach))
        high = max(0.1, np.nanmax(weights + reach))
        margin = 0.05 * (high - low)
        boxes = in_rows(len(self.types), Box(0, _KEY, canvas.width, _HEIGHT), abreast=_ABREAST)
        for number, (name, box) in enumerate(zip(self.types, boxes, strict=True)):
            title, unit = f"{name} (n {self.n_with[name]})", "" if number % _ABREAST else "weight"
            ax = canvas.chart(box, title, x="attention head", y=unit)
            both = zip(weights[:, number], widths[:, number], strict=True)
            series = dict(zip(self.kinds, both, strict=True))
            draw_series(series, ax, joined=False, most_numbers=12, legend=False)
            ax.axhline(0, color="#BBBBBB", linewidth=0.8, zorder=0)
            ax.set_ylim(low - margin, high + margin)
        add_key(canvas.figure, ax, loc="upper center", bbox_to_anchor=(0.5, 1))


class TokenTypesAnalysis(Analysis):
    """What [CLS] weighs in the last layer: [CLS], [SEP], punctuation, nouns, pronouns, verbs."""

    @classmethod
    def missing_package(cls) -> str | None:
        if is_installed():
            return None
        return "needs the weights of a tagger: pip install 'litotes[analysis]'"

    def measure(self, observation: Observation) -> dict[str, Any]:
        places = places_by_type(observation.read)
        last, maps = observation.layers[-1], observation.maps
        from_first = {kind: self._from_first(last, maps[-1][kind], places) for kind in KINDS}
        from_others, over_layers, over_layers_difference = {}, {}, {}
        for name in SPECIAL:
            both = zip(observation.layers, maps, strict=True)
            weights = self.by_head(
                observation, [_from_others(view, one, places[name]) for view, one in both]
            )
            from_others[name] = weights
            over_layers[name] = {kind: table.nanmean() for kind, table in weights.items()}
            difference = weights["standard"] - weights["effective"]
            over_layers_difference[name] = difference.nanmean()
        by_type = {kind: given.nanmean(-1) for kind, given in from_first.items()}
        difference = (from_first["standard"] - from_first["effective"]).nanmean(-1)
        return {
            "from_first": from_first,
            "by_type": {kind: named(TYPES, given) for kind, given in by_type.items()},
            "difference": named(TYPES, difference),
            "from_others": from_others,
            "over_layers": over_layers,
            "over_layers_difference": over_layers_difference,
        }

    def _from_first(
        self, view: TextAttention, maps: Tensor, places: Mapping[str, Sequence[int]]
    ) -> Tensor:
        """The largest weight [CLS] gives to each type, NaN where it is not there.

        (type, attention_head)
        """
        given = maps[:, view.origin == 0].squeeze(1)  # (attention_head, key)
        found = torch.full((len(TYPES), self.shape[1]), nan, dtype=torch.float64)
        for row, name in zip(found, TYPES, strict=True):
            row[list(view.heads)] = _largest(given, _at(view, places[name])).double().cpu()
        return found

    def result(self) -> TokenTypes:
        n_with = {name: int(one.n) for name, one in self.means["by_type"]["standard"].items()}
        return self.means_as(TokenTypes, types=TYPES, n_with=n_with)


def _from_others(
    view: TextAttention, maps: Mapping[str, Tensor], places: Sequence[int]
) -> dict[str, Tensor]:
    """The mean over all other pieces of the largest weight they give to the pieces at `places`.

    {kind: (attention_head,)}
    """
    targets = _at(view, places)
    others = ~targets & (view.origin >= 0)  # a fused piece is not a piece of the text
    return {kind: _largest(weights[:, others], targets).mean(-1) for kind, weights in maps.items()}


def places_by_type(read: ReadText) -> dict[str, list[int]]:
    """Finds where in a text the pieces of every type stand: special pieces, and the first piece of
    every word.

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
    """Tells which pieces of a layer stand at these places of the text. (piece,)"""
    wanted = torch.tensor(places, dtype=view.origin.dtype, device=view.origin.device)
    return torch.isin(view.origin, wanted)


def _largest(weights: Tensor, keys: Tensor) -> Tensor:
    """The largest weight that falls on one of the keys, (…, key) → (…); NaN where there is none."""
    if keys.any():
        return weights[..., keys].amax(-1)
    return torch.full_like(weights[..., 0], nan)
