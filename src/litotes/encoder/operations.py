"""What a forward pass is made of: the operations that walk.py, weightings, prunings and heads call,
each with the torch line that defines it, gradients included.

The walk is written once. A set of operations says how it is computed: `Operations` by torch;
kernels on a GPU (kernels/triton_operations.py) and the nodes of an ONNX file
(exporting/onnx_operations.py) override what they compute otherwise. A value is whatever the set
makes of it: a tensor, or the name of one in a file. Values can be added, subtracted, multiplied,
divided (+ − * /) and compared (> <) with each other and with numbers; nothing but an operation may
ask for their sizes. Shapes are given as torch has them:

    piece               the pieces of all texts, laid end to end
    rows of affinities  (text, attention_head, query, key)

How many pieces stay in a text after a layer follows from its length and the plan, so boundaries
(`State.texts`) are known beforehand wherever the set keeps them; only which pieces stay is found
out by the walk.

Only attention sees texts as rows. On a CPU each text is a block of rows of its own: no padding
exists at all, and a text's answer cannot depend on its batch mates. On an accelerator one launch
for all texts beats many small ones, so the rows are filled up to the longest text and `live` says
where the real keys are; so they are on a CPU for many short texts of nearly one length
(`Layout.alike`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_sequence
from torch.utils.checkpoint import checkpoint

from litotes.encoder.layout import Layout, Plan
from litotes.encoder.simplex import entmax

Value = Any
"""A tensor, as a set of operations has it."""

Texts = Any
"""Where each text's pieces begin and end, as a set of operations has it."""

Part = Any
"""The encoder, or one of its parts with their weights (encoder.py)."""

S = TypeVar("S")


@dataclass(frozen=True)
class Encoding:
    """The hidden states that heads read, (piece, width), of texts laid end to end.

    layout: where each text's pieces are. origin: the place each piece had in its text before a
    pruning took others away, (piece,); −1 for a piece that stands for those gone.
    """

    hidden: Value
    layout: Texts
    origin: Value


@dataclass(frozen=True)
class State:
    """The state that goes from layer to layer: the pieces still there.

    hidden: (piece, width). texts, whole: the boundaries now, and those the walk began with.
    origin: as in `Encoding`. importance: of each piece, as the pruning measures it, (piece,).
    heads: the attention heads each text still uses, and their importance. removed: what left, if it
    will be restored. context: what all layers share until pieces leave. None: nothing yet.
    """

    hidden: Value
    texts: Texts
    whole: Texts
    origin: Value
    importance: Value = None
    heads: Any = None
    removed: Any = None
    context: Any = None

    @property
    def encoding(self) -> Encoding:
        return Encoding(self.hidden, self.texts, self.origin)


@dataclass(frozen=True)
class Wanted:
    """The outputs asked of a layer's attention besides the gathered values.

    importance: what each piece received; by_value: weighted by the lengths of the values that
    moved. head_sizes: how large each attention head's outputs are. weights: the weights
    themselves, for an observer.
    """

    importance: bool = False
    by_value: bool = False
    head_sizes: bool = False
    weights: bool = False

    def __bool__(self) -> bool:
        return self.importance or self.head_sizes or self.weights


@dataclass(frozen=True)
class Seen:
    """The outputs of one layer's attention.

    mixed: what each piece gathered, (piece, attention_head × head_width).
    The others only where they were wanted, in a form of the set's own; torch's:
    received: the weight each piece got from all queries of its text, (piece, attention_head).
    value: (piece, attention_head, head_width).
    head_sizes: how large each attention head's outputs are; torch reads that off `mixed`.
    weights: per block of rows (text, attention_head, query, key), padding included.
    """

    mixed: Value
    received: Value = None
    value: Value = None
    weights: Sequence[Value] = ()
    head_sizes: Value = None


@dataclass(frozen=True)
class Choice:
    """Which pieces go on: what `State` holds of them afterwards, and how to find them.

    how: the set's own.
    """

    texts: Texts
    origin: Value
    importance: Value
    how: Any


FUSED = -1
"""The origin of a piece that stands for all pieces removed from its text."""


def _gelu_tanh(x: Tensor) -> Tensor:
    return functional.gelu(x, approximate="tanh")


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "gelu_new": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "relu": functional.relu,
    "silu": functional.silu,
}


