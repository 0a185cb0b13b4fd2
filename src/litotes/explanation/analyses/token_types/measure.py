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

import torch
from torch import Tensor

from litotes.encoder.attention.observer import TextAttention
from litotes.encoder.tokenizer import ReadText
from litotes.explanation.analyses.analysis import Measure
from litotes.explanation.analyses.heads_table import by_head
from litotes.explanation.analyses.means import (
    RunningMean,
    half_widths,
    means,
    number,
    numbers,
    tables,
)
from litotes.explanation.analyses.token_types.result import (
    FIRST,
    SEPARATOR,
    SPECIAL,
    TYPES,
    ByType,
    TokenTypes,
)
from litotes.explanation.analyses.token_types.speech.part_of_speech import PartOfSpeech, Tagger
from litotes.explanation.analyses.token_types.speech.part_of_speech import tagger as tagger_called
from litotes.explanation.analyses.token_types.speech.random_field import is_installed
from litotes.explanation.observation import KINDS, Observation
from litotes.model.checkpoint import Model

_OF_PART: dict[PartOfSpeech, str] = {
    "punctuation": "punctuation",
    "noun": "nouns",
    "pronoun": "pronouns",
    "verb": "verbs",
}


class TokenTypesMeasure(Measure):
    """What [CLS] weighs in the last layer: [CLS], [SEP], punctuation, nouns, pronouns, verbs.

    tagger: `crf`, or `spacy` with a model of the user's own.
    """

    def __init__(self, model: Model, *, tagger: str = "crf") -> None:
        super().__init__(model)
        self.tag = tagger_called(tagger)
        n_layers, n_heads, n_types = self.n_layers, self.n_attention_heads, len(TYPES)
        self.from_first = {kind: RunningMean(n_types, n_heads) for kind in KINDS}
        self.by_type = {kind: RunningMean(n_types) for kind in KINDS}
        self.difference = RunningMean(n_types)
        self.from_others, self.over_layers = {}, {}
        for name in SPECIAL:
            self.from_others[name] = {kind: RunningMean(n_layers, n_heads) for kind in KINDS}
            self.over_layers[name] = {kind: RunningMean() for kind in KINDS}
        self.over_layers_difference = {name: RunningMean() for name in SPECIAL}
        self.n_texts = 0

    @classmethod
    def missing_package(cls) -> str | None:
        if is_installed():
            return None
        return "needs the weights of a tagger: pip install 'litotes[analysis]'"

    def add(self, observation: Observation) -> None:
        self.n_texts += 1
        places = places_by_type(observation.read, self.tag)
        self._add_from_first(observation, places)
        for name in SPECIAL:
            self._add_from_others(observation, name, places[name])

    def _add_from_first(
        self, observation: Observation, places: Mapping[str, Sequence[int]]
    ) -> None:
        weights = {}
        for kind, maps in observation.maps.items():
            weights[kind] = self._from_first(observation.layers[-1], maps[-1], places)
            self.from_first[kind].add(weights[kind])
            self.by_type[kind].add(weights[kind].nanmean(-1))
        self.difference.add((weights["standard"] - weights["effective"]).nanmean(-1))

    def _add_from_others(self, observation: Observation, name: str, places: Sequence[int]) -> None:
        weights = {}
        for kind, maps in observation.maps.items():
            weights[kind] = self._from_others(observation, maps, places)
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
        values = [_largest(given, _at(view, places[name])) for name in TYPES]
        return torch.cat([by_head([view], [value], self.n_attention_heads) for value in values])

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
        return self._by_head(observation, values)

    def result(self) -> TokenTypes:
        n_with = self.by_type["standard"].n.long().tolist()
        apart = self.over_layers_difference
        return TokenTypes(
            n_texts=self.n_texts,
            types=TYPES,
            from_first=tables(means(self.from_first)),
            from_first_half_width=tables(half_widths(self.from_first)),
            by_type=_by_kind_and_type(means(self.by_type)),
            by_type_half_width=_by_kind_and_type(half_widths(self.by_type)),
            n_with=dict(zip(TYPES, n_with, strict=True)),
            difference=_by_type(self.difference.mean),
            difference_half_width=_by_type(self.difference.half_width),
            from_others={name: tables(means(both)) for name, both in self.from_others.items()},
            over_layers={name: _numbers(means(both)) for name, both in self.over_layers.items()},
            over_layers_difference=_numbers(means(apart)),
            over_layers_difference_half_width=_numbers(half_widths(apart)),
        )


def places_by_type(read: ReadText, tag: Tagger) -> dict[str, list[int]]:
    """Where in a text the pieces of every type stand: special pieces, and the first piece of every
    word.

    The texts of a pair are tagged each by itself.
    """
    places: dict[str, list[int]] = {name: [] for name in TYPES}
    places[FIRST] = [0]
    places[SEPARATOR] = _separators(read)
    for is_pair in (False, True):
        words = [word for word in read.words if word.is_pair == is_pair]
        parts = tag([word.written for word in words])
        for word, part in zip(words, parts, strict=True):
            if part in _OF_PART:
                places[_OF_PART[part]].append(word.pieces[0])
    return places


def _separators(read: ReadText) -> list[int]:
    """They belong to no word and are written as the last piece is, whatever the family."""
    places = []
    pieces = zip(read.written, read.word_of(), strict=True)
    for place, (piece, word) in enumerate(pieces):
        if place > 0 and word is None and piece == read.written[-1]:
            places.append(place)
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


def _by_type(values: Tensor) -> ByType:
    return dict(zip(TYPES, numbers(values), strict=True))


def _by_kind_and_type(values: Mapping[str, Tensor]) -> dict[str, ByType]:
    return {kind: _by_type(one) for kind, one in values.items()}


def _numbers(values: Mapping[str, Tensor]) -> ByType:
    return {name: number(value) for name, value in values.items()}
