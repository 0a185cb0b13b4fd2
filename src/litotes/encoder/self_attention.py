"""Multi-head attention over packed texts: projections, the two seams, and heads that are gone.

    query, key, value = W h + b        mixed = weighting(query · key / √d + bias) · value

What a family knows of distances comes in here: a bias (MPNet), angles by which queries and keys are
turned (rotary.py), or two more terms of the affinity (disentangled.py).

Pieces stay packed; only the weighting itself looks at texts as rows (attention/rows.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from litotes.core.registry import build
from litotes.encoder.attention import WEIGHTINGS
from litotes.encoder.attention.pruning import AttentionOutput
from litotes.encoder.attention_context import AttentionContext
from litotes.encoder.disentangled import Disentangled, DistanceTerms
from litotes.encoder.layout import Layout
from litotes.encoder.spec import EncoderSpec


class Attention(nn.Module):
    """Multi-head attention with one fused projection for query, key and value, up to the output
    projection.

    heads: the attention heads this block has, by their numbers before any were removed for good.
    """

    def __init__(self, spec: EncoderSpec, heads: Sequence[int]) -> None:
        super().__init__()
        self.heads, self.n_heads, self.dropout = list(heads), len(heads), spec.attention_dropout
        self.has_all_heads = self.n_heads == spec.n_attention_heads
        self.inner = self.n_heads * spec.head_width
        self.qkv = nn.Linear(spec.width, 3 * self.inner, bias=spec.attention_bias)
        self.output = nn.Linear(self.inner, spec.width, bias=spec.attention_bias)
        self.disentangled = Disentangled(spec, self.n_heads) if spec.position_terms else None
        self.weighting = build(
            WEIGHTINGS, spec.weighting, "weighting", self.n_heads, options=spec.weighting_options
        )

    @property
    def scale(self) -> float:
        """What the products of queries and keys are multiplied by."""
        share = 1.0 if self.disentangled is None else self.disentangled.share
        return float(share * (self.inner // self.n_heads) ** -0.5)

    def forward(self, hidden: Tensor, context: AttentionContext) -> Tensor:
        """What each piece gathers. (piece, attention_head × head_width)"""
        query, key, value = self._select(self.project(hidden), context)
        return self._attend(query, key, value, context, context).flatten(1)

    def observe(
        self, hidden: Tensor, context: AttentionContext, *, keep_weights: bool = False
    ) -> AttentionOutput:
        """The same, and what a pruning or an observer wants to know of it.

        keep_weights: whether to keep the weights themselves.
        """
        packed = self.project(hidden)
        query, key, value = self._select(packed, context)
        all_mixed, all_received, all_weights = [], [], []
        for q, k, v, options in self._blocks(query, key, value, context, context):
            mixed, weights = self.weighting.attend_with_weights(q, k, v, **options)
            weights = _clear_padding(weights.detach(), options["live"])
            all_mixed.append(mixed)
            # (text, attention_head, key, 1)
            all_received.append(weights.sum(-2, dtype=torch.float32).unsqueeze(-1))
            if keep_weights:
                all_weights.append(weights)
        return AttentionOutput(
            received=self._join(all_received, context).squeeze(-1),
            value=packed[:, 2],
            mixed=self._join(all_mixed, context),
            weights=tuple(all_weights),
        )

    def attend_firsts(self, hidden: Tensor, context: AttentionContext) -> Tensor:
        """What each text's first piece gathers, exact: keys and values of all pieces, queries of
        the first ones. (text, attention_head × head_width)
        """
        firsts = context.of_firsts()
        first_pieces = hidden[context.rows.layout.starts]
        (query,) = self._select(self.project_part(first_pieces, slice(self.inner)), firsts)
        key, value = self._select(self.project_part(hidden, slice(self.inner, None)), context)
        return self._attend(query, key, value, firsts, context).flatten(1)

    def project(self, hidden: Tensor) -> Tensor:
        """(piece, width) → (piece, 3, attention_head, head_width)"""
        return self.qkv(hidden).unflatten(-1, (3, self.n_heads, -1))

    def project_part(self, hidden: Tensor, outputs: slice) -> Tensor:
        """Only the query, or only key and value. → (piece, part, attention_head, head_width)"""
        bias = None if self.qkv.bias is None else self.qkv.bias[outputs]
        some = functional.linear(hidden, self.qkv.weight[outputs], bias)
        return some.unflatten(-1, (-1, self.n_heads, self.inner // self.n_heads))

    def _select(self, packed: Tensor, context: AttentionContext) -> tuple[Tensor, ...]:
        """Query, key and value (or those of them there are) of the attention heads still used."""
        return select_heads(packed, context.heads, context.rows.layout).unbind(1)

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        queries: AttentionContext,
        keys: AttentionContext,
    ) -> Tensor:
        """(query piece, attention_head, head_width), zeros for heads that are gone."""
        mixed = []
        for q, k, v, options in self._blocks(query, key, value, queries, keys):
            mixed.append(self.weighting.attend(q, k, v, **options))
        return self._join(mixed, queries)

    def _blocks(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        queries: AttentionContext,
        keys: AttentionContext,
    ) -> Iterator[tuple[Tensor, Tensor, Tensor, dict[str, Any]]]:
        """Packed queries, keys and values as blocks of rows, with the options of the weighting."""
        rows = keys.rows
        if queries.turn is not None and keys.turn is not None:
            query, key = queries.turn(query), keys.turn(key)
        if self.disentangled is not None:
            query = query * self.disentangled.share
        parts = zip(queries.rows.split(query), rows.split(key), rows.split(value), strict=True)
        heads_by_block, terms = rows.by_text(keys.heads), self._distance_terms(queries)
        conditions = zip(queries.live_keys, queries.bias, heads_by_block, terms, strict=True)
        dropout = self.dropout if self.training else 0.0
        for (q, k, v), (live, bias, heads, distance_terms) in zip(parts, conditions, strict=True):
            bias = self._select_bias(bias, heads)
            if distance_terms is not None:
                bias = distance_terms.bias(q, k, heads)
            yield q, k, v, {"live": live, "bias": bias, "heads": heads, "dropout": dropout}

    def _distance_terms(self, queries: AttentionContext) -> Sequence[DistanceTerms | None]:
        """For each block of rows, what makes c2p and p2c of its queries and keys."""
        if self.disentangled is None or queries.distances is None:
            return [None] * len(queries.bias)
        return self.disentangled(queries.distances, self.qkv)

    def _select_bias(self, bias: Tensor | None, heads: Tensor | None) -> Tensor | None:
        """(text or 1, attention_head, query, key), of the heads this block has and a text uses."""
        if bias is None:
            return None
        if not self.has_all_heads:
            bias = bias[:, self.heads]
        if heads is None:
            return bias
        whole = bias.expand(len(heads), -1, -1, -1)
        return whole.gather(1, heads[:, :, None, None].expand(-1, -1, *whole.shape[2:]))

    def _join(self, blocks: Sequence[Tensor], context: AttentionContext) -> Tensor:
        """Blocks of rows back to (piece, attention_head, …), all heads in their places."""
        packed = context.rows.join(blocks)
        return scatter_heads(packed, context.heads, context.rows.layout, self.n_heads)


def _clear_padding(weights: Tensor, live: Tensor | None) -> Tensor:
    """Weights without those of padding, which has queries too."""
    return weights if live is None else weights.masked_fill(~live.transpose(-1, -2), 0.0)


def select_heads(packed: Tensor, heads: Tensor | None, layout: Layout) -> Tensor:
    """What belongs to the attention heads each text still uses.

    (piece, part, attention_head, head_width), by heads (text, used)

    One copy for all texts, the cheapest way we found: on a CPU, where one head of twelve is gone
    and texts are short, even this copy costs more than the attention it saves.
    """
    if heads is None:
        return packed
    n_pieces, n_parts, n_heads, _ = packed.shape
    part_starts = torch.arange(0, n_pieces * n_parts * n_heads, n_heads, device=packed.device)
    part_starts = part_starts.view(n_pieces, n_parts, 1)
    places = part_starts + heads[layout.texts].unsqueeze(1)  # (piece, part, used)
    return packed.flatten(0, 2).index_select(0, places.flatten()).unflatten(0, places.shape)


def scatter_heads(packed: Tensor, heads: Tensor | None, layout: Layout, n_heads: int) -> Tensor:
    """The inverse of `select_heads` for one part, (piece, used, …) → (piece, attention_head, …);
    attention heads that are gone give zeros.
    """
    if heads is None:
        return packed
    starts = torch.arange(0, len(packed) * n_heads, n_heads, device=packed.device)
    places = starts[:, None] + heads[layout.texts]  # (piece, used)
    whole = packed.new_zeros(len(packed) * n_heads, packed.shape[-1])
    return whole.index_copy_(0, places.flatten(), packed.flatten(0, 1)).unflatten(0, (-1, n_heads))
