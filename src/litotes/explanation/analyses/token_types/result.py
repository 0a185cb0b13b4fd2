"""What token_types found, and what of it is worth a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from litotes.explanation.analyses.analysis import Result
from litotes.explanation.analyses.kinds import kinds_shown
from litotes.explanation.analyses.means import Number, Table, format_interval, format_number
from litotes.explanation.observation import KINDS

FIRST, SEPARATOR = "[CLS]", "[SEP]"
"""By the names BERT gives them; other families write <s> and </s>."""

SPECIAL = (FIRST, SEPARATOR)
TYPES = (*SPECIAL, "punctuation", "nouns", "pronouns", "verbs")

_NOTHING = 0.001
"""A smaller difference is not mentioned: where both maps are the same, only rounding is left, and
that has a narrow interval.
"""

FEWEST = 5
"""Texts that must have a type before it is compared with others, or all where there are fewer."""

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

    def nothing_to_say(self) -> str | None:
        if any(name != FIRST for name in self.common_types):
            return None
        return f"says nothing of these texts: in the last layer {FIRST} is alone in nearly all"

    def findings(self) -> tuple[str, ...]:
        return self._findings_of_one() if len(self.kinds) == 1 else self._findings_of_both()

    def _findings_of_one(self) -> tuple[str, ...]:
        """Where short texts leave nothing to compare, what words get; that [CLS] looks at itself or
        at a full stop is no finding.
        """
        said = []
        words = [name for name in self.common_types if name not in (*SPECIAL, "punctuation")]
        if words:
            said.append(f"In the last layer [CLS] gives {self._ranked('standard', words)}.")
        separator, first = (
            format_number(self.over_layers[name]["standard"]) for name in (SEPARATOR, FIRST)
        )
        said.append(
            f"Over all layers the other pieces give {SEPARATOR} {separator} and {FIRST} {first}."
        )
        return tuple(said)

    def _findings_of_both(self) -> tuple[str, ...]:
        last_layer = {
            name: _change(name, self.by_type, self.difference, self.difference_half_width)
            for name in self.types
        }
        weights = _by_kind(self.over_layers)
        difference, width = self.over_layers_difference, self.over_layers_difference_half_width
        all_layers = {name: _change(name, weights, difference, width) for name in SPECIAL}
        words = [name for name in self.types if name not in SPECIAL]
        said = [
            f"In the last layer [CLS] gives {self._ranked('standard', self.common_types)}; by"
            f" effective attention {self._ranked('effective', self.common_types)}.",
            _list_changes("By effective attention [CLS] gives", last_layer, (SEPARATOR, FIRST)),
            _list_changes("To words and marks it gives:", last_layer, words),
            _list_changes("Over all layers the other pieces give", all_layers, (SEPARATOR, FIRST)),
        ]
        return tuple(sentence for sentence in said if sentence)

    def _ranked(self, kind: str, names: Sequence[str]) -> str:
        """The two of the types that weigh most."""
        weights = self.by_type[kind]
        known = [(weight, name) for name in names if (weight := weights[name]) is not None]
        listed = []
        for weight, name in sorted(known, reverse=True)[:2]:
            listed.append(f"{name} {format_interval(weight, self.by_type_half_width[kind][name])}")
        return f"most to {', then to '.join(listed)}"


def _by_kind(weights: Mapping[str, ByType]) -> dict[str, ByType]:
    """{type: {kind: …}} → {kind: {type: …}}"""
    return {kind: {name: both[kind] for name, both in weights.items()} for kind in KINDS}


def _list_changes(beginning: str, changes: Mapping[str, str], names: Sequence[str]) -> str:
    """A sentence on those of the names that have a change; empty where none has."""
    listed = [f"{name} {changes[name]}" for name in names if changes[name]]
    return f"{beginning} {', '.join(listed)}." if listed else ""


def _change(
    name: str, weights: Mapping[str, ByType], differences: ByType, half_widths: ByType
) -> str:
    """How much less or more a type gets when only effective attention counts; empty for a type
    that no text has.
    """
    standard, effective = weights["standard"][name], weights["effective"][name]
    difference, half_width = differences[name], half_widths[name]
    if standard is None or effective is None or difference is None:
        return ""
    if half_width is None:  # one text says nothing about others
        return f"{effective:.3f} (standard {standard:.3f})"
    size = format_interval(abs(difference), half_width)
    if abs(difference) <= max(half_width, _NOTHING):
        return f"as much ({standard:.3f}, difference {size})"
    direction = "less" if difference > 0 else "more"
    return f"{size} {direction} ({standard:.3f} to {effective:.3f})"
