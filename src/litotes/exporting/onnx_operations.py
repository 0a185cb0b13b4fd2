"""The operations of the walk as nodes of an ONNX file: walk.py, the weightings, prunings and heads
write the file by being called with these.

A run of the file answers texts of equal length, side by side: there is no padding, and because the
length alone decides how many pieces stay, a group stays a group after any pruning. Values are laid
out in four ways (`Symbol.layout`), and turned from one into the other where needed:

    rows     (text × piece, width), as products take them in float32; in int8 as below
    apart    (text, piece, width)
    vector   (text, width) or (text, 1, width): what is read of a text
    column   (text, width, 1), the same: every text has a product of its own there, because float32
             products of several rows add in another order than those of one

What a text gets must not depend on the others, in int8 not even in the last bit. So sums over
pieces are products with a row of ones, one for every text: ONNX Runtime's own sums add in another
order where a tensor has another shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from litotes.core.errors import UserError
from litotes.encoder.attention.entmax import Entmax
from litotes.encoder.attention.weighting import Softmax
from litotes.encoder.encoder import Attention, Embeddings, Encoder
from litotes.encoder.layout import Batch, Plan
from litotes.encoder.operations import (
    Choice,
    Operations,
    Projected,
    Seen,
    State,
    Wanted,
    lstm_weights,
    rotary_angles,
)
from litotes.encoder.simplex import MOST_ROUNDS
from litotes.exporting.graph import Graph, Symbol, Value
from litotes.exporting.int8 import as_array
from litotes.exporting.products import Products

ACTIVATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "gelu": ("Gelu", {}),
    "gelu_new": ("Gelu", {"approximate": "tanh"}),
    "gelu_pytorch_tanh": ("Gelu", {"approximate": "tanh"}),
    "relu": ("Relu", {}),
    "silu": ("Sigmoid", {}),  # × x
}
_FAR = np.float32(-1e30)
"""Added to the affinity of a key outside a window: no weight is left of it."""
_LOWEST = np.finfo(np.float32).min
_EPSILON, _TINY = float(np.finfo(np.float32).eps), np.finfo(np.float32).tiny


@dataclass(frozen=True)
class Group:
    """The number of pieces in each text of a run, (1,): n_real without a fused one, n_now with it.

    positions: where they stand, (text, piece), or (1, piece) where no piece ever leaves; None: not
    needed.
    """

    n_real: Any
    n_now: Any
    positions: Symbol | None = None


@dataclass(frozen=True)
class HeadsLeft:
    """importance: (text, attention_head). n: how many go on; used: 1 for those, 0 for the others,
    (text, attention_head, 1, 1); None: all.
    """

    importance: Symbol
    n: int
    used: Symbol | None = None


@dataclass(frozen=True)
class Leaving:
    """Places of the pieces that stay, in order, of those that leave, and of these without a fused
    one, all (text, piece). The latter two only where somebody asks.
    """

    kept: Symbol
    removed: Symbol | None = None
    removed_real: Symbol | None = None


@dataclass(frozen=True)
class Removed:
    """States (text, piece, width) and origins (text, piece) of pieces that left together; texts: of
    those that are still there, the places among the texts of then; None: all are.
    """

    hidden: Symbol
    origin: Symbol
    texts: Symbol | None = None


class Live(Symbol):
    """Which keys are live, of every query."""


class AllLive:
    """Which keys are live where all are."""

    def __gt__(self, least: float) -> AllLive:
        return self


class Best(Symbol):
    """The marks of the best scores of each row; written only if more is asked for than `values` and
    `places`, those of the best.
    """

    def __init__(self, scores: Symbol, values: Symbol, places: Symbol) -> None:
        self.graph, self.scores, self.values, self.places = scores.graph, scores, values, places

    @cached_property
    def name(self) -> str:  # type: ignore[override]
        ones = self.graph.Expand(1.0, self.graph.Shape(self.places))
        return (mark(self.scores, self.places, ones) > 0.5).name


def mark(like: Symbol, places: Symbol, values: Symbol, axis: int = -1) -> Symbol:
    """Values at these places of each row, 0 elsewhere, in the shape of `like`, which is finite."""
    zeros = like * 0.0
    return like.graph.ScatterElements(zeros, places, values, axis=axis)


class OnnxOperations(Operations):
    """Appends nodes to the graph of `products`, for texts of the pieces and segments named.

    n: how many texts there are, (1,), where nodes are added now: fewer inside the branches of
    exits. firsts_only: the heads read nothing but the first piece of each text.
    """

    def __init__(
        self, products: Products, encoder: Encoder, names: Sequence[str], *, firsts_only: bool
    ) -> None:
        self.products, self.graph, self.encoder = products, products.graph, encoder
        self.most_pieces, self._own_layers = encoder.spec.max_pieces, set(encoder.modules())
        self.remembers = encoder.pruning.restore and not firsts_only
        self._layer = -1
        self._part("embeddings")
        pieces, segments = (Symbol(self.graph, name) for name in names)
        self.n = self.graph.Shape(pieces, start=0, end=1)
        self.n_pieces = self.graph.Shape(pieces, start=1, end=2)
        group = Group(self.n_pieces, self.n_pieces, self._positions())
        self.batch = Batch(*(cast(Any, part) for part in (pieces, segments, group)))

    def _part(self, name: str) -> None:
        """Names what the nodes added from now on belong to, in the current layer."""
        self.graph.part = name if self._layer < 0 else f"layer.{self._layer}.{name}"

    def _positions(self) -> Symbol | None:
        """0, 1, 2, …: where each piece stands, if that is needed."""
        encoder, spec = self.encoder, self.encoder.spec
        by_distance = encoder.relative_bias is not None or encoder.distances is not None
        if not (by_distance or spec.rotary_base or spec.window or self.remembers):
            return None
        here = self.graph.slice(np.arange(spec.max_pieces)[None], 0, self.n_pieces, axis=1)
        return self._expand(here, (1,)) if self._moves else here

    @property
    def _moves(self) -> bool:
        """True if where pieces stand differs from text to text: some leave."""
        return min(self.encoder.pruning.plan().pieces) < 1

    # How values are laid out

    def reshape(self, values: Symbol, *shape: int) -> Symbol:
        """(text × …, …) → (text, *shape), with −1 for what is left."""
        return self.graph.Reshape(values, self.graph.Concat(self.n, shape, axis=0))

    def _expand(self, values: Any, more: Any) -> Symbol:
        """Expands to all texts, and the shape `more`."""
        return self.graph.Expand(values, self.graph.Concat(self.n, more, axis=0))

    def _as(self, layout: str, values: Symbol, width: int | None = None) -> Symbol:
        """width: of pieces, if it is not the encoder's."""
        values.layout, values.width = layout, width
        return values

    def _column(self, x: Symbol) -> Symbol:
        return x if x.layout == "column" else self._as("column", self.reshape(x, -1, 1))

    def rows(self, x: Symbol) -> Symbol:
        if x.layout == "rows" or not self.products.flat:
            return x
        width = x.width or self.encoder.spec.width
        return self._as("rows", self.graph.Reshape(x, (-1, width)), width)

    def apart(self, x: Symbol) -> Symbol:
        if x.layout != "rows" or not self.products.flat:
            return x
        width = x.width or self.encoder.spec.width
        return self._as("apart", self.reshape(x, -1, width), width)

    def _gather(self, values: Any, places: Symbol) -> Symbol:
        """Gathers each text's own places: (text, piece, …), (text, place) → (text, place, …)"""
        indices = self.graph.Unsqueeze(places, (2,))
        return self.graph.GatherND(values, indices, batch_dims=1)

    def _sum_pieces(self, values: Symbol, n: Any) -> Symbol:
        """The sum over n pieces. (text, …, piece, width) → (text, …, width)"""
        ones = self.graph.constant(np.ones(self.most_pieces, dtype=np.float32))
        return self.graph.slice(ones, 0, n) @ values

    # Products and norms

    def embed(self, embeddings: Embeddings, batch: Batch) -> Symbol:
        graph = self.graph
        hidden = self.products.look_up(embeddings.piece.weight, cast(Any, batch.pieces))
        positions = None
        if embeddings.position is not None:
            positions = as_array(embeddings.position.weight)[embeddings.first_position :]
        if embeddings.segment is not None:
            table = as_array(embeddings.segment.weight)
            # RoBERTa: the same for all, whatever the tokenizer says of a pair
            if len(table) == 1 and positions is not None:
                positions = positions + table
            else:
                hidden = hidden + graph.Gather(table, graph.Min(batch.segments, (len(table) - 1,)))
        if positions is not None:
            hidden = hidden + graph.slice(graph.constant(positions), 0, self.n_pieces)
        hidden = self.norm(embeddings.norm, hidden)
        return self._as("apart", hidden, embeddings.piece.embedding_dim)

    def linear(self, layer: nn.Linear, x: Symbol, activation: str | None = None) -> Symbol:
        if x.layout in ("vector", "column") and layer not in self._own_layers:
            # float32: it is tiny, and what rounding loses there is not made good later
            out = as_array(layer.weight) @ self._column(x) + as_array(layer.bias)[:, None]
            self._as("column", out)
        else:
            if layer is self._block.attention.output:
                self._part("projections")
            elif layer in (self._block.inner, self._block.outer):
                self._part("feed_forward")
            (out,) = self.products.apply(self.rows(x), layer, slice(None))
            self._as("rows", out, layer.out_features)
        return out if activation is None else self.activate(activation, out)

    @property
    def _block(self) -> Any:
        return self.encoder.block_of(max(self._layer, 0))

    def linear_parts(self, layer: nn.Linear, x: Symbol, n: int) -> tuple[Symbol, ...]:
        self._part("feed_forward")
        width = layer.out_features // n
        parts = (slice(start, start + width) for start in range(0, n * width, width))
        return tuple(self.products.apply(self.rows(x), layer, *parts))

    def activate(self, name: str, x: Symbol) -> Symbol:
        if name not in ACTIVATIONS:
            raise UserError(
                f"The activation {name!r} cannot be exported to ONNX yet: use the torch runtime."
            )
        op, attributes = ACTIVATIONS[name]
        out = getattr(self.graph, op)(x, **attributes)
        return self._as(x.layout, x * out if name == "silu" else out, x.width)

    def norm(self, norm: nn.LayerNorm, x: Symbol) -> Symbol:
        """A sum is normed by two operators on purpose: fused, as SkipLayerNormalization, they took
        three to four times as long (1.31, x86).
        """
        numbers = [as_array(norm.weight), *(() if norm.bias is None else (as_array(norm.bias),))]
        return self.graph.LayerNormalization(self.rows(x), *numbers, axis=-1, epsilon=norm.eps)

    def dropout(self, dropout: nn.Dropout, x: Symbol) -> Symbol:
        return x

    def add(self, x: Symbol, residual: Symbol) -> Symbol:
        return self.rows(residual) + self.rows(x)

    # Attention

    def context(self, encoder: Encoder, texts: Group, whole: Group, origin: Any) -> Any:
        """Where pieces stand says it all."""
        return origin

    def project(
        self, attention: Attention, read: Symbol, state: State, *, firsts: bool
    ) -> Projected:
        """Three products of the same rows rather than one that is split up again: the copies of the
        split cost more than the larger product saves.
        """
        self._layer += 1
        self._part("projections")
        inner = attention.inner
        query, *others = (slice(start, start + inner) for start in range(0, 3 * inner, inner))
        if firsts:
            first = self.first_pieces(read, state.texts)
            parts = self.products.apply(self.rows(first), attention.qkv, query)
            parts += self.products.apply(self.rows(read), attention.qkv, *others)
        else:
            parts = self.products.apply(self.rows(read), attention.qkv, query, *others)
        self._part("attention")
        # (text, piece, attention_head × head_width) each
        return Projected(*(self.apart(self._as("rows", part, inner)) for part in parts))

    def rotate(self, projected: Projected, state: State, *, local: bool, firsts: bool) -> Projected:
        spec = self.encoder.spec
        base = spec.local_rotary_base if local and spec.local_rotary_base else spec.rotary_base
        cos, sin = rotary_angles(torch.arange(self.most_pieces), base, spec.head_width)
        tables = as_array(cos[:, 0]), as_array(sin[:, 0])  # (place, head_width / 2)
        places = self._expand(state.context, (1,))

        def turned(values: Symbol) -> Symbol:
            n_heads = self._block.attention.n_heads
            return self.graph.RotaryEmbedding(values, *tables, places, num_heads=n_heads)

        # a first piece stands at 0, where nothing is turned
        query = projected.query if firsts else turned(projected.query)
        return replace(projected, query=query, key=turned(projected.key))

    def attend(
        self,
        encoder: Encoder,
        layer: int,
        state: State,
        projected: Projected,
        wanted: Wanted,
        *,
        firsts: bool,
    ) -> Seen:
        attention, graph = encoder.block_of(layer).attention, self.graph
        bias, live = self._bias(layer, attention, state, projected, firsts=firsts)
        used = None if state.heads is None else state.heads.used
        inner, n_heads, scale = attention.inner, attention.n_heads, attention.scale
        query, key, value = projected.query, projected.key, projected.value
        weights = None
        if type(attention.weighting) is Softmax and used is None:
            # ONNX's own operator for attention says it all
            inputs = [query, key, value, *(() if bias is None else (bias,))]
            attributes: dict[str, Any] = {"q_num_heads": n_heads, "kv_num_heads": n_heads}
            if attention.disentangled is not None:  # else the operator scales as we do
                attributes["scale"] = scale
            if wanted:
                attributes["qk_matmul_output_mode"] = 3  # after softmax
                mixed, _, _, weights = graph.several(
                    "Attention", *inputs, n_outputs=4, unused=(1, 2), **attributes
                )
            else:
                mixed = graph.Attention(*inputs, **attributes)
        else:
            query, key, by_head = (self._split(attention, one) for one in (query, key, value))
            affinity = graph.FusedMatMul(query, key, transB=1, alpha=scale)
            affinity = affinity if bias is None else affinity + bias
            weights = attention.weighting(affinity, live, ops=self)
            if used is not None:
                weights = weights * used  # a head that is gone gives nothing and is not counted
            mixed = graph.Transpose(weights @ by_head, perm=[0, 2, 1, 3])
            mixed = graph.Reshape(mixed, (0, 0, inner))
        return Seen(self._as("apart", mixed, inner), weights, value)

    def _split(self, attention: Attention, values: Symbol) -> Symbol:
        """(text, piece, attention_head × head_width) → (text, attention_head, piece, head_width)"""
        shape = (0, 0, attention.n_heads, attention.inner // attention.n_heads)
        split = self.graph.Reshape(values, shape)
        return self.graph.Transpose(split, perm=[0, 2, 1, 3])

    def _bias(
        self, layer: int, attention: Attention, state: State, projected: Projected, *, firsts: bool
    ) -> tuple[Symbol | None, Symbol | None]:
        """Computes what is added to the affinities by where pieces stood, (text or 1,
        attention_head or 1, query, key), and the keys that may be read; None: nothing, all.
        """
        graph, spec, encoder = self.graph, self.encoder.spec, self.encoder
        if state.context is None:
            return None, None
        # how far each key stands ahead of each query, (text or 1, query, key)
        ahead = graph.Unsqueeze(state.context, (1,)) - graph.Unsqueeze(state.context, (2,))

        def first(values: Symbol, axis: int) -> Symbol:
            return graph.slice(values, 0, 1, axis=axis) if firsts else values

        bias = None
        if encoder.relative_bias is not None:
            bias = self.relative_bias(ahead)
            if not attention.has_all_heads:
                bias = graph.Gather(bias, tuple(attention.heads), axis=1)
            bias = first(bias, 2)
        if encoder.distances is not None:
            bias = self._disentangled(attention, projected, first(self.distances(ahead), 1))
        if not spec.is_local(layer) or spec.window // 2 >= spec.max_pieces - 1:
            return bias, None
        near = graph.Unsqueeze(graph.Abs(ahead) < (spec.window // 2 + 1,), (1,))
        near = first(near, 2)  # (text or 1, 1, query, key)
        if not isinstance(attention.weighting, Softmax | Entmax):
            return bias, near
        window = graph.Where(near, 0.0, _FAR)
        return (window if bias is None else bias + window), None

    def relative_bias(self, ahead: Symbol) -> Symbol:
        """MPNet's, looked up by distance. (text, attention_head, query, key)"""
        bias = cast(Any, self.encoder.relative_bias)
        farthest = min(self.most_pieces - 1, bias.FARTHEST)  # beyond it all share a bucket
        whole = bias(torch.arange(farthest + 1)[None])[0]  # (attention_head, place, place)
        # from −farthest to farthest
        by_distance = torch.cat([whole[:, farthest], whole[:, 0, 1:]], dim=1)
        near = self.graph.Clip(ahead, np.int64(-farthest), np.int64(farthest))
        by_head = self.graph.Gather(as_array(by_distance), near.plus(farthest), axis=1)
        return self.graph.Transpose(by_head, perm=[1, 0, 2, 3])

    def _reached(self) -> tuple[Symbol, Symbol]:
        """The part of the table of distances that a text can ask for, by its length: (1,) both."""
        distances = cast(Any, self.encoder.distances)
        reached = [distances.reached(length) for length in range(1, self.most_pieces + 1)]
        starts, stops = (0, *(one.start for one in reached)), (0, *(one.stop for one in reached))
        return self.graph.Gather(starts, self.n_pieces), self.graph.Gather(stops, self.n_pieces)

    def distances(self, ahead: Symbol) -> Symbol:
        """Tells which of the distances a text can ask for each pair has. (text, query, key)"""
        distances, farthest = cast(Any, self.encoder.distances), self.most_pieces - 1
        row = distances.bucket(torch.arange(self.most_pieces)[None])[0]
        # of keys from `farthest` behind to `farthest` ahead
        buckets = distances.span + torch.cat([row[farthest], row[0, 1:]])
        in_table = tuple(buckets.clamp(max=2 * distances.span - 1).tolist())
        return self.graph.Gather(in_table, ahead.plus(farthest)) - self._reached()[0]

    def _disentangled(
        self, attention: Attention, projected: Projected, pairs: Symbol
    ) -> Symbol | None:
        """c2p + p2c. pairs: (text, query, key) → (text, attention_head, query, key)"""
        graph, own, distances = self.graph, attention.disentangled, self.encoder.distances
        assert own is not None
        assert distances is not None
        # of all distances: where the weights are known, so are these
        places = torch.arange(self.most_pieces, device=self.encoder.device)[None]
        (terms,) = own(*distances([places], [self.most_pieces]), attention.qkv)
        bias = None
        if terms.keys is not None:  # here queries are as they are
            query = self._split(attention, projected.query)
            bias = self._compare(query, terms.keys * own.share, graph.Unsqueeze(pairs, (1,)))
        if terms.queries is not None:
            key = self._split(attention, projected.key)
            by_key = graph.Transpose(pairs, perm=[0, 2, 1])
            compared = self._compare(key, terms.queries, graph.Unsqueeze(by_key, (1,)))
            compared = graph.Transpose(compared, perm=[0, 1, 3, 2])
            bias = compared if bias is None else bias + compared
        return bias

    def _compare(self, rows: Symbol, projected: Tensor, places: Symbol) -> Symbol:
        """rows: (text, attention_head, piece, head_width), projected: (attention_head, distance,
        head_width), places: (text, 1, piece, other) → (text, attention_head, piece, other)
        """
        first = (cast(Any, self.encoder.distances).reached(self.most_pieces).start,)
        start, stop = (one - first for one in self._reached())
        embeddings = self.graph.constant(as_array(projected.transpose(1, 2)).copy())
        products = rows @ self.graph.slice(embeddings, start, stop, axis=2)
        places = self._expand(places, (len(projected), 1, 1))
        return self.graph.GatherElements(products, places, axis=-1)

    # Weightings

    def softmax(self, affinity: Symbol, chosen: Any) -> Symbol:
        if chosen is None or isinstance(chosen, AllLive):
            return self.graph.Softmax(affinity, axis=-1)
        if isinstance(chosen, Best) and chosen.scores is affinity:
            weights = self.graph.Softmax(chosen.values, axis=-1)
            return mark(affinity, chosen.places, weights)
        weights = self.graph.Softmax(self.where(chosen, affinity, _LOWEST), axis=-1)
        return self.where(chosen, weights, 0.0)

    def entmax(self, affinity: Symbol, alpha: NDArray[Any] | float, live: Symbol | None) -> Symbol:
        """Newton's steps on the reach, in a loop that ends when the last row is settled
        (attention/simplex.py).

            w_k ∝ v_k^β,   v_k = [1 − gap_k / reach]₊,
            reach such that E = (reach / β) (Σ_k v_k^β)^{1/β} − 1 = 0
        """
        graph, beta = self.graph, 1 / (np.asarray(alpha, dtype=np.float64) - 1)
        if live is not None:
            affinity = self.where(live, affinity, _LOWEST)
        best = graph.ReduceMax(affinity, (-1,), keepdims=1)
        behind = affinity - best  # −gap (text, attention_head, query, key)
        zeros = best * 0.0  # (text, attention_head, query, 1)
        body = _entmax_round(graph, behind, beta)
        start = zeros + beta.astype(np.float32)
        reach, _ = graph.several(
            "Loop", MOST_ROUNDS, np.bool_(True), start, zeros + 1.0, n_outputs=2, body=body
        )
        powers, _, total = _entmax_powers(graph, behind, reach, beta)
        weights = powers / total
        return weights if live is None else self.where(live, weights, 0.0)

    def per_head(self, numbers: Tensor, heads: Any) -> NDArray[Any]:
        """Numbers are known where a file is written; all heads are shown there."""
        return as_array(numbers)[:, None, None]

    def best(self, scores: Symbol, live: Any, share: float) -> Symbol:
        graph = self.graph
        all_live, n = live is None or isinstance(live, AllLive), graph.Shape(scores, start=-1)
        # in float64, as torch counts: 0.05 × 20 has to leave one key, not two
        n_live = graph.cast(n if all_live else live, np.float64)
        n_live = n_live if all_live else graph.ReduceSum(n_live, (-1,), keepdims=1)
        n_kept = graph.Ceil(n_live * np.float64(share) - np.float64(1e-9))
        if all_live:
            return Best(scores, *graph.top(scores, graph.cast(n_kept, np.int64), axis=-1))
        _, order = graph.top(self.where(live, scores, _LOWEST), n, axis=-1)
        is_kept = graph.cast(graph.range(0, n), np.float64) < n_kept
        is_kept = graph.Expand(graph.cast(is_kept, np.float32), graph.Shape(order))
        return mark(scores, order, is_kept) > 0.5

    def blocks(
        self, affinity: Symbol, axis: int, size: int, *, first_alone: bool
    ) -> tuple[Symbol, Symbol]:
        graph, shift = self.graph, size - 1 if first_alone else 0
        n = graph.Shape(affinity, start=axis, end=axis + 1 or 4)
        block = graph.range(0, n).plus(shift) / (size,)  # (neighbour,)
        n_blocks = graph.ReduceMax(block, keepdims=1).plus(1)
        zero_and_one = np.array([0, 1], dtype=np.float32)
        return block, graph.OneHot(block, n_blocks, zero_and_one, axis=-1)

    def block_sums(self, values: Any, of_queries: Symbol, of_keys: Symbol) -> Any:
        if isinstance(values, AllLive):
            return values
        by_block = self.graph.Transpose(of_queries, perm=[1, 0])
        return by_block @ self.graph.cast(values, np.float32) @ of_keys

    def real_queries(self, affinity: Symbol, live: Any) -> float:
        return 1.0

    def live_like(self, affinity: Symbol, live: Any) -> Any:
        if live is None:
            return AllLive()
        whole = self.graph.Expand(live, self.graph.Shape(affinity))
        return Live(self.graph, whole.name)

    # Pruning

    def add_received(
        self, importance: Symbol | None, seen: Seen, factor: Symbol | None, *, by_value: bool
    ) -> Symbol:
        """The first piece is given infinity once, which it keeps. (text, piece)"""
        graph = self.graph
        self._part("selection")
        n = graph.Shape(seen.value, start=1, end=2)
        n_heads = self._block.attention.n_heads
        received = self._sum_pieces(seen.received, n)  # (text, attention_head, piece)
        if by_value:
            value = graph.Reshape(seen.value, (0, 0, n_heads, -1))
            lengths = graph.ReduceL2(value, (3,), keepdims=0)
            received = received * graph.Transpose(lengths, perm=[0, 2, 1])
        if importance is None:
            first = np.zeros(self.most_pieces, dtype=np.float32)
            first[0] = np.inf
            importance = graph.slice(graph.constant(first), 0, n)
        total = self._sum_pieces(received, (n_heads,)) + importance
        return total if factor is None else total * factor

    def keep_heads(self, state: State, seen: Seen, n: int) -> HeadsLeft:
        graph, n_heads = self.graph, self.encoder.spec.n_attention_heads
        sizes = self._sum_pieces(graph.Abs(seen.mixed), state.texts.n_now)
        by_head = self.reshape(sizes, n_heads, -1)
        size = total = graph.ReduceSum(by_head, (2,), keepdims=0)  # (text, attention_head)
        before: HeadsLeft | None = state.heads
        if before is not None:
            total = size + before.importance
        used = None if before is None else before.used
        if n == (n_heads if before is None else before.n):
            return HeadsLeft(total, n, used)
        score = total
        if used is not None:  # those that are gone get −1, below every sum
            still = self.reshape(used, -1)
            score = total * still + (still - 1.0)
        _, places = graph.top(score, (n,))
        ones = graph.Expand(1.0, graph.Shape(places))
        return HeadsLeft(total, n, self.reshape(mark(size, places, ones, 1), n_heads, 1, 1))

    def select(self, state: State, plan: Plan, layer: int, *, fuse: bool) -> Choice:
        graph, texts, importance = self.graph, state.texts, state.importance
        # how many pieces stay of texts of 0, 1, 2, … pieces
        counts = (0, *plan.counts(layer, range(1, self.most_pieces + 1)))
        n_kept = graph.Gather(counts, self.n_pieces)  # (1,)
        if not (fuse or self.remembers):
            _, best = graph.top(importance, n_kept, sorted=0)
            how = Leaving(self._sort(best, n_kept))
        else:
            score = graph.slice(importance, 0, texts.n_real, axis=1)
            _, order = graph.top(score, texts.n_real)
            real = graph.slice(order, n_kept, texts.n_real, axis=1)
            # the place of each text's fused piece, which always leaves, (text, 0 or 1)
            fused = self._expand(graph.range(texts.n_real, texts.n_now), (1,))
            removed = graph.Concat(real, fused, axis=1)
            how = Leaving(self._sort(graph.slice(order, 0, n_kept, axis=1), n_kept), removed, real)
        origin = state.origin
        if origin is not None:
            origin = self._gather(origin, how.kept)
        kept = self._gather(importance, how.kept)
        group, shares = Group(n_kept, n_kept), None
        if fuse:
            group, origin, kept, shares = self._fuse(n_kept, how, importance, origin, kept)
        return Choice(group, origin, kept, (how, shares))

    def _sort(self, places: Symbol, n: Symbol) -> Symbol:
        """The n places in ascending order."""
        return self.graph.top(places, n, largest=0)[0]

    def _fuse(
        self, n_kept: Symbol, how: Leaving, importance: Any, origin: Any, kept: Symbol
    ) -> tuple[Group, Any, Symbol, Symbol]:
        """Adds a piece if any leave, and gives the shares of the leaving pieces in it, (text, 0 or
        1, leaving piece): no row where no piece leaves, so that nothing is added there.
        """
        graph = self.graph
        assert how.removed is not None
        leaving = self._gather(importance, how.removed)  # (text, leaving piece)
        n_removed = graph.Shape(how.removed, start=1)

        def total(values: Symbol) -> Symbol:
            return self._sum_pieces(graph.Unsqueeze(values, (2,)), n_removed)  # (text, 1)

        clamped = graph.Max(leaving, _TINY)
        n_fused = graph.Min(n_removed, (1,))
        shares = graph.Unsqueeze(clamped / total(clamped), (1,))
        shares = graph.slice(shares, 0, n_fused, axis=1)
        both = (kept, graph.slice(total(leaving), 0, n_fused, axis=1))
        if origin is not None:
            zeros = self._expand((0,), n_fused)
            origin = graph.Concat(origin, zeros, axis=1)
        group = Group(n_kept, n_kept + n_fused)
        return group, origin, graph.Concat(*both, axis=1), shares

    def keep(self, choice: Choice, hidden: Symbol, mixed: Symbol) -> tuple[Symbol, Symbol]:
        how, shares = choice.how

        def kept(values: Symbol) -> Symbol:
            values = self.apart(values)
            staying = self._gather(values, how.kept)
            if shares is not None:
                mean = shares @ self._gather(values, how.removed)  # (text, 0 or 1, width)
                staying = self.graph.Concat(staying, mean, axis=1)
            return self._as("apart", staying, values.width)

        return kept(hidden), kept(mixed)

    def remember(self, state: State, choice: Choice) -> tuple[Removed, ...]:
        real = choice.how[0].removed_real
        hidden = self._gather(self.apart(state.hidden), real)
        return (*(state.removed or ()), Removed(hidden, self._gather(state.origin, real)))

    def restore(self, state: State) -> State:
        graph, n = self.graph, state.texts.n_real

        def of_texts(values: Symbol, texts: Symbol | None) -> Symbol:
            return values if texts is None else graph.Gather(values, texts)

        states = [graph.slice(self.apart(state.hidden), 0, n, axis=1)]
        origins = [graph.slice(state.origin, 0, n, axis=1)]
        for removed in state.removed:
            states.append(of_texts(removed.hidden, removed.texts))
            origins.append(of_texts(removed.origin, removed.texts))
        places = graph.Concat(*origins, axis=1)  # (text, piece)
        # the piece that stands at 0, 1, 2, …
        _, order = graph.top(places, self.n_pieces, largest=0)
        hidden = self._gather(graph.Concat(*states, axis=1), order)
        return replace(state, hidden=self._as("apart", hidden), texts=state.whole)

    def keep_texts(self, encoder: Encoder, state: State, stays: Symbol) -> State:
        """stays: the places of the texts that stay. States of removed pieces are gathered once, at
        the end.
        """
        hidden = self.apart(state.hidden)  # while there are as many texts as before
        self.n = self.graph.Shape(stays)

        def kept(values: Any) -> Any:
            return None if values is None else self.graph.Gather(values, stays)

        def still(removed: Removed) -> Removed:
            return replace(removed, texts=stays if removed.texts is None else kept(removed.texts))

        heads, origin = state.heads, state.origin
        if heads is not None:
            heads = HeadsLeft(kept(heads.importance), heads.n, kept(heads.used))
        if self._moves:  # until then pieces stand alike in all texts
            origin = kept(origin)
        return replace(
            state,
            hidden=self._as("apart", kept(hidden)),
            origin=origin,
            importance=kept(state.importance),
            heads=heads,
            removed=None if state.removed is None else tuple(map(still, state.removed)),
            context=origin,
        )

    # What heads read of a text

    def first_pieces(self, hidden: Symbol, texts: Group) -> Symbol:
        return self._as("vector", self.graph.slice(self.apart(hidden), 0, 1, axis=1))

    def firsts(self, texts: Group) -> tuple[Group, None]:
        return Group((1,), (1,)), None

    def mean_by_text(self, hidden: Symbol, texts: Group) -> Symbol:
        pieces = self.apart(hidden)
        n = self.graph.Shape(pieces, start=1, end=2)
        mean = self._sum_pieces(pieces, n) / self.graph.cast(n, np.float32)
        return self._as("vector", mean)

    def neighbours(self, hidden: Symbol, texts: Group) -> Symbol:
        graph, pieces = self.graph, self.apart(hidden)
        padded = graph.Pad(pieces, (1, 1), "", (1,))  # (text, 1 + piece + 1, width)
        before = graph.slice(padded, 0, -2, axis=1)
        after = graph.slice(padded, 2, None, axis=1)
        joined = graph.Concat(before, pieces, after, axis=2)
        return self._as("apart", joined, 3 * self.encoder.spec.width)

    def read_both_ways(self, lstm: nn.LSTM, hidden: Symbol, texts: Group) -> Symbol:
        graph = self.graph
        steps = graph.Transpose(self.apart(hidden), perm=[1, 0, 2])  # (piece, text, width)
        first = graph.slice(steps, 0, 1)
        states = []
        for read, direction, suffix in ((first, "forward", ""), (steps, "reverse", "_reverse")):
            gates = [_reorder_gates(as_array(one)) for one in lstm_weights(lstm, suffix)]
            weights = (*gates[:2], np.concatenate(gates[2:]))
            attributes: dict[str, Any] = {"hidden_size": lstm.hidden_size, "direction": direction}
            inputs = (read, *(one[None] for one in weights))
            _, last = graph.several("LSTM", *inputs, n_outputs=2, **attributes)
            states.append(graph.Reshape(last, (-1, lstm.hidden_size)))
        return self._as("vector", graph.Concat(*states, axis=1))

    # Arithmetic

    def take(self, values: Any, places: Any, axis: int = 0) -> Symbol:
        return self.graph.Gather(values, places, axis=axis)

    def concat(self, *values: Symbol) -> Symbol:
        if all(value.layout in ("vector", "column") for value in values):
            return self._as("column", self.graph.Concat(*map(self._column, values), axis=1))
        return self.graph.Concat(*values, axis=-1)

    def dot(self, x: Symbol, vector: Tensor) -> Symbol:
        """(text, piece)"""
        return self.apart(x) @ as_array(vector)

    def exp(self, x: Symbol) -> Symbol:
        return self.graph.Exp(x)

    def tanh(self, x: Symbol) -> Symbol:
        return self.graph.Tanh(x)

    def sum(self, x: Symbol) -> Symbol:
        return self.graph.ReduceSum(x, (-1,), keepdims=1)

    def where(self, chosen: Symbol, x: Any, otherwise: Any) -> Symbol:
        """Where all keys are live, something is chosen in every row."""
        if isinstance(otherwise, AllLive):
            return x
        if isinstance(otherwise, Live):  # ONNX Runtime chooses between numbers alone
            x, otherwise = (self.graph.cast(one, np.float32) for one in (x, otherwise))
            return self.graph.Where(chosen, x, otherwise) > 0.5
        return self.graph.Where(chosen, x, otherwise)

    def both(self, a: Symbol, b: Any) -> Symbol:
        return a if isinstance(b, AllLive) else self.graph.And(a, b)

    def any(self, x: Symbol) -> Symbol:
        return self.graph.ReduceMax(self.graph.cast(x, np.float32), (-1,), keepdims=1) > 0.5


def _entmax_round(graph: Graph, behind: Symbol, beta: NDArray[np.float64]) -> Graph:
    """Builds one round: (round, unsettled, reach, excess) → (unsettled, reach, excess)

    A step takes β E A^{1−1/β} / B off the reach, with A = Σ_k v_k^β and B = Σ_k v_k^{β−1}. A row
    that has settled stays where it is, however many rounds the others need.
    """
    body, rows = graph.body(), ("text", "head", "query", 1)
    kinds = {"round": (np.int64, ()), "unsettled": (np.bool_, ()), "reach": (np.float32, rows)}
    # named after their layer: the loops of two layers must not share names
    body.inputs = [
        Value(f"{name}_of_{behind}", *kind)
        for name, kind in (*kinds.items(), ("over", kinds["reach"]))
    ]
    reach, remaining = (Symbol(body, value.name) for value in body.inputs[2:])
    power, inverse = beta.astype(np.float32), (1 / beta).astype(np.float32)
    _, lower, total = _entmax_powers(body, behind, reach, beta)
    norm = body.Pow(total, inverse)
    excess = reach * norm * inverse - 1.0
    step = excess * total * power / (norm * lower)
    moves = remaining > 0.0
    # one more step raises what is left to the power min(β, 2)
    close = (4 * _EPSILON ** (1 / np.minimum(beta, 2))).astype(np.float32)
    next_reach = body.Where(moves, reach - step, reach)
    next_remaining = body.Where(moves, excess - close, remaining)
    unsettled = body.ReduceMax(next_remaining, keepdims=0) > 0.0
    body.outputs = [
        Value(unsettled.name, np.bool_, ()),
        Value(next_reach.name, np.float32, rows),
        Value(next_remaining.name, np.float32, rows),
    ]
    return body


def _entmax_powers(
    graph: Graph, behind: Symbol, reach: Symbol, beta: NDArray[np.float64]
) -> tuple[Symbol, Symbol, Symbol]:
    """v^β (text, attention_head, query, key), B and A, (text, attention_head, query, 1) each."""
    v = graph.Relu(graph.Div(behind, reach) + 1.0)
    if (beta == 2).all():
        lower = v  # α = 1.5 needs no logarithm
    elif (beta == 1).all():
        lower = graph.Sign(v)
    else:
        logarithm = graph.Log(graph.Max(v, _TINY))
        lower = graph.Exp(logarithm * (beta - 1).astype(np.float32))
    powers = lower * v
    lower, total = (graph.ReduceSum(one, (-1,), keepdims=1) for one in (lower, powers))
    return powers, lower, total


def _reorder_gates(values: NDArray[Any]) -> NDArray[Any]:
    """Gates in the order of ONNX: torch has input, forget, cell, output; ONNX input, output,
    forget, cell.
    """
    entering, forget, cell, output = np.split(values, 4)
    return np.concatenate([entering, output, forget, cell])