class Operations:
    """One way to compute a walk; here by torch, on a CPU and on any device where no kernel is
    faster.
    """

    # Products and norms: pieces in, pieces out

    def embed(self, embeddings: Part, batch: Any) -> Value:
        """norm(piece + position + segment), of those tables there are. (piece, embedding_width)

        Positions count from `first_position`; a segment beyond its table's end takes its last row.
        """
        hidden = embeddings.piece(batch.pieces)  # (piece, embedding_width)
        if embeddings.position is not None:
            hidden = hidden + embeddings.position(batch.positions + embeddings.first_position)
        if embeddings.segment is not None:
            # RoBERTa has a single segment, whatever the tokenizer says of a pair
            segments = batch.segments.clamp(max=embeddings.segment.num_embeddings - 1)
            hidden = hidden + rows_of_few(embeddings.segment.weight, segments)
        return self.norm(embeddings.norm, hidden)

    def linear(self, layer: nn.Linear, x: Value, activation: str | None = None) -> Value:
        """act(W x + b); activation: a name in ACTIVATIONS. (…, input) → (…, output)"""
        return layer(x) if activation is None else ACTIVATIONS[activation](layer(x))

    def linear_parts(self, layer: nn.Linear, x: Value, n: int) -> tuple[Value, ...]:
        """W x + b as n parts of equal width. (…, input) → n times (…, output / n)"""
        return layer(x).chunk(n, dim=-1)

    def activate(self, name: str, x: Value) -> Value:
        """An activation by its name in ACTIVATIONS."""
        return ACTIVATIONS[name](x)

    def norm(self, norm: nn.LayerNorm, x: Value) -> Value:
        """(x − mean) / √(variance + ε) × gain + offset. (piece, width)"""
        return norm(x)

    def add_norm(self, norm: nn.LayerNorm, x: Value, residual: Value) -> Value:
        """norm(residual + x). (piece, width)"""
        return self.norm(norm, self.add(x, residual))

    def add(self, x: Value, residual: Value) -> Value:
        """Residual + x. (piece, width)"""
        return residual + x

    def dropout(self, dropout: nn.Dropout, x: Value) -> Value:
        """Zeros by chance, in training."""
        return dropout(x)

    # Attention

    def context(self, encoder: Part, texts: Texts, whole: Texts, origin: Value) -> Any:
        """Makes what all layers share until pieces leave: where each text's rows lie, how far apart
        their pieces stand. In the set's own form; it goes into `State.context`.
        """
        return make_contexts(encoder, texts, whole, origin) if texts.n_texts else ()

    def project(self, attention: Part, read: Value, state: State, *, firsts: bool) -> Any:
        """Queries, keys and values of all pieces; firsts: queries of each text's first piece alone.

        In the set's own form; torch's: (piece, attention_head, head_width) each.
        """
        used, texts = None if state.heads is None else state.heads.used, state.texts
        if not firsts:
            source = attention.project(read)  # (piece, 3, attention_head, head_width)
            query, key, value = select_heads(source, used, texts).unbind(1)
            return Projected(query, key, value, source)
        asking = self.first_pieces(read, texts)
        queries = attention.project_part(asking, slice(attention.inner))
        source = attention.project_part(read, slice(attention.inner, None))
        if used is not None:
            queries = select_heads(queries, used, texts.firsts)
        key, value = select_heads(source, used, texts).unbind(1)
        return Projected(queries[:, 0], key, value, source)

    def rotate(self, projected: Any, state: State, *, local: bool, firsts: bool) -> Any:
        """Queries and keys turned by where they stand (Su et al. 2021, arXiv 2104.09864, §3.2), so
        that their product knows how far apart they are:

            x'_j       = x_j cos(p ω_j) − x_{j+d/2} sin(p ω_j)
            x'_{j+d/2} = x_{j+d/2} cos(p ω_j) + x_j sin(p ω_j)     ω_j = θ^{−2j/d},  j = 0 … d/2 − 1

        for a piece at place p and an attention head of width d. Local layers have a θ of their own.
        """
        cos, sin = state.context[local].angles
        starts = state.texts.starts
        of_queries = (cos[starts], sin[starts]) if firsts else (cos, sin)
        query, key = _turn(projected.query, *of_queries), _turn(projected.key, cos, sin)
        return replace(projected, query=query, key=key)

    def attend(
        self,
        encoder: Part,
        layer: int,
        state: State,
        projected: Any,
        wanted: Wanted,
        *,
        firsts: bool,
    ) -> Seen:
        """Gathers for each piece the values of those pieces of its text that it may read:

            mixed_q = Σ_k weights[q, k] value_k
            weights = weighting(query · key / √d + what the family adds for where they stand)

        firsts: queries are those of first pieces, mixed is (text, …). Attention heads that a text
        has lost (`state.heads`) give zeros and are not counted.
        """
        attention = encoder.block_of(layer).attention
        keys: Context = state.context[encoder.spec.is_local(layer)]
        queries = keys.of_firsts() if firsts else keys
        used = None if state.heads is None else state.heads.used
        mixed, received, weights = [], [], []
        for q, k, v, options in _blocks(attention, projected, queries, keys, used):
            if not wanted:
                mixed.append(attention.weighting.attend(q, k, v, **options))
                continue
            gathered, own = attention.weighting.attend_with_weights(q, k, v, **options)
            live = options["live"]
            # padding has queries, too
            own = own.detach() if live is None else own.detach().masked_fill(~live.mT, 0.0)
            mixed.append(gathered)
            # (text, attention_head, key, 1)
            received.append(own.sum(-2, dtype=torch.float32).unsqueeze(-1))
            if wanted.weights:
                weights.append(own)

        def join(blocks: Sequence[Tensor], rows: Rows) -> Tensor:
            """Back to (piece, attention_head, …), all heads in their places."""
            return scatter_heads(rows.join(blocks), used, rows.layout, attention.n_heads)

        gathered = join(mixed, queries.rows).flatten(1)
        if not wanted:
            return Seen(gathered)
        return Seen(
            gathered, join(received, keys.rows).squeeze(-1), projected.source[:, -1], tuple(weights)
        )

    # From affinities to weights: what a weighting calls

    def softmax(self, affinity: Value, chosen: Value | None) -> Value:
        """exp(a_k) / Σ_j exp(a_j) over the chosen keys (None: all), exactly 0 for the others and
        in a row without any.
        """
        if chosen is None:
            return affinity.softmax(-1)
        weights = affinity.masked_fill(~chosen, torch.finfo(affinity.dtype).min).softmax(-1)
        return weights.masked_fill(~chosen, 0.0)

    def entmax(self, affinity: Value, alpha: Value | float, live: Value | None) -> Value:
        """[(α − 1) a_k − τ]₊^{1/(α−1)} over the live keys (None: all), exactly 0 for the others.

        alpha: a number, or one that `per_head` has laid out.
        """
        if live is None:
            return entmax(affinity, alpha)
        weights = entmax(affinity.masked_fill(~live, torch.finfo(affinity.dtype).min), alpha)
        # dead keys are 0 already, but not in a row of nothing else
        return weights.masked_fill(~live, 0.0)

    def per_head(self, numbers: nn.Parameter | Value, heads: Value | None) -> Value:
        """A number for each attention head, (attention_head,), laid out to meet an affinity: (text
        or 1, attention_head, 1, 1).

        heads: which heads an affinity shows, as the weighting was told.
        """
        shown = numbers[None] if heads is None else numbers[heads]
        return shown[:, :, None, None]

    def best(self, scores: Value, live: Value | None, share: float) -> Value:
        """Marks the ⌈share × live⌉ highest live scores of each row; of equals the earlier one.
        Booleans in the shape of `scores`.
        """
        live = self.live_like(scores, live)
        n_live = live.sum(-1, keepdim=True, dtype=torch.float64)
        # 0.05 × 20 is 1.0000000000000009 in floating point, and has to leave one key, not two
        n_kept = torch.ceil(share * n_live - 1e-9)  # (…, row, 1)
        ranked = scores.detach().masked_fill(~live, -torch.inf)
        order = ranked.argsort(dim=-1, descending=True, stable=True)
        places = torch.arange(scores.shape[-1], device=scores.device)
        return torch.zeros_like(live).scatter(-1, order, places < n_kept)

    def blocks(
        self, affinity: Value, axis: int, size: int, *, first_alone: bool
    ) -> tuple[Value, Value]:
        """The neighbours along an axis, −2 queries or −1 keys, in blocks of so many: the block of
        each, (neighbour,), and the same as ones and zeros, (neighbour, block).

        first_alone: the first is a block by itself.
        """
        n, shift = affinity.shape[axis], size - 1 if first_alone else 0
        block = (torch.arange(n, device=affinity.device) + shift) // size
        # computed, not read from the tensor: that would make a device wait
        n_blocks = (n - 1 + shift) // size + 1
        return block, functional.one_hot(block, n_blocks).to(affinity)

    def block_sums(self, values: Value, of_queries: Value, of_keys: Value) -> Value:
        """The sums of weights, or of booleans, over blocks of queries and of keys, as ones and
        zeros say. (…, query, key) → (…, query_block, key_block)
        """
        return of_queries.float().T @ values.float() @ of_keys.float()

    def real_queries(self, affinity: Value, live: Value | None) -> Value | float:
        """1 for the queries that are a text's own pieces, 0 for padding, (text, 1, query, 1); or
        just 1 where all are.
        """
        if live is None or affinity.shape[-2] != affinity.shape[-1]:
            return 1.0
        return live.expand_as(affinity).diagonal(dim1=-2, dim2=-1).unsqueeze(-1)

    def live_like(self, affinity: Value, live: Value | None) -> Value:
        """Tells which keys are live, in the shape of `affinity`."""
        if live is None:
            return torch.ones_like(affinity, dtype=torch.bool)
        return live.expand_as(affinity)

    # Pruning: who goes on

    def add_received(
        self, importance: Value | None, seen: Seen, factor: Value | None, *, by_value: bool
    ) -> Value:
        """(importance + Σ_heads received) × factor, without a gradient; None: nothing so far, no
        factor. (piece,)
        """
        received = seen.received.detach()  # (piece, attention_head)
        if by_value:
            received = received * seen.value.detach().float().norm(dim=-1)
        total = received.sum(-1) if importance is None else importance + received.sum(-1)
        return total if factor is None else (total * factor).detach()

    def add_up(self, state: State) -> Value:
        """Importance where no piece leaves: `add_received` may put its work off until `select`."""
        return state.importance

    def keep_heads(self, state: State, seen: Seen, n: int) -> Any:
        """Adds Σ_t Σ_d |mixed_{h,t,d}| to the importance of each text's attention heads; the n most
        important of those left go on. Gives the next `State.heads`.
        """
        n_heads = seen.received.shape[1]
        sizes = seen.mixed.detach().float().abs().unflatten(1, (n_heads, -1)).sum(-1)
        before = state.heads
        if before is None:
            zeros = torch.zeros(state.texts.n_texts, n_heads, device=sizes.device)
            before = HeadsLeft(zeros)
        total = before.importance.index_add(0, state.texts.texts, sizes)  # (text, attention_head)
        used = before.used
        if n == (n_heads if used is None else used.shape[1]):
            return HeadsLeft(total, used)
        if used is None:
            return HeadsLeft(total, total.topk(n).indices.sort().values)
        best = total.gather(1, used).topk(n).indices
        return HeadsLeft(total, used.gather(1, best).sort().values)

    def select(self, state: State, plan: Plan, layer: int, *, fuse: bool) -> Choice | None:
        """The most important pieces of each text, as many as the plan says stay after `layer`; its
        first always does, and of equals the earlier one. None: all of them.

        fuse: one piece more in every text that loses any, in the place of all it has lost.
        """
        counts = plan.counts(layer, state.whole.lengths)
        if tuple(counts) == state.texts.n_real:
            return None
        how = Leaving.of(state, counts, fuses=fuse)
        kept = how.kept_places
        if not fuse:
            return Choice(how.kept, state.origin[kept], state.importance[kept], how)
        # the fused piece is as important as all it stands for together, (text,)
        sums = torch.zeros(how.kept.n_texts, device=kept.device)
        sums = sums.index_add(0, how.removed.texts, state.importance[how.removed_places])
        importance = torch.cat([state.importance[kept], sums])[how.fused_places]
        origin = torch.cat([state.origin[kept], torch.full_like(how.kept.counts, FUSED)])
        return Choice(how.kept_and_fused, origin[how.fused_places], importance, how)

    def keep(self, choice: Choice, hidden: Value, mixed: Value) -> tuple[Value, Value]:
        """Both, of the pieces that go on; a fused piece is the mean of those that leave, weighted
        by importance. (piece, width) → (new piece, width)
        """
        return choice.how.keep(hidden), choice.how.keep(mixed)

    def remember(self, state: State, choice: Choice) -> Any:
        """`State.removed`, with the states of the pieces that leave now, but of no fused ones."""
        how, texts, whole = choice.how, state.texts, state.whole
        fused = texts.fused or (0,) * texts.n_texts
        n_real = [n - fused for n, fused in zip(how.removed.lengths, fused, strict=True)]
        real = Layout.of(n_real, texts.device)
        leaving = how.removed_places[how.removed.starts[real.texts] + real.positions]
        places = whole.starts[real.texts] + state.origin[leaving]
        return (*(state.removed or ()), RemovedPieces(state.hidden[leaving], places))

    def restore(self, state: State) -> State:
        """Restores all pieces the walk began with, those removed in the state they left in."""
        whole, real = state.whole, Layout.of(state.texts.n_real, state.texts.device)
        survivors = state.texts.starts[real.texts] + real.positions
        places = [whole.starts[real.texts] + state.origin[survivors]]
        states = [state.hidden[survivors]]
        for removed in state.removed:
            places.append(removed.places)
            states.append(removed.hidden)
        joined = torch.cat(states)
        hidden = torch.zeros_like(joined).index_copy(0, torch.cat(places), joined)
        return replace(state, hidden=hidden, texts=whole, origin=whole.positions)

    def keep_texts(self, encoder: Part, state: State, stays: Value) -> State:
        """The state without the texts that leave whole. stays: (text,), bool"""
        chosen = stays.tolist()
        places = stays[state.texts.texts].nonzero().squeeze(1)  # (piece,)
        texts, whole = state.texts.keep(chosen), state.whole.keep(chosen)
        # where each text that stays begins in the whole tensor without the others, (text,)
        starts = torch.zeros_like(state.whole.starts).masked_scatter(stays, whole.starts)
        removed = None
        if state.removed is not None:
            removed = tuple(one.keep_texts(state.whole, stays, starts) for one in state.removed)
        origin = state.origin[places]
        return replace(
            state,
            hidden=state.hidden[places],
            texts=texts,
            whole=whole,
            origin=origin,
            importance=None if state.importance is None else state.importance[places],
            heads=None if state.heads is None else state.heads.keep_texts(stays),
            removed=removed,
            context=self.context(encoder, texts, whole, origin),
        )

    # What heads read of a text

    def first_pieces(self, hidden: Value, texts: Texts) -> Value:
        """(piece, width) → (text, width)"""
        return hidden[texts.starts]

    def firsts(self, texts: Texts) -> tuple[Texts, Value]:
        """The boundaries of first pieces alone, and their places, (text,): zeros."""
        return texts.firsts, torch.zeros_like(texts.firsts.texts)

    def mean_by_text(self, hidden: Value, texts: Texts) -> Value:
        """The mean of each text's pieces, 0 of none. (piece, width) → (text, width)"""
        counts = texts.counts.clamp(min=1)[:, None]
        if hidden.is_cuda:
            # adds in order, where index_add adds in a race: the same bytes every time
            total = torch.segment_reduce(
                hidden.float(), "sum", offsets=texts.bounds, axis=0, unsafe=True, initial=0
            )
            return (total / counts).to(hidden.dtype)
        total = hidden.new_zeros(texts.n_texts, hidden.shape[-1]).index_add(0, texts.texts, hidden)
        return total / counts

    def neighbours(self, hidden: Value, texts: Texts) -> Value:
        """Puts each piece between its two neighbours, zeros beyond a text's ends.

        (piece, width) → (piece, 3 × width)
        """
        is_first = (texts.positions == 0)[:, None]
        is_last = (texts.positions == texts.counts[texts.texts] - 1)[:, None]
        before = hidden.roll(1, 0).masked_fill(is_first, 0.0)
        after = hidden.roll(-1, 0).masked_fill(is_last, 0.0)
        return torch.cat([before, hidden, after], dim=-1)

    def read_both_ways(self, lstm: nn.LSTM, hidden: Value, texts: Texts) -> Value:
        """Reads up to each text's first piece with an LSTM: forwards that piece alone, backwards
        the whole text. (piece, width) → (text, width)
        """
        rows = hidden.split(texts.lengths)
        if hidden.is_cuda:
            return read_both_at_once(lstm, rows)
        forward = _last_state(lstm, [text[:1] for text in rows], "")
        backward = _last_state(lstm, [text.flip(0) for text in rows], "_reverse")
        return torch.cat([forward, backward], dim=1)

    # Arithmetic

    def take(self, values: Value, places: Value, axis: int = 0) -> Value:
        """The entries at these places, a vector, along an axis."""
        return values.index_select(axis, places)

    def concat(self, *values: Value) -> Value:
        """Side by side, along the last axis."""
        return torch.cat(values, dim=-1)

    def dot(self, x: Value, vector: nn.Parameter | Value) -> Value:
        """Multiplies by a vector in float32, no gradient for x. (piece, width) → (piece,)"""
        return x.detach().float() @ vector.float()

    def exp(self, x: Value) -> Value:
        return x.exp()

    def tanh(self, x: Value) -> Value:
        return x.tanh()

    def sum(self, x: Value) -> Value:
        """Along the last axis, which stays with one entry."""
        return x.sum(-1, keepdim=True)

    def where(self, chosen: Value, x: Value | float, otherwise: Value | float) -> Value:
        return torch.where(chosen, x, otherwise)

    def both(self, a: Value, b: Value) -> Value:
        """The and of booleans."""
        return a & b

    def any(self, x: Value) -> Value:
        """Tells whether any is true along the last axis, which stays with one entry."""
        return x.any(-1, keepdim=True)

    def recompute(self, step: Callable[[S], S], state: S) -> S:
        """step(state), computed once more in the backward pass instead of kept until then, with the
        same dropout.
        """

        def of(hidden: Tensor) -> S:
            return step(replace(state, hidden=hidden))  # type: ignore[type-var]

        # an argument of its own: from it torch learns which device's random state to restore
        return checkpoint(of, state.hidden, use_reentrant=False)  # type: ignore[attr-defined]


