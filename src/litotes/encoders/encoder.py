"""The encoder: embeddings, then blocks of attention and feed-forward, over texts laid end to end.

    h₀      = norm(piece + position + segment)
    a_l     = norm(h_l + Attention(h_l))
    h_{l+1} = norm(a_l + W₂ act(W₁ a_l))

Post-norm Transformer encoder: Vaswani et al. 2017 (arXiv 1706.03762), Devlin et al. 2019 (arXiv
1810.04805). Every linear layer sees `(piece, width)` and never padding; only attention looks at
texts as rows (attention/rows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from litotes.attention import PRUNINGS
from litotes.attention.observer import LayerTrace, Observer
from litotes.attention.pruning import Plan
from litotes.attention.rows import Rows
from litotes.attention.survivors import Survivors
from litotes.core.errors import UserError
from litotes.core.registry import build, pick
from litotes.encoders.embeddings import Embeddings, RelativeBias
from litotes.encoders.encoding import Encoding
from litotes.encoders.self_attention import Attention, AttentionContext
from litotes.encoders.spec import EncoderSpec
from litotes.text.batch import Batch
from litotes.text.layout import Layout


def _gelu_tanh(x: Tensor) -> Tensor:
    return functional.gelu(x, approximate="tanh")


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": functional.gelu,
    "gelu_new": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "relu": functional.relu,
    "silu": functional.silu,
}


class Block(nn.Module):
    """One layer: attention, then feed-forward, each added to its input and normed.

    Between the two halves pieces may leave.
    """

    def __init__(self, spec: EncoderSpec, heads: Sequence[int]) -> None:
        super().__init__()
        self.attention = Attention(spec, heads)
        self.attention_norm = nn.LayerNorm(spec.width, eps=spec.norm_epsilon)
        self.inner = nn.Linear(spec.width, spec.inner_width)
        self.outer = nn.Linear(spec.inner_width, spec.width)
        self.outer_norm = nn.LayerNorm(spec.width, eps=spec.norm_epsilon)
        self.activation_name = spec.activation
        self.activation = pick(ACTIVATIONS, spec.activation, "activation")
        self.dropout = nn.Dropout(spec.dropout)

    def forward(self, hidden: Tensor, mixed: Tensor) -> Tensor:
        """From what each piece was and what its attention gathered to what it is next.

        (piece, width)
        """
        hidden = self.attention_norm(hidden + self.dropout(self.attention.output(mixed)))
        return self.outer_norm(
            hidden + self.dropout(self.outer(self.activation(self.inner(hidden))))
        )


class Encoder(nn.Module):
    """Embeddings → blocks. The weights come from pretrained.py; a fresh encoder is random."""

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        self.spec = spec
        self.recomputes = False
        self.embeddings = Embeddings(spec)
        self.relative_bias = RelativeBias(spec) if spec.n_relative_buckets else None
        self.blocks = nn.ModuleList(
            Block(spec, spec.heads_of(block)) for block in range(spec.n_blocks)
        )
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
        self, batch: Batch, *, firsts_only: bool = False, observer: Observer | None = None
    ) -> Encoding:
        """Hidden states of every piece that goes on, or of each text's first piece alone."""
        hidden = self.embeddings(batch)
        return self.walk(hidden, batch.layout, firsts_only=firsts_only, observer=observer)

    def walk(
        self,
        hidden: Tensor,
        layout: Layout,
        *,
        start: int = 0,
        stop: int | None = None,
        firsts_only: bool = False,
        observer: Observer | None = None,
    ) -> Encoding:
        """Layers `start` to `stop` over `hidden` (piece, width).

        firsts_only: the last layer computes only each text's first piece. This is exact, because
        nothing after the last layer looks at the others, and saves most of a layer.
        observer: called with the trace of every layer, of all pieces also in the last one.
        """
        blocks = self.spec.walk[start:stop]
        last = start + len(blocks) - 1
        plan = self._plan(firsts_only=firsts_only)
        survivors = Survivors.all_of(layout, self.spec.n_attention_heads)
        state = _State(hidden, survivors, self._context(survivors))
        for layer, number in enumerate(blocks, start):
            block = self.block(number)
            if firsts_only and layer == last:
                hidden = self._firsts(layer, block, plan, state, observer)
                return encoding_of_firsts(hidden, layout)
            if self.recomputes and observer is None:
                state = self._recomputed_layer(layer, block, plan, state)
            else:
                state = self._layer(layer, block, plan, state, observer)
        if self.pruning.restore and state.survivors.removed:
            return Encoding(state.survivors.restore(state.hidden), layout, layout.positions)
        return Encoding(state.hidden, state.survivors.layout, state.survivors.origin)

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
        if not prunes and observer is None:
            return state, block.attention(state.hidden, state.context)
        attention = block.attention.observe(
            state.hidden, state.context, keep_weights=observer is not None
        )
        before, mixed = state, attention.mixed.flatten(1)
        if prunes:
            hidden, mixed, survivors = self.pruning(
                layer, plan, before.hidden, mixed, before.survivors, attention
            )
            state = _State(hidden, survivors, self._next_context(before.context, survivors))
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
            mixed = block.attention.attend_firsts(state.hidden, state.context)
            return block(state.hidden[state.survivors.layout.starts], mixed)
        state, mixed = self._attend(layer, block, plan, state, observer)
        return block(state.hidden, mixed)[state.survivors.layout.starts]

    def _context(self, survivors: Survivors) -> AttentionContext:
        """The pieces still there as rows for attention, and the bias that goes with them."""
        rows = Rows.of(survivors.layout)
        if self.relative_bias is None:
            return AttentionContext(rows, [None] * len(rows.live), survivors.heads)
        # a fused piece stands nowhere: it is given the place of the first
        places = rows.places_in_text(survivors.origin.clamp(min=0))
        return AttentionContext(rows, [self.relative_bias(p) for p in places], survivors.heads)

    def _next_context(self, context: AttentionContext, survivors: Survivors) -> AttentionContext:
        if survivors.layout is context.rows.layout:  # no piece has left
            return replace(context, heads=survivors.heads)
        return self._context(survivors)

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
    """What goes from layer to layer: the states (piece, width) of the pieces still there."""

    hidden: Tensor
    survivors: Survivors
    context: AttentionContext


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
