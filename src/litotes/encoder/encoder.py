"""The encoder: embeddings, then blocks of attention and feed-forward, over texts laid end to end.

    h₀      = norm(piece + position + segment)
    a_l     = norm(h_l + Attention(h_l))
    h_{l+1} = norm(a_l + W₂ act(W₁ a_l))

Post-norm Transformer encoder: Vaswani et al. 2017 (arXiv 1706.03762), Devlin et al. 2019 (arXiv
1810.04805). Newer families norm before instead of after, and gate the feed-forward part
(ModernBERT, Warner et al. 2024, arXiv 2412.13663, §2.1):

    a_l     = h_l + Attention(norm(h_l))
    h_{l+1} = a_l + W₂ (act(W₁ n) ⊙ V n),  n = norm(a_l)        output = norm(h_L)

Every linear layer sees `(piece, width)` and never padding; only attention looks at
texts as rows (attention/rows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from litotes.core.errors import UserError
from litotes.core.registry import build
from litotes.encoder.attention import PRUNINGS
from litotes.encoder.attention.observer import LayerTrace, Observer
from litotes.encoder.attention.pruning import Plan
from litotes.encoder.attention.survivors import Survivors
from litotes.encoder.attention_context import AttentionContext, make_contexts
from litotes.encoder.batch import Batch
from litotes.encoder.block import Block
from litotes.encoder.disentangled import DistanceEmbeddings
from litotes.encoder.embeddings import Embeddings, RelativeBias, make_norm
from litotes.encoder.encoding import Encoding
from litotes.encoder.layout import Layout
from litotes.encoder.self_attention import Attention
from litotes.encoder.spec import EncoderSpec

Leave = Callable[[int, Encoding], Tensor | None]
"""Called after a layer with how many layers are done and what they made of the texts still there.