TORCH = Operations()


# Texts as rows


@dataclass(frozen=True)
class Projected:
    """Queries, keys, values of the heads each text still uses, (piece, attention_head, head_width).

    source: of all heads the block has, (piece, 3, …) or keys and values alone, (piece, 2, …).
    """

    query: Value
    key: Value
    value: Value
    source: Value = None


@dataclass(frozen=True)
class Rows:
    """Turns packed (piece, attention_head, head_width) into row blocks (text, attention_head,
    piece, head_width) and back. apart: each text a block of its own; or all of them one block.
    """

    layout: Layout
    apart: bool

    @classmethod
    def of(cls, layout: Layout) -> Rows:
        """The kind of rows that suits the layout and its device."""
        return cls(layout, apart=layout.device.type == "cpu" and not layout.alike)

    @cached_property
    def _places(self) -> Tensor:
        """Each piece's place in the flattened (text × longest) rows. (piece,)"""
        return self.layout.texts * self.layout.longest + self.layout.positions

    def _fill(self, packed: Tensor) -> Tensor:
        """(piece, …) → (text, longest, …), zeros for padding."""
        layout = self.layout
        rows = packed.new_zeros(layout.n_texts * layout.longest, *packed.shape[1:])
        return rows.index_copy(0, self._places, packed).unflatten(0, (layout.n_texts, -1))

    def split(self, packed: Tensor) -> list[Tensor]:
        if self.apart:
            # `split`, unlike slicing in a loop, has one backward for all texts
            return [text.transpose(0, 1).unsqueeze(0) for text in packed.split(self.layout.lengths)]
        return [self._fill(packed).transpose(1, 2)]

    def join(self, blocks: Sequence[Tensor]) -> Tensor:
        """Back to (piece, attention_head, head_width)."""
        if self.apart:
            return torch.cat([block.squeeze(0).transpose(0, 1) for block in blocks])
        return blocks[0].transpose(1, 2).flatten(0, 1).index_select(0, self._places)

    @cached_property
    def live(self) -> list[Tensor | None]:
        """Per block which keys are real, (text, 1, 1, key), or None where all are."""
        if self.apart:
            return [None] * self.layout.n_texts
        place = torch.arange(self.layout.longest, device=self.layout.device)
        return [(place < self.layout.counts[:, None])[:, None, None, :]]

    def by_text(self, values: Tensor | None) -> list[Tensor | None]:
        """Per block its part of something that every text has one of, (text, …)."""
        if values is None:
            return [None] * len(self.live)
        return list(values.split(1)) if self.apart else [values]

    def places_in_text(self, origin: Tensor) -> list[Tensor]:
        """Per block where each row's pieces stood in their text, (text, piece), from `origin`
        (piece,); 0 for padding.
        """
        if self.apart:
            return [text.unsqueeze(0) for text in origin.split(self.layout.lengths)]
        return [self._fill(origin)]


