"""The attention of a decoder: to the target so far, and to the source.

    mixed = weighting(query · key / √d) · value

The weighting is the same seam as in an encoder (attention/weighting.py). Pieces are packed; here
alone they are rows, filled up to the longest text, with `live` saying which keys a query may read:
those up to itself (causal), or all of its source. Vaswani et al. 2017 (arXiv 1706.03762), §3.2.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from litotes.core.errors import UserError
from litotes.core.registry import build, pick
from litotes.encoder.attention import WEIGHTINGS
from litotes.encoder.layout import Layout
from litotes.encoder.torch_operations import Rows
from litotes.training.translation.spec import DecoderSpec

SELF, ACROSS = "decoder self", "across"


@dataclass(frozen=True)
class AttentionTrace:
    """What an observer is shown of one attention.

    kind: SELF or ACROSS. weights: (text, attention_head, query, key), with padding at the ends;
    value: (text, attention_head, key, head_width).
    """

    kind: str
    layer: int
    weights: Tensor
    value: Tensor


DecoderObserver = Callable[[AttentionTrace], None]


@dataclass(frozen=True)
class Reading:
    """Which pieces read which: those of `queries` those of `keys`, text by text."""

    queries: Rows
    keys: Rows
    causal: bool

    @classmethod
    def of(cls, queries: Layout, keys: Layout, *, causal: bool = False) -> Reading:
        return cls(Rows(queries, apart=False), Rows(keys, apart=False), causal)

    @cached_property
    def live(self) -> Tensor:
        """The keys that a query may read. (text, 1, query or 1, key)"""
        (live,) = self.keys.live
        assert live is not None
        return live & up_to_itself(self.keys.layout) if self.causal else live


def up_to_itself(layout: Layout) -> Tensor:
    """(1, 1, query, key)"""
    place = torch.arange(layout.longest, device=layout.device)
    return (place[:, None] >= place)[None, None]


def require_rows_alone(weighting: str) -> None:
    """Refuses a weighting in which a query's weights depend on other queries."""
    if not pick(WEIGHTINGS, weighting, "weighting").rows_alone:
        raise UserError(
            f"The weighting {weighting!r} chooses keys for several queries at once: in a decoder a"
            " piece would see what comes after it. Choose another, see `litotes list weightings`."
        )


class DecoderAttention(nn.Module):
    """Multi-head attention whose keys may be other pieces than its queries.

    key_width: the width of what is read.
    """

    def __init__(self, spec: DecoderSpec, key_width: int) -> None:
        super().__init__()
        require_rows_alone(spec.weighting)
        self.n_heads, self.dropout = spec.n_attention_heads, spec.attention_dropout
        self.query = nn.Linear(spec.width, spec.width)
        self.key_value = nn.Linear(key_width, 2 * spec.width)
        self.output = nn.Linear(spec.width, spec.width)
        self.weighting = build(
            WEIGHTINGS, spec.weighting, "weighting", self.n_heads, options=spec.weighting_options
        )

    def forward(self, hidden: Tensor, read: Tensor, reading: Reading) -> Tensor:
        """What each piece of `hidden` (query piece, width) gathers from `read` (key piece, width).

        (query piece, width)
        """
        mixed, _, _ = self._attend(hidden, read, reading, keeps_weights=False)
        return self.output(mixed)

    def observe(
        self, hidden: Tensor, read: Tensor, reading: Reading
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The same, with the weights (text, attention_head, query, key) and the values."""
        mixed, weights, value = self._attend(hidden, read, reading, keeps_weights=True)
        assert weights is not None
        return self.output(mixed), weights, value

    def _attend(
        self, hidden: Tensor, read: Tensor, reading: Reading, *, keeps_weights: bool
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        (query,) = reading.queries.split(self.project_query(hidden))
        key, value = self.split_keys(read, reading.keys)
        mixed, weights = self.weigh(query, key, value, reading.live, keeps_weights=keeps_weights)
        return reading.queries.join([mixed]).flatten(1), weights, value

    def weigh(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        live: Tensor | None,
        *,
        keeps_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The weighted mean of the values for rows (text, attention_head, piece, head_width), and
        the weights where they are wanted.
        """
        dropout = self.dropout if self.training else 0.0
        if not keeps_weights:
            return self.weighting.attend(query, key, value, live=live, dropout=dropout), None
        return self.weighting.attend_with_weights(query, key, value, live=live, dropout=dropout)

    def project_query(self, hidden: Tensor) -> Tensor:
        """(piece, attention_head, head_width)"""
        return self.query(hidden).unflatten(-1, (self.n_heads, -1))

    def project_keys(self, read: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values. (piece, attention_head, head_width) each"""
        key, value = self.key_value(read).unflatten(-1, (2, self.n_heads, -1)).unbind(1)
        return key, value

    def split_keys(self, read: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        """The same as rows, both in one go. (text, attention_head, piece, head_width) each"""
        both = self.key_value(read).unflatten(-1, (2 * self.n_heads, -1))
        (split,) = rows.split(both)
        key, value = split.chunk(2, dim=1)
        return key, value
