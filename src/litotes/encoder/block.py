"""One layer of the encoder: attention, then feed-forward."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional

from litotes.core.registry import pick
from litotes.encoder.embeddings import make_norm
from litotes.encoder.self_attention import Attention
from litotes.encoder.spec import EncoderSpec


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
    """One layer: attention, then feed-forward, each added to its input and normed after or before.

    Between the two halves pieces may leave.
    """

    def __init__(self, spec: EncoderSpec, number: int) -> None:
        super().__init__()
        self.norm_first, self.is_gated = spec.norm_first, spec.is_gated
        self.attention = Attention(spec, spec.heads_of(number))
        # where norms come first, the embeddings have been normed already
        is_normed = spec.norm_first and number == 0
        self.attention_norm = nn.Identity() if is_normed else make_norm(spec)
        n_inner = (1 + spec.is_gated) * spec.inner_width
        self.inner = nn.Linear(spec.width, n_inner, bias=spec.feed_forward_bias)
        self.outer = nn.Linear(spec.inner_width, spec.width, bias=spec.feed_forward_bias)
        self.outer_norm = make_norm(spec)
        self.activation_name = spec.activation
        self.activation = pick(ACTIVATIONS, spec.activation, "activation")
        self.dropout = nn.Dropout(spec.dropout)

    def forward(self, hidden: Tensor, mixed: Tensor) -> Tensor:
        """From what each piece was and what its attention gathered to what it is next.

        (piece, width)
        """
        hidden = hidden + self.dropout(self.attention.output(mixed))
        if self.norm_first:
            return hidden + self.dropout(self.feed_forward(self.outer_norm(hidden)))
        hidden = self.attention_norm(hidden)
        return self.outer_norm(hidden + self.dropout(self.feed_forward(hidden)))

    def attention_input(self, hidden: Tensor) -> Tensor:
        """What attention reads of the pieces. (piece, width)"""
        return self.attention_norm(hidden) if self.norm_first else hidden

    def feed_forward(self, hidden: Tensor) -> Tensor:
        """W₂ act(W₁ h), or W₂ (act(W₁ h) ⊙ V h) with W₁ and V in one. (piece, width)"""
        inner = self.inner(hidden)
        if not self.is_gated:
            return self.outer(self.activation(inner))
        opened, gate = inner.chunk(2, dim=-1)
        return self.outer(self.activation(opened) * gate)
