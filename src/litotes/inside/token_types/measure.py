"""token_types: what [CLS] weighs in the last layer.

Kovaleva et al. 2019, arXiv 1908.08593; Sun and Marasović 2021, arXiv 2105.08855, §3.2.

    weight(type) = mean over texts of  max_k A[CLS, k],   k: the first pieces of the words of that type, or the special pieces themselves

Texts without a type do not count for it (figure 1 of Sun and Marasović). Beside it, for every
layer, what all other pieces give to [CLS] and to [SEP] (figures 5 and 6). Both for the weights A
and for their effective part A⊥, which may be below 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from litotes.attention.observer import TextAttention
from litotes.explain.observation import KINDS, Observation
from litotes.inside.analysis import Measure, Result
from litotes.inside.heads_table import by_head
from litotes.inside.means import Number, RunningMean, Table, format_interval, number, numbers, table
from litotes.inside.token_types.speech.part_of_speech import PartOfSpeech, Tagger
from litotes.inside.token_types.speech.part_of_speech import tagger as tagger_called
from litotes.inside.token_types.speech.random_field import is_installed
from litotes.model.checkpoint import Model
from litotes.text.tokenizer import ReadText

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
"""A smaller difference is not spoken of: where both maps are one, nothing but rounding is left, and
that has a narrow interval.
"""

ByType = dict[str, Number]


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

    def findings(self) -> tuple[str, ...]:
        there = {
            name: _moved(name, self.by_type, self.difference, self.difference_half_width)
            for name in self.types
        }
        layers = _turned(self.over_layers)
        everywhere = {
            name: _moved(
                name, layers, self.over_layers_difference, self.over_layers_difference_half_width
            )
            for name in SPECIAL
        }
        lists = {
            "By effective attention [CLS] gives": [
                f"{name} {there[name]}" for name in (SEPARATOR, FIRST) if there[name]
            ],
            "To words and marks it gives:": [
                f"{name} {there[name]}"
                for name in self.types
                if name not in SPECIAL and there[name]
            ],
            "Over all layers the other pieces give": [
                f"{name} {everywhere[name]}" for name in (SEPARATOR, FIRST) if everywhere[name]
            ],
        }
        said = [
            f"In the last layer [CLS] gives {self._ranked('standard')}; by effective attention"
            f" {self._ranked('effective')}."
        ]
        return (
            *said,
            *(f"{beginning} {', '.join(rest)}." for beginning, rest in lists.items() if rest),
        )

    def _ranked(self, kind: str) -> str:
        """The two types that weigh most."""
        known = sorted(
            ((weight, name) for name, weight in self.by_type[kind].items() if weight is not None),
            reverse=True,
        )
        shown = [
            f"{name} {format_interval(weight, self.by_type_half_width[kind][name])}"
            for weight, name in known[:2]
        ]
        return f"most to {shown[0]}" + (f", then to {shown[1]}" if len(shown) > 1 else "")


class TokenTypesMeasure(Measure):
    """What [CLS] weighs in the last layer: [CLS], [SEP], punctuation, nouns, pronouns, verbs.

    tagger: `crf`, or `spacy` with a model of the user's own.
    """

    def __init__(self, model: Model, *, tagger: str = "crf") -> None:
        super().__init__(model)
        self.tag = tagger_called(tagger)
        n_heads, n_types = self.n_attention_heads, len(TYPES)
        self.from_first = {kind: RunningMean(n_types, n_heads) for kind in KINDS}
        self.by_type = {kind: RunningMean(n_types) for kind in KINDS}
        self.difference = RunningMean(n_types)
        self.from_others = {
            name: {kind: RunningMean(self.n_layers, n_heads) for kind in KINDS} for name in SPECIAL
        }
        self.over_layers = {name: {kind: RunningMean() for kind in KINDS} for name in SPECIAL}
        self.over_layers_difference = {name: RunningMean() for name in SPECIAL}
        self.n_texts = 0

    @classmethod
    def missing_package(cls) -> str | None:
        return (
            None
            if is_installed()
            else "needs the weights of a tagger: pip install 'litotes[analysis]'"
        )

    def add(self, observation: Observation) -> None:
        self.n_texts += 1
        places = places_by_type(observation.read, self.tag)
        maps = observation.maps
        from_first = {
            kind: self._from_first(observation.layers[-1], maps[kind][-1], places) for kind in KINDS
        }
        for kind, values in from_first.items():
            self.from_first[kind].add(values)
            self.by_type[kind].add(values.nanmean(-1))
        self.difference.add((from_first["standard"] - from_first["effective"]).nanmean(-1))
        for name in SPECIAL:
            from_others = {
                kind: self._from_others(observation.layers, maps[kind], places[name])
                for kind in KINDS
            }
            for kind, values in from_others.items():
                self.from_others[name][kind].add(values)
                self.over_layers[name][kind].add(values.nanmean())
            self.over_layers_difference[name].add(
                (from_others["standard"] - from_others["effective"]).nanmean()
            )

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
        self, views: Sequence[TextAttention], maps: Sequence[Tensor], places: Sequence[int]
    ) -> Tensor:
        """The mean over all other pieces of the largest weight they give to the pieces at `places`.

        (layer, attention_head)
        """
        values = []
        for view, weights in zip(views, maps, strict=True):
            targets = _at(view, places)
            others = ~targets & (view.origin >= 0)  # a fused piece is no piece of the text
            values.append(_largest(weights[:, others], targets).mean(-1))
        return by_head(views, values, self.n_attention_heads)

    def result(self) -> TokenTypes:
        n_with = self.by_type["standard"].n.long().tolist()
        return TokenTypes(
            n_texts=self.n_texts,
            types=TYPES,
            from_first={kind: table(running.mean) for kind, running in self.from_first.items()},
            from_first_half_width={
                kind: table(running.half_width) for kind, running in self.from_first.items()
            },
            by_type={kind: _named(running.mean) for kind, running in self.by_type.items()},
            by_type_half_width={
                kind: _named(running.half_width) for kind, running in self.by_type.items()
            },
            n_with=dict(zip(TYPES, n_with, strict=True)),
            difference=_named(self.difference.mean),
            difference_half_width=_named(self.difference.half_width),
            from_others={
                name: {kind: table(one.mean) for kind, one in both.items()}
                for name, both in self.from_others.items()
            },
            over_layers={
                name: {kind: number(one.mean) for kind, one in both.items()}
                for name, both in self.over_layers.items()
            },
            over_layers_difference={
                name: number(one.mean) for name, one in self.over_layers_difference.items()
            },
            over_layers_difference_half_width={
                name: number(one.half_width) for name, one in self.over_layers_difference.items()
            },
        )


def places_by_type(read: ReadText, tag: Tagger) -> dict[str, list[int]]:
    """Where in a text the pieces of every type stand: special pieces, and the first piece of every
    word.

    A separator belongs to no word and is written as the last piece is. The texts of a pair are
    tagged each by itself.
    """
    word_of = read.word_of()
    found: dict[str, list[int]] = {name: [] for name in TYPES}
    found[FIRST] = [0]
    found[SEPARATOR] = [
        n
        for n, piece in enumerate(read.written)
        if n and word_of[n] is None and piece == read.written[-1]
    ]
    for is_pair in (False, True):
        words = [word for word in read.words if word.is_pair == is_pair]
        for word, part in zip(words, tag([word.written for word in words]), strict=True):
            if part in _OF_PART:
                found[_OF_PART[part]].append(word.pieces[0])
    return found


def _at(view: TextAttention, places: Sequence[int]) -> Tensor:
    """Which pieces of a layer stand at these places of the text. (piece,)"""
    return torch.isin(
        view.origin, torch.tensor(places, dtype=view.origin.dtype, device=view.origin.device)
    )


def _largest(weights: Tensor, keys: Tensor) -> Tensor:
    """The largest weight that falls on one of the keys, (…, key) → (…); NaN where there is none."""
    return weights[..., keys].amax(-1) if keys.any() else torch.full_like(weights[..., 0], math.nan)


def _named(values: Tensor) -> ByType:
    return dict(zip(TYPES, numbers(values), strict=True))


def _turned(weights: Mapping[str, ByType]) -> dict[str, ByType]:
    """{type: {kind: …}} → {kind: {type: …}}"""
    return {kind: {name: both[kind] for name, both in weights.items()} for kind in KINDS}


def _moved(
    name: str, weights: Mapping[str, ByType], differences: ByType, half_widths: ByType
) -> str:
    """How much less or more a type gets when only effective attention counts; empty where it was
    never there.
    """
    standard, effective, difference = (
        weights["standard"][name],
        weights["effective"][name],
        differences[name],
    )
    if standard is None or effective is None or difference is None:
        return ""
    half_width = half_widths[name]
    if half_width is None:  # one text tells nothing about others
        return f"{effective:.3f} (standard {standard:.3f})"
    if abs(difference) <= max(half_width or 0.0, _NOTHING):
        return (
            f"as much ({standard:.3f}, difference {format_interval(abs(difference), half_width)})"
        )
    return (
        f"{format_interval(abs(difference), half_width)} {'less' if difference > 0 else 'more'}"
        f" ({standard:.3f} to {effective:.3f})"
    )
