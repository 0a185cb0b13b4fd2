"""The forward pass of every encoder: embeddings, then layers of attention and feed-forward, over
texts laid end to end.

    h₀      = norm(piece + position + segment)
    a_l     = norm(h_l + Attention(h_l))
    h_{l+1} = norm(a_l + W₂ act(W₁ a_l))

Post-norm Transformer encoder: Vaswani et al. 2017 (arXiv 1706.03762), Devlin et al. 2019 (arXiv
1810.04805). Newer families norm before instead of after, and gate the feed-forward part
(ModernBERT, Warner et al. 2024, arXiv 2412.13663, §2.1):

    a_l     = h_l + Attention(norm(h_l))
    h_{l+1} = a_l + W₂ (act(W₁ n) ⊙ V n),  n = norm(a_l)        output = norm(h_L)

Pieces leave between the two halves of a layer, before the output projection and the feed-forward
part, which are three quarters of its work; texts leave after a layer with an exit. What is gone
is gone from every tensor, and never comes back.

This is the only forward pass there is. `ops` computes it: by torch with gradients (operations.py),
by kernels on a GPU, or as the nodes of an ONNX file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import Tensor

from litotes.encoder.layout import Batch, Plan
from litotes.encoder.operations import Encoding, Operations, Part, Seen, State, Texts, Value, Wanted

GoOn = Callable[[Value | None], Any]
"""Walks on with the texts that stay, (text,), bool; None: all. Gives what the walk gives."""

Exit = Callable[[Encoding, GoOn], Any]
"""Asked after a layer: which texts leave, and what the walk gives then."""


def walk(
    ops: Operations, encoder: Part, batch: Batch, *, firsts_only: bool = False, **options: Any
) -> Any:
    """Walks from pieces to what heads read. options: of `walk_layers`."""
    hidden = embed(ops, encoder.embeddings, batch)
    return walk_layers(
        ops,
        encoder,
        hidden,
        batch.layout,
        origin=batch.positions,
        firsts_only=firsts_only,
        **options,
    )


def embed(ops: Operations, embeddings: Part, batch: Batch) -> Value:
    """h₀: what a piece is and, where a family has such tables, where it stands and (in a pair)
    which text it belongs to. (piece, width)
    """
    hidden = ops.dropout(embeddings.dropout, ops.embed(embeddings, batch))
    return hidden if embeddings.projection is None else ops.linear(embeddings.projection, hidden)


def walk_layers(
    ops: Operations,
    encoder: Part,
    hidden: Value,
    texts: Texts,
    *,
    origin: Value = None,
    plan: Plan | None = None,
    start: int = 0,
    stop: int | None = None,
    firsts_only: bool = False,
    observer: Observer | None = None,
    exits: Mapping[int, Exit] | None = None,
    read: Callable[[Encoding], Any] = lambda encoding: encoding,
) -> Any:
    """Layers `start` to `stop` over hidden states (piece, width); None: to the end, with the last
    norm of families that have one. Gives what `read` makes of the `Encoding`.

    origin: where the pieces stand, if not at 0, 1, 2, … of their texts. plan: what goes on after
    each layer, if it has been asked for already; a pruning may draw another every time.
    firsts_only: the last layer computes each text's first piece alone. That is exact, since nothing
    after it looks at the others, and saves most of a layer.
    observer: shown the attention of every layer, of all pieces also in the last one.
    exits: asked after so many layers.
    """
    plan = encoder.pruning.plan() if plan is None else plan
    if firsts_only:
        plan = plan.for_firsts_only()
    end = len(encoder.spec.walk) if stop is None else stop
    origin = texts.positions if origin is None else origin
    context = ops.context(encoder, texts, texts, origin)
    whole = State(hidden, texts, whole=texts, origin=origin, context=context)

    def go_on(layer: int, state: State) -> Any:
        while layer < end:
            if firsts_only and layer == end - 1:
                state = _last_layer(ops, encoder, layer, observer, state)
            else:
                step = partial(_layer, ops, encoder, layer, plan, observer, not firsts_only)
                again = encoder.recomputes and observer is None
                state = ops.recompute(step, state) if again else step(state)
            layer += 1
            if exits is not None and layer in exits:
                return exits[layer](state.encoding, partial(go_on_with, layer, state))
        if state.removed is not None:
            state = ops.restore(state)
        if encoder.final_norm is not None and stop is None:
            state = replace(state, hidden=ops.norm(encoder.final_norm, state.hidden))
        return read(state.encoding)

    def go_on_with(layer: int, state: State, stays: Value | None) -> Any:
        return go_on(layer, state if stays is None else ops.keep_texts(encoder, state, stays))

    return go_on(start, whole)


def _layer(
    ops: Operations,
    encoder: Part,
    layer: int,
    plan: Plan,
    observer: Observer | None,
    restores: bool,
    before: State,
) -> State:
    """Runs one layer: attention, then those leave who leave, then feed-forward."""
    pruning, n_heads = encoder.pruning, encoder.spec.n_attention_heads
    wanted = Wanted(
        importance=plan.needs_importance(layer, n_heads),
        by_value=pruning.by_value,
        head_sizes=plan.needs_head_importance(layer, n_heads),
        weights=observer is not None,
    )
    seen = _attend(ops, encoder, layer, before, wanted)
    state, mixed = before, seen.mixed
    if wanted.importance:
        state, mixed = _prune(ops, encoder, layer, plan, restores, state, seen)
    if observer is not None:
        heads = encoder.block_of(layer).attention.heads
        observer(LayerTrace(layer, before.hidden, heads, seen, before, after=state))
    return replace(state, hidden=second_half(ops, encoder.block_of(layer), state.hidden, mixed))


def _last_layer(
    ops: Operations, encoder: Part, layer: int, observer: Observer | None, state: State
) -> State:
    """The layer after which only first pieces are read. Its state has one piece a text."""
    block = encoder.block_of(layer)
    seen = _attend(ops, encoder, layer, state, Wanted(weights=observer is not None), firsts=True)
    if observer is not None:
        observer(LayerTrace(layer, state.hidden, block.attention.heads, seen, state, after=state))
        seen = replace(seen, mixed=ops.first_pieces(seen.mixed, state.texts))
    hidden = second_half(ops, block, ops.first_pieces(state.hidden, state.texts), seen.mixed)
    firsts, places = ops.firsts(state.whole)
    return State(hidden, firsts, whole=firsts, origin=places)


def _attend(
    ops: Operations,
    encoder: Part,
    layer: int,
    state: State,
    wanted: Wanted,
    *,
    firsts: bool = False,
) -> Seen:
    """Runs a layer's attention; firsts: for first pieces alone, unless weights are wanted."""
    spec, block = encoder.spec, encoder.block_of(layer)
    read = state.hidden
    if block.norm_first and block.attention_norm is not None:
        read = ops.norm(block.attention_norm, read)
    firsts = firsts and not wanted.weights
    projected = ops.project(block.attention, read, state, firsts=firsts)
    if spec.rotary_base:
        projected = ops.rotate(projected, state, local=spec.is_local(layer), firsts=firsts)
    return ops.attend(encoder, layer, state, projected, wanted, firsts=firsts)