Gives which texts stay, (text,), bool; None: all.
"""


class Encoder(nn.Module):
    """Embeddings → blocks. The weights come from pretrained.py; a fresh encoder is random."""

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        self.spec = spec
        self.recomputes = False
        self.embeddings = Embeddings(spec)
        self.relative_bias = RelativeBias(spec) if spec.n_relative_buckets else None
        self.distances = DistanceEmbeddings(spec) if spec.position_terms else None
        self.blocks = nn.ModuleList(Block(spec, number) for number in range(spec.n_blocks))
        self.final_norm = make_norm(spec) if spec.norm_first else None
        sizes = (len(spec.walk), spec.n_attention_heads, spec.width)
        self.pruning = build(
            PRUNINGS, spec.pruning, "pruning", *sizes, options=spec.pruning_options
        )
        if spec.heads_kept and self.pruning.plan().heads[-1] < 1:
            raise UserError(
                "Attention heads were removed from this encoder for good: a pruning cannot remove"
                " more of them text by text."
            )

    def forward(
        self,
        batch: Batch,
        *,
        firsts_only: bool = False,
        observer: Observer | None = None,
        leave: Leave | None = None,
    ) -> Encoding:
        """Hidden states of every piece that goes on, or of each text's first piece alone."""
        hidden = self.embeddings(batch)
        return self.walk(
            hidden, batch.layout, firsts_only=firsts_only, observer=observer, leave=leave
        )

    def walk(
        self,
        hidden: Tensor,
        layout: Layout,
        *,
        start: int = 0,
        stop: int | None = None,
        firsts_only: bool = False,
        observer: Observer | None = None,
        leave: Leave | None = None,
    ) -> Encoding:
        """Layers `start` to `stop` over `hidden` (piece, width); None: to the end, a final norm
        included.

        firsts_only: the last layer computes only each text's first piece. This is exact, because
        nothing after the last layer looks at the others, and saves most of a layer.
        observer: called with the trace of every layer, of all pieces also in the last one.
        leave: which texts go no further; they are not in the encoding.
        """
        encoding = self._walk_layers(hidden, layout, start, stop, firsts_only, observer, leave)
        if self.final_norm is None or stop is not None:
            return encoding
        return replace(encoding, hidden=self.final_norm(encoding.hidden))

    def _walk_layers(
        self,
        hidden: Tensor,
        layout: Layout,
        start: int,
        stop: int | None,
        firsts_only: bool,
        observer: Observer | None,
        leave: Leave | None,
    ) -> Encoding:
        blocks = self.spec.walk[start:stop]
        last = start + len(blocks) - 1
        plan = self._plan(firsts_only=firsts_only)
        survivors = Survivors.all_of(layout, self.spec.n_attention_heads)
        state = _State(hidden, survivors, self._contexts(survivors))
        for layer, number in enumerate(blocks, start):
            block = self.block(number)
            if firsts_only and layer == last:
                hidden = self._firsts(layer, block, plan, state, observer)
                return encoding_of_firsts(hidden, state.survivors.whole)
            if self.recomputes and observer is None:
                state = self._recomputed_layer(layer, block, plan, state)
            else:
                state = self._layer(layer, block, plan, state, observer)
            if leave is not None and (stays := leave(layer + 1, state.encoding)) is not None:
                state = self._without_texts(state, stays)
                if not state.survivors.layout.n_texts:
                    return state.encoding
        if self.pruning.restore and state.survivors.removed:
            whole = state.survivors.whole
            return Encoding(state.survivors.restore(state.hidden), whole, whole.positions)
        return state.encoding

    def _without_texts(self, state: _State, stays: Tensor) -> _State:
        """stays: (text,), bool"""
        survivors, places = state.survivors.keep_texts(stays)
        contexts = self._contexts(survivors) if survivors.layout.n_texts else ()
        return _State(state.hidden[places], survivors, contexts)

    def _plan(self, *, firsts_only: bool) -> Plan:
        plan = self.pruning.plan()
        return plan.for_firsts_only() if firsts_only else plan

    def _layer(
        self, layer: int, block: Block, plan: Plan, state: _State, observer: Observer | None
    ) -> _State:
        state, mixed = self._attend(layer, block, plan, state, observer)
        return replace(state, hidden=block(state.hidden, mixed))

    def _recomputed_layer(self, layer: int, block: Block, plan: Plan, state: _State) -> _State:
        """The same, computed once more in the backward pass, with the same dropout, instead of kept
        until then.
        """

        def of(hidden: Tensor) -> _State:
            return self._layer(layer, block, plan, replace(state, hidden=hidden), None)

        # an argument of its own: from it torch learns which device's random state to restore
        return checkpoint(of, state.hidden, use_reentrant=False)

    def _attend(
        self, layer: int, block: Block, plan: Plan, state: _State, observer: Observer | None
    ) -> tuple[_State, Tensor]:
        """The pieces that go on after the attention of a layer, and what they gathered.

        (piece, attention_head × head_width)
        """
        prunes = plan.needs_importance(layer, self.spec.n_attention_heads)
        read, context = block.attention_input(state.hidden), self._context(layer, state)
        if not prunes and observer is None:
            return state, block.attention(read, context)
        attention = block.attention.observe(read, context, keep_weights=observer is not None)
        before, mixed = state, attention.mixed.flatten(1)
        if prunes:
            hidden, mixed, survivors = self.pruning(
                layer, plan, before.hidden, mixed, before.survivors, attention
            )
            state = _State(hidden, survivors, self._next_contexts(before.contexts, survivors))
        if observer is not None:
            trace = LayerTrace(
                layer,
                hidden=before.hidden,
                heads=block.attention.heads,
                attention=attention,
                before=before.survivors,
                after=state.survivors,
            )
            observer(trace)
        return state, mixed

    def _firsts(
        self, layer: int, block: Block, plan: Plan, state: _State, observer: Observer | None
    ) -> Tensor:
        """The last layer where only first pieces are read. (text, width)"""
        if observer is None:
            read, context = block.attention_input(state.hidden), self._context(layer, state)
            mixed = block.attention.attend_firsts(read, context)
            return block(state.hidden[state.survivors.layout.starts], mixed)
        state, mixed = self._attend(layer, block, plan, state, observer)
        return block(state.hidden, mixed)[state.survivors.layout.starts]

    def _context(self, layer: int, state: _State) -> AttentionContext:
        return state.contexts[self.spec.is_local(layer)]

    def _next_contexts(
        self, contexts: tuple[AttentionContext, ...], survivors: Survivors
    ) -> tuple[AttentionContext, ...]:
        if survivors.layout is contexts[0].rows.layout:  # no piece has left
            return tuple(replace(context, heads=survivors.heads) for context in contexts)
        return self._contexts(survivors)

    def _contexts(self, survivors: Survivors) -> tuple[AttentionContext, ...]:
        """Of layers that read the whole text and, where there are such, of those with a window."""
        return make_contexts(self.spec, survivors, self.relative_bias, self.distances)

    def set_progress(self, progress: float) -> None:
        """Tells the weightings how much of the training is done, 0 to 1."""
        for attention in self.attentions:
            attention.weighting.progress = progress

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embeddings.piece.weight.device

    @property
    def attentions(self) -> list[Attention]:
        """The attention of every block."""
        return [self.block(number).attention for number in range(self.spec.n_blocks)]

    def block(self, number: int) -> Block:
        block = self.blocks[number]
        assert isinstance(block, Block)
        return block


@dataclass(frozen=True)
class _State:
    """What goes from layer to layer: the states (piece, width) of the pieces still there.

    contexts: for layers that read the whole text, and for those with a window.
    """

    hidden: Tensor
    survivors: Survivors
    contexts: tuple[AttentionContext, ...]

    @property
    def encoding(self) -> Encoding:
        """Of the pieces still there."""
        return Encoding(self.hidden, self.survivors.layout, self.survivors.origin)


@contextmanager
def recompute(encoder: Encoder, wanted: bool) -> Iterator[None]:
    """Where gradients are wanted, what layers compute is computed again instead of kept."""
    encoder.recomputes = wanted and torch.is_grad_enabled()
    try:
        yield
    finally:
        encoder.recomputes = False


def encoding_of_firsts(hidden: Tensor, layout: Layout) -> Encoding:
    """The encoding of each text's first piece alone. hidden: (text, width)"""
    return Encoding(hidden, layout.firsts, torch.zeros_like(layout.firsts.texts))
