"""A second opinion on the pattern of an attention map: three shares of its weight, and three
thresholds.

With m = |map| scaled to a sum of 1 and excess(share, chance) = (share - chance) / (1 - chance):

    columns  = excess of the weight in the strongest tenth of the columns
    diagonal = excess of the weight where |query - key| ≤ n/16 (or 1)
    blocks   = excess, of the weight outside of both, between pieces of the same text of a pair

0 is what an even map has, 1 all the weight. The thresholds were set before any map was labelled
(docs/results/effective_attention/patterns.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from litotes.core.errors import UserError
from litotes.explanation.analyses.patterns.classes import (
    BLOCK,
    BOTH,
    DIAGONAL,
    HETEROGENEOUS,
    VERTICAL,
)

ENOUGH_IN_COLUMNS = 0.25
ENOUGH_ON_DIAGONAL = 0.15  # two even blocks have 0.14
ENOUGH_IN_BLOCKS = 0.3

_STRONGEST = 10  # one column in ten
# neighbours are a sixteenth of the text apart at most: phrases as well as the next piece
_NEAR = 16
_FEWEST = 2  # but two at least: [CLS] and [SEP] of a short text


@dataclass(frozen=True)
class Evidence:
    """What speaks for each pattern: 0 is chance, 1 all the weight."""

    columns: float
    diagonal: float
    blocks: float


def by_rules(weights: Tensor, segments: Tensor | None = None) -> str:
    """The pattern of one map (query, key), standard or effective.

    segments: which text of a pair each piece belongs to, (piece,); without it a map cannot be
    called block.
    """
    found = evidence(weights, segments)
    has_columns = found.columns >= ENOUGH_IN_COLUMNS
    has_diagonal = found.diagonal >= ENOUGH_ON_DIAGONAL
    if has_columns:
        return BOTH if has_diagonal else VERTICAL
    if has_diagonal:
        return DIAGONAL
    return BLOCK if found.blocks >= ENOUGH_IN_BLOCKS else HETEROGENEOUS


def evidence(weights: Tensor, segments: Tensor | None = None) -> Evidence:
    """The three shares of one map (query, key)."""
    _check_shapes(weights, segments)
    n = len(weights)
    share = weights.abs().double()
    share = share / share.sum().clamp(min=1e-30)  # (query, key)
    place = torch.arange(n, device=weights.device)
    groups = torch.zeros_like(place) if segments is None else segments
    near = (place[:, None] - place[None, :]).abs() <= max(1, n // _NEAR)
    columns = _shared_columns(share, groups).topk(min(max(_FEWEST, n // _STRONGEST), n))
    elsewhere = ~near  # (query, key): neither near the diagonal nor in a strong column
    elsewhere[:, columns.indices] = False
    return Evidence(
        columns=_excess(float(columns.values.sum()), len(columns.indices) / n),
        diagonal=_excess(float((share * near).sum()), float(near.double().mean())),
        blocks=_within_groups(share, groups, elsewhere),
    )


def _check_shapes(weights: Tensor, segments: Tensor | None) -> None:
    if weights.dim() != 2 or weights.shape[0] != weights.shape[1]:
        raise UserError(
            f"A map of shape {tuple(weights.shape)} cannot be judged: give one square (query, key)."
        )
    if segments is not None and segments.shape != weights.shape[:1]:
        raise UserError(
            f"{len(weights)} pieces but {tuple(segments.shape)} segments: give one for each piece."
        )


def _shared_columns(share: Tensor, groups: Tensor) -> Tensor:
    """The weight of every column as far as all texts of a pair look at it: what only one of them
    looks at is part of a block. (key,)
    """
    by_group = [share[groups == group].mean(0) for group in groups.unique()]
    return torch.stack(by_group).amin(0) * len(share)


def _within_groups(share: Tensor, groups: Tensor, elsewhere: Tensor) -> float:
    """The excess of weight between pieces of the same text, among the places `elsewhere`."""
    n_places, weight = float(elsewhere.sum()), float((share * elsewhere).sum())
    if not n_places or not weight:
        return 0.0
    both = elsewhere & (groups[:, None] == groups[None, :])
    return _excess(float((share * both).sum()) / weight, float(both.sum()) / n_places)


def _excess(share: float, chance: float) -> float:
    return 0.0 if chance >= 1 else (share - chance) / (1 - chance)