def _prune(
    ops: Operations, encoder: Part, layer: int, plan: Plan, restores: bool, state: State, seen: Seen
) -> tuple[State, Value]:
    """The pieces that go on after the attention of a layer, and what they gathered; attention heads
    leave for the next layer.
    """
    pruning, n_heads = encoder.pruning, encoder.spec.n_attention_heads
    importance = pruning.importance(ops, layer, state, seen)
    mixed = pruning.with_importance_gradient(layer, state.hidden, seen.mixed)
    state = replace(state, importance=importance)
    if plan.needs_head_importance(layer, n_heads):
        state = replace(state, heads=ops.keep_heads(state, seen, plan.n_heads(layer, n_heads)))
    choice = None
    if plan.removes_pieces(layer):
        choice = ops.select(state, plan, layer, fuse=pruning.fuse)
    if choice is None:
        return replace(state, importance=ops.add_up(state)), mixed
    removed = ops.remember(state, choice) if pruning.restore and restores else None
    hidden, mixed = ops.keep(choice, state.hidden, mixed)
    context = ops.context(encoder, choice.texts, state.whole, choice.origin)
    state = replace(
        state,
        hidden=hidden,
        texts=choice.texts,
        origin=choice.origin,
        importance=choice.importance,
        removed=removed,
        context=context,
    )
    return state, mixed


