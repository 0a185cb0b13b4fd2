"""How a weighting tells the kernels what to do with a row of affinities."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from litotes.encoder.operations import TORCH, Operations, Value

LONGEST = 1024
"""The most pieces a text may have for its rows to lie on the chip whole."""


@dataclass(frozen=True)
class RowRule:
    """The rule that the kernels compute, by name (kernels/rules.py).

    alpha: of each attention head, for `powers`. (attention_head,)
    kept: how many of n keys, or of n blocks of keys, a row keeps, for n from 0 to LONGEST. (n,)
    block: how many neighbours make a block.
    """

    name: str
    alpha: Tensor | None = None
    kept: Tensor | None = None
    block: int = 1

    @property
    def chooses(self) -> bool:
        """True if some keys are chosen, and the others get nothing."""
        return self.kept is not None


@cache
def kept_counts(share: float, device: torch.device) -> Tensor:
    """⌈share × n⌉ for every n; 0.05 of 20 is 1, whatever floating point says. (n,)

    Kept for good: a recorded pass goes on reading it.
    """
    counts = [math.ceil(share * n - 1e-9) for n in range(LONGEST + 1)]
    return torch.tensor(counts, dtype=torch.int32).to(device)


# The first seam of attention: a weighting turns affinities into weights.
#
#     weights = simplex(affinity),   affinity[q, k] = query_q · key_k / √d + bias[q, k]
#
# A weighting is a module of its own in every block, so it may carry parameters (one number per
# attention head, say). Its options are the keyword arguments of its class. One that is written with
# `ops` alone (operations.py) trains, runs on a GPU and is exported without another line.


class Weighting(nn.Module, ABC):
    """Non-negative weights over the live keys that sum to 1.

    `forward` is the definition and all that a new weighting has to give. `attend` may be overridden
    where torch has a fused kernel that computes the same thing.

    progress: how much of the training is done, 0 to 1, for weightings that change as training goes
    on; 1 outside training.
    rows_alone: whether a query's weights depend on its own affinities alone. A decoder needs that:
    a piece must not learn of those after it from what they attend to.
    """

    rows_alone = True

    def __init__(self, n_attention_heads: int) -> None:
        super().__init__()
        self.n_attention_heads = n_attention_heads
        self.progress = 1.0

    @property
    def is_settled(self) -> bool:
        """True once the weighting has stopped changing: scores of an epoch before that say little
        about the model.
        """
        return True

    @abstractmethod
    def forward(
        self,
        affinity: Value,
        live: Value | None = None,
        heads: Value | None = None,
        *,
        ops: Operations = TORCH,
    ) -> Value:
        """Weights of the shape of `affinity` (text, attention_head, query, key); keys that are not
        live get exactly 0.

        live: boolean, broadcastable to `affinity`; None when every key is live.
        heads: which attention heads the second axis shows, for `ops.per_head`, where a pruning has
        taken some away; None: all.
        """

    def row_rule(self, device: torch.device) -> RowRule | None:
        """Returns what the kernels on a GPU do with a row of affinities, as the weighting is now;
        None: there is no kernel for it, and the definition is computed.
        """
        return None

    def attend(self, query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
        """The weighted mean of the values, for rows of texts (text, attention_head, piece,
        head_width). options: of `attend_with_weights`.
        """
        mixed, _ = self.attend_with_weights(query, key, value, **options)
        return mixed

    def attend_with_weights(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        live: Tensor | None = None,
        bias: Tensor | None = None,
        heads: Tensor | None = None,
        dropout: float = 0.0,
    ) -> tuple[Tensor, Tensor]:
        """The result of `attend`, and the weights (text, attention_head, query, key) before
        dropout.
        """
        affinity = affinities(query, key)
        if bias is not None:
            affinity = affinity + bias
        weights = self(affinity, live, heads)
        used = functional.dropout(weights, dropout) if dropout else weights
        return used @ value, weights  # (text, attention_head, query, head_width)


def affinities(query: Tensor, key: Tensor) -> Tensor:
    """query_q · key_k / √d for every pair of a row's pieces. (text, attention_head, query, key)

    The product scales as it goes: a scaled copy of the queries would cost as much as a third of the
    product itself.
    """
    nothing = query.new_empty(1, 1, 1)  # beta = 0: never read
    scale = query.shape[-1] ** -0.5
    products = torch.baddbmm(
        nothing, query.flatten(0, 1), key.flatten(0, 1).transpose(-1, -2), beta=0, alpha=scale
    )
    return products.unflatten(0, query.shape[:2])


# softmax: every live key gets some weight. Vaswani et al. 2017, arXiv 1706.03762, §3.2.1.


class Softmax(Weighting):
    """Dense weights: w_k = exp(a_k) / Σ_j exp(a_j)."""

    def forward(
        self,
        affinity: Value,
        live: Value | None = None,
        heads: Value | None = None,
        *,
        ops: Operations = TORCH,
    ) -> Value:
        return ops.softmax(affinity, live)

    def row_rule(self, device: torch.device) -> RowRule:
        return RowRule("softmax")

    def attend(self, query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
        """The same by torch's fused kernel, which never writes the weights to memory.

        On a CPU that kernel has no dropout: torch falls back to separate operations there, with
        more passes over the weights than the definition needs.
        """
        live, bias = options.get("live"), options.get("bias")
        dropout = options.get("dropout", 0.0)
        if dropout and query.device.type == "cpu":
            return super().attend(query, key, value, **options)
        if bias is not None and live is not None:
            bias = bias.masked_fill(~live, torch.finfo(bias.dtype).min)
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=live if bias is None else bias, dropout_p=dropout
        )
