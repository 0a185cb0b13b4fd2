"""One layer in the file: attention, then feed-forward; and the last layer where nobody reads anything but the first piece.

    a = norm(h + Attention(h))        h' = norm(a + W₂ act(W₁ a))

Query, key and value are three products of the same rows rather than one that is split up again: the copies of the split cost more than
the larger product saves.
"""

from __future__ import annotations

from dataclasses import dataclass

from litotes.encoders.encoder import Attention, Block
from litotes.errors import UserError
from litotes.runtime.embedding_graph import normed
from litotes.runtime.graph import Graph
from litotes.runtime.products import Products
from litotes.runtime.weighting_graph import weights_of

ACTIVATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "gelu": ("Gelu", {}),
    "gelu_new": ("Gelu", {"approximate": "tanh"}),
    "gelu_pytorch_tanh": ("Gelu", {"approximate": "tanh"}),
    "relu": ("Relu", {}),
}


@dataclass(frozen=True)
class Attended:
    """What the attention of one layer gave, by the names of the tensors.

    mixed: what each query gathered (query, attention_head × head_width), by_head: the same (attention_head, query, head_width).
    weights: (attention_head, query, key). value: (key, attention_head, head_width).
    """

    mixed: str
    by_head: str
    weights: str
    value: str


@dataclass(frozen=True)
class Asked:
    """Queries, keys and values, (piece, attention_head × head_width) each."""

    query: str
    key: str
    value: str

    @classmethod
    def of(cls, products: Products, attention: Attention, hidden: str, *, firsts_only: bool = False) -> Asked:
        """firsts_only: the query of the first piece alone, with the keys and values of all."""
        inner, qkv = attention.inner, attention.qkv
        query, key, value = (slice(start, start + inner) for start in (0, inner, 2 * inner))
        if firsts_only:
            return cls(*products.of(first_row(products.graph, hidden), qkv, query), *products.of(hidden, qkv, key, value))
        return cls(*products.of(hidden, qkv, query, key, value))


def attend(graph: Graph, attention: Attention, asked: Asked) -> str:
    """What each query gathers by softmax, where nobody looks on. (query, attention_head × head_width)"""
    one = graph.ints(0)
    texts = (graph.add("Unsqueeze", rows, one) for rows in (asked.query, asked.key, asked.value))  # (1, piece, inner)
    mixed = graph.add("Attention", *texts, q_num_heads=attention.n_heads, kv_num_heads=attention.n_heads)
    return graph.add("Squeeze", mixed, one)


def observe(graph: Graph, attention: Attention, asked: Asked, *, bias: str | None, heads: str | None) -> Attended:
    """The same by any weighting, and with everything a pruning wants to see.

    bias: (attention_head, query, key). heads: 1 for those the text still uses, 0 for the others, (attention_head, 1, 1).
    """
    n_heads, width = attention.n_heads, attention.inner // attention.n_heads
    parts = (asked.query, asked.key, asked.value)
    query, key, value = (graph.reshape(rows, -1, n_heads, width) for rows in parts)  # (piece, attention_head, head_width)
    affinity = graph.add("FusedMatMul", query, key, transBatchA=1, transBatchB=1, transB=1, alpha=width**-0.5)
    if bias is not None:
        affinity = graph.add("Add", affinity, bias)
    weights = weights_of(graph, attention.weighting, affinity)  # (attention_head, query, key)
    if heads is not None:
        weights = graph.add("Mul", weights, heads)  # a head that is gone gives nothing and is not heard
    by_head = graph.add("FusedMatMul", weights, value, transBatchB=1)  # (attention_head, query, head_width)
    mixed = graph.reshape(graph.add("Transpose", by_head, perm=[1, 0, 2]), -1, attention.inner)
    return Attended(mixed, by_head, weights, value)


def first_row(graph: Graph, rows: str) -> str:
    return graph.rows(rows, graph.ints(0), graph.ints(1))


def with_gathered(products: Products, block: Block, hidden: str, mixed: str) -> str:
    """What each piece was and what its attention gathered, together. (piece, width)"""
    graph = products.graph
    return normed(graph, graph.add("Add", hidden, products.one(mixed, block.attention.output)), block.attention_norm)


def fed_forward(products: Products, block: Block, activation: str, hidden: str) -> str:
    """What each piece makes of that by itself. (piece, width)"""
    graph = products.graph
    inner = _activated(graph, activation, products.one(hidden, block.inner))
    return normed(graph, graph.add("Add", hidden, products.one(inner, block.outer)), block.outer_norm)


def _activated(graph: Graph, activation: str, rows: str) -> str:
    if activation == "silu":
        return graph.add("Mul", rows, graph.add("Sigmoid", rows))
    if activation not in ACTIVATIONS:
        raise UserError(f"The activation {activation!r} cannot be exported to ONNX yet: use the torch runtime.")
    op, attributes = ACTIVATIONS[activation]
    return graph.add(op, rows, **attributes)