def second_half(ops: Operations, block: Part, hidden: Value, mixed: Value) -> Value:
    """Turns what each piece was and what it gathered into what it is next. (piece, width)"""
    gathered = ops.dropout(block.dropout, ops.linear(block.attention.output, mixed))
    if block.norm_first:
        hidden = ops.add(gathered, hidden)
        inner = _feed_forward(ops, block, ops.norm(block.outer_norm, hidden))
        return ops.add(ops.dropout(block.dropout, inner), hidden)
    assert block.attention_norm is not None
    hidden = ops.add_norm(block.attention_norm, gathered, hidden)
    inner = _feed_forward(ops, block, hidden)
    return ops.add_norm(block.outer_norm, ops.dropout(block.dropout, inner), hidden)


def _feed_forward(ops: Operations, block: Part, x: Value) -> Value:
    """W₂ act(W₁ x), or W₂ (act(W₁ x) ⊙ V x) with W₁ and V in one. (piece, width)"""
    if not block.is_gated:
        return ops.linear(block.outer, ops.linear(block.inner, x, block.activation))
    opened, gate = ops.linear_parts(block.inner, x, 2)
    return ops.linear(block.outer, ops.activate(block.activation, opened) * gate)


# What an observer is shown


@dataclass(frozen=True)
class TextAttention:
    """One text in one layer, live pieces alone.

    heads: the attention heads shown, by the numbers they had before any were removed.
    weights: (attention_head, query, key). value, mixed: (attention_head, piece, head_width), with
    mixed = weights · value.
    origin: the place in the text of each piece that came in; -1 for a fused piece, which stands for
    those removed. (piece,)
    stayed: the places of the pieces that went on. (piece,)
    """

    layer: int
    heads: tuple[int, ...]
    weights: Tensor
    value: Tensor
    mixed: Tensor
    origin: Tensor
    stayed: Tensor


@dataclass(frozen=True)
class LayerTrace:
    """One layer's attention over a batch.

    hidden: what came in, (piece, width).
    heads: the attention heads of this layer's block, by their original numbers.
    before, after: the state of the pieces that came in, and of those that went on.
    """

    layer: int
    hidden: Tensor
    heads: Sequence[int]
    attention: Seen
    before: State
    after: State

    def by_text(self) -> Iterator[TextAttention]:
        """The texts of the batch, in order."""
        lengths, seen = self.before.texts.lengths, self.attention
        by_head = seen.mixed.unflatten(1, (len(self.heads), -1))
        parts = zip(
            (rows for block in seen.weights for rows in block),
            seen.value.split(lengths),
            by_head.split(lengths),
            self.before.origin.split(lengths),
            self.after.origin.split(self.after.texts.lengths),
            strict=True,
        )
        used = None if self.before.heads is None else self.before.heads.used
        # value, mixed: (piece, attention_head, head_width)
        for text, (weights, value, mixed, origin, stayed) in enumerate(parts):
            heads, n = list(self.heads), len(origin)
            if used is not None:
                heads = used[text].tolist()
                # pruned heads have no weights to show
                value, mixed = value[:, heads], mixed[:, heads]
            yield TextAttention(
                layer=self.layer,
                heads=tuple(heads),
                weights=weights[:, :n, :n],  # a block of several texts is padded
                value=value.transpose(0, 1),
                mixed=mixed.transpose(0, 1),
                origin=origin,
                stayed=stayed,
            )


Observer = Callable[[LayerTrace], None]
"""Called with each layer's trace, in order."""