@dataclass(frozen=True)
class Context:
    """The facts about pieces that the attention of layers of one kind, whole or local, uses. Those
    that leave do not move the others: all that depends on distances goes by their places in the
    whole text.

    live: for each block of rows the keys a query may read, (text, 1, query or 1, key); None: all.
    bias: what is added to the affinities, (text, attention_head, query, key), or None.
    angles: cosines and sines of rotary positions, (piece, 1, head_width / 2) each.
    embeddings: of distances, for disentangled attention, (distance, width); pairs: which part of
    them a block's pieces can ask for, and which of those each pair has, (text, query, key).
    """

    rows: Rows
    live: Sequence[Tensor | None]
    bias: Sequence[Tensor | None]
    angles: tuple[Tensor, Tensor] | None = None
    embeddings: Tensor | None = None
    pairs: Sequence[tuple[slice, Tensor]] = ()

    def of_firsts(self) -> Context:
        """The same for queries of each text's first piece alone."""
        return replace(
            self,
            rows=Rows(self.rows.layout.firsts, self.rows.apart),
            live=[None if block is None else block[:, :, :1] for block in self.live],
            bias=[None if block is None else block[:, :, :1] for block in self.bias],
            pairs=[(reached, places[:, :1]) for reached, places in self.pairs],
        )


def make_contexts(
    encoder: Part, layout: Layout, whole: Layout, origin: Tensor
) -> tuple[Context, ...]:
    """Makes the contexts of layers that read the whole text and of those with a window, if any."""
    spec, rows = encoder.spec, Rows.of(layout)
    # a fused piece stands nowhere: it is given the place of the first
    origin = origin.clamp(min=0)
    context = Context(rows, rows.live, [None] * len(rows.live))
    if encoder.relative_bias is not None:
        bias = [encoder.relative_bias(places) for places in rows.places_in_text(origin)]
        context = replace(context, bias=bias)
    if encoder.distances is not None:
        lengths = whole.lengths if rows.apart else [whole.longest]
        embeddings, pairs = encoder.distances(rows.places_in_text(origin), lengths)
        context = replace(context, embeddings=embeddings, pairs=pairs)
    if spec.rotary_base:
        context = replace(context, angles=rotary_angles(origin, spec.rotary_base, spec.head_width))
    if not spec.window:
        return (context,)
    local = context
    if spec.local_rotary_base:
        local = replace(
            local, angles=rotary_angles(origin, spec.local_rotary_base, spec.head_width)
        )
    # in a short text all pieces are near each other
    if spec.window // 2 < whole.longest - 1:
        near = []
        for places, live in zip(rows.places_in_text(origin), rows.live, strict=True):
            apart = (places[:, :, None] - places[:, None, :]).abs()
            within = (apart <= spec.window // 2)[:, None]  # (text, 1, query, key)
            near.append(within if live is None else within & live)
        local = replace(local, live=near)
    return (context, local)


def rotary_angles(places: Tensor, base: float, head_width: int) -> tuple[Tensor, Tensor]:
    """Computes each piece's angles as cosines and sines, (piece, 1, head_width / 2). base: θ."""
    halves = torch.arange(0, head_width, 2, dtype=torch.float32, device=places.device)
    speeds = 1.0 / base ** (halves / head_width)
    angles = (places[:, None].float() * speeds)[:, None]
    return angles.cos(), angles.sin()


def _turn(values: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Queries or keys, turned. (piece, attention_head, head_width)"""
    first, second = values.chunk(2, dim=-1)
    turned = (first * cos - second * sin, second * cos + first * sin)
    return torch.cat(turned, dim=-1).to(values.dtype)


def _blocks(
    attention: Part, projected: Projected, queries: Context, keys: Context, used: Tensor | None
) -> Iterator[tuple[Tensor, Tensor, Tensor, dict[str, Any]]]:
    """Packed queries, keys and values as blocks of rows, with the options of the weighting.

    used: the attention heads each text still uses, (text, attention_head); None: all.
    """
    rows, own = keys.rows, attention.disentangled
    query, terms = projected.query, [None] * len(rows.live)
    if own is not None:
        query = query * own.share
        terms = own(queries.embeddings, queries.pairs, attention.qkv)
    keys_and_values = rows.split(projected.key), rows.split(projected.value)
    parts = zip(queries.rows.split(query), *keys_and_values, strict=True)
    conditions = zip(queries.live, queries.bias, rows.by_text(used), terms, strict=True)
    dropout = attention.dropout if attention.training else 0.0
    for (q, k, v), (live, bias, heads, distance_terms) in zip(parts, conditions, strict=True):
        if bias is not None and not attention.has_all_heads:
            bias = bias[:, attention.heads]
        if bias is not None and heads is not None:
            bias = bias.expand(len(heads), -1, -1, -1)
            bias = bias.gather(1, heads[:, :, None, None].expand(-1, -1, *bias.shape[2:]))
        if distance_terms is not None:
            bias = distance_terms.bias(q, k, heads)
        yield q, k, v, {"live": live, "bias": bias, "heads": heads, "dropout": dropout}


def select_heads(packed: Tensor, heads: Tensor | None, layout: Layout) -> Tensor:
    """Selects what belongs to the attention heads each text still uses.

    (piece, part, attention_head, head_width), by heads (text, used)

    One copy for all texts, the cheapest way we found: on a CPU, where one head of twelve is gone
    and texts are short, even this copy costs more than the attention it saves.
    """
    if heads is None:
        return packed
    n_pieces, n_parts, n_heads, _ = packed.shape
    part_starts = torch.arange(0, n_pieces * n_parts * n_heads, n_heads, device=packed.device)
    places = part_starts.view(n_pieces, n_parts, 1) + heads[layout.texts].unsqueeze(1)
    return packed.flatten(0, 2).index_select(0, places.flatten()).unflatten(0, places.shape)


def scatter_heads(packed: Tensor, heads: Tensor | None, layout: Layout, n_heads: int) -> Tensor:
    """The inverse of `select_heads`, (piece, used, …) → (piece, attention_head, …); attention heads
    that are gone give zeros.
    """
    if heads is None:
        return packed
    starts = torch.arange(0, len(packed) * n_heads, n_heads, device=packed.device)
    places = starts[:, None] + heads[layout.texts]  # (piece, used)
    whole = packed.new_zeros(len(packed) * n_heads, packed.shape[-1])
    return whole.index_copy_(0, places.flatten(), packed.flatten(0, 1)).unflatten(0, (-1, n_heads))


# Pieces and attention heads that leave


@dataclass(frozen=True)
class HeadsLeft:
    """importance: of all attention heads. used: those each text still has, None: all. Both (text,
    attention_head).
    """

    importance: Tensor
    used: Tensor | None = None

    def keep_texts(self, stays: Tensor) -> HeadsLeft:
        return HeadsLeft(self.importance[stays], None if self.used is None else self.used[stays])


@dataclass(frozen=True)
class Leaving:
    """Who stays and who leaves. Of seven pieces of two texts four stay; those that leave are gone
    from every tensor, the others close up in their order:

        text       0 0 0 0 | 1 1 1          0 0 | 1 1
        piece      a b c d | e f g    →     a d | e f
        origin     0 1 2 3 | 0 1 2          0 3 | 0 1

    by_importance: places of all pieces in the packed tensor, text after text, the most important
    one first. (piece,)
    before, kept: the layouts of all pieces and of those that stay. fuses: whether a piece more
    stands for those that leave.
    """

    by_importance: Tensor
    importance: Tensor
    before: Layout
    kept: Layout
    fuses: bool = False

    @classmethod
    def of(cls, state: State, counts: Sequence[int], *, fuses: bool = False) -> Leaving:
        """The `counts` most important pieces of each text stay."""
        texts = state.texts
        score = state.importance.masked_fill(state.origin == FUSED, -torch.inf)
        score = score.masked_fill(texts.positions == 0, torch.inf)
        by_score = score.argsort(descending=True, stable=True)
        order = by_score[texts.texts[by_score].argsort(stable=True)]  # text after text
        return cls(order, state.importance, texts, Layout.of(counts, texts.device), fuses)

    @cached_property
    def kept_places(self) -> Tensor:
        """The places of the pieces that stay, in order. (piece,)"""
        ranks = self.before.starts[self.kept.texts] + self.kept.positions
        return self.by_importance[ranks].sort().values

    @cached_property
    def removed(self) -> Layout:
        """The layout of the pieces that leave."""
        lengths = zip(self.before.lengths, self.kept.lengths, strict=True)
        return Layout.of([n - n_kept for n, n_kept in lengths], self.before.device)

    @cached_property
    def removed_places(self) -> Tensor:
        """The places of the pieces that leave, in order; a text's fused piece, if any, is last.
        (piece,)
        """
        text = self.removed.texts
        ranks = self.before.starts[text] + self.kept.counts[text] + self.removed.positions
        return self.by_importance[ranks].sort().values

    @cached_property
    def kept_and_fused(self) -> Layout:
        """The layout of the pieces that stay and, after them, the fused piece of each text."""
        fused = tuple(min(n, 1) for n in self.removed.lengths)
        lengths = [n + one for n, one in zip(self.kept.lengths, fused, strict=True)]
        return Layout.of(lengths, self.before.device, fused=fused)

    @cached_property
    def fused_places(self) -> Tensor:
        """Where the pieces of `kept_and_fused` lie when all that stay come first and then a fused
        piece for each text. (piece,)
        """
        layout = self.kept_and_fused
        is_fused = layout.positions == self.kept.counts[layout.texts]
        kept_place = self.kept.starts[layout.texts] + layout.positions
        return torch.where(is_fused, self.kept.n_pieces + layout.texts, kept_place)

    def keep(self, packed: Tensor) -> Tensor:
        """The pieces that stay and, if they fuse, at the end of every text that loses any the mean
        of those that leave, weighted by importance.
        """
        if not self.fuses:
            return packed.index_select(0, self.kept_places)
        text, n_texts = self.removed.texts, self.removed.n_texts
        least = torch.finfo(self.importance.dtype).tiny
        weights = self.importance[self.removed_places].clamp(min=least)
        total = torch.zeros(n_texts, device=packed.device).index_add(0, text, weights)
        share = (weights / total[text]).to(packed.dtype)  # (leaving piece,)
        leaving = packed[self.removed_places] * share[:, None]
        fused = packed.new_zeros(n_texts, packed.shape[-1]).index_add(0, text, leaving)
        return torch.cat([packed[self.kept_places], fused])[self.fused_places]


@dataclass(frozen=True)
class RemovedPieces:
    """Pieces that left together: their last states (piece, width), and their places in the packed
    tensor everything began with. (piece,)
    """

    hidden: Tensor
    places: Tensor

    def keep_texts(self, whole: Layout, stays: Tensor, starts: Tensor) -> RemovedPieces:
        """Keeps those whose texts stay. starts: where these begin now, (text,)"""
        text = whole.texts[self.places]  # (piece,)
        places = self.places - whole.starts[text] + starts[text]
        is_kept = stays[text]
        return RemovedPieces(self.hidden[is_kept], places[is_kept])


def rows_of_few(table: Tensor, numbers: Tensor) -> Tensor:
    """The rows (number, width) of a table that has very few.

    On a GPU torch adds up the gradient of a row that thousands of pieces share in no fixed order,
    and two runs of one seed would differ; a product with 0 and 1 is summed the same way every time.
    """
    if table.device.type != "cuda" or not torch.is_grad_enabled():
        return functional.embedding(numbers, table)
    return weighted_rows(table, numbers)


def weighted_rows(table: Tensor, numbers: Tensor) -> Tensor:
    """Multiplies each row by 1 where it is meant, by 0 where it is not. (number, width)"""
    rows = torch.arange(len(table), device=numbers.device)
    is_meant = (numbers[:, None] == rows).to(table.dtype)  # (number, row)
    return (is_meant[:, :, None] * table).sum(1)


def read_both_at_once(lstm: nn.LSTM, texts: Sequence[Tensor]) -> Tensor:
    """Reads in both directions at the same time, as cuDNN does."""
    packed: PackedSequence = pack_sequence(list(texts), enforce_sorted=False)
    states, _ = lstm(packed)
    # torch packs step by step, longest text first: the first rows are every text's first step
    return states.data[: len(texts)][states.unsorted_indices]  # (text, width)


def _last_state(lstm: nn.LSTM, texts: Sequence[Tensor], direction: str) -> Tensor:
    """Returns one direction's state after its last step. direction: as torch names it.

    (text, width / 2)
    """
    packed = pack_sequence(list(texts), enforce_sorted=False)
    start = packed.data.new_zeros(1, len(texts), lstm.hidden_size)
    _, last, _ = torch.lstm(
        packed.data,
        packed.batch_sizes,
        (start, start),
        lstm_weights(lstm, direction),
        has_biases=True,
        num_layers=1,
        dropout=0.0,
        train=lstm.training,
        bidirectional=False,
    )
    return last[0][packed.unsorted_indices]


def lstm_weights(lstm: nn.LSTM, direction: str) -> list[Tensor]:
    """Lists in torch's order the weights of inputs and of states, and the offsets of both."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return [getattr(lstm, f"{name}_l0{direction}") for name in names]
