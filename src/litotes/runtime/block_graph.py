"""One layer in the file: attention, then feed-forward; and the last layer where nobody reads anything but the first piece.

    a = norm(h + Attention(h))        h' = norm(a + W₂ act(W₁ a))

Query, key and value are three products of the same rows rather than one that is split up again: the copies of the split cost more than
the larger product saves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import nn

from litotes.attention.softmax import Softmax
from litotes.encoders.encoder import Attention, Block
from litotes.errors import UserError
from litotes.runtime.embedding_graph import normed
from litotes.runtime.graph import Graph
from litotes.runtime.products import Products, as_array, part_of
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

    mixed: what each piece gathered (piece, attention_head × head_width), by_head: the same (attention_head, piece, head_width).
    weights: (attention_head, query, key). value: (piece, attention_head, head_width).
    """

    mixed: str
    by_head: str
    weights: str
    value: str


def attend(products: Products, attention: Attention, hidden: str, bias: str | None) -> str:
    """What each piece gathers, where nobody looks on. (piece, attention_head × head_width)"""
    if bias is not None or not isinstance(attention.weighting, Softmax):
        return observe(products, attention, hidden, bias, heads=None).mixed
    graph = products.graph
    one = graph.ints(0)
    query, key, value = (graph.add("Unsqueeze", rows, one) for rows in products.of(hidden, *_query_key_value(attention)))
    mixed = graph.add("Attention", query, key, value, q_num_heads=attention.n_heads, kv_num_heads=attention.n_heads)
    return graph.add("Squeeze", mixed, one)


def observe(products: Products, attention: Attention, hidden: str, bias: str | None, *, heads: str | None) -> Attended:
    """The same with everything a pruning wants to see. heads: 1 for those the text still uses, 0 for the others, (attention_head, 1, 1)."""
    graph, n_heads, width = products.graph, attention.n_heads, attention.inner // attention.n_heads
    parts = products.of(hidden, *_query_key_value(attention))
    query, key, value = (graph.reshape(rows, -1, n_heads, width) for rows in parts)  # (piece, attention_head, head_width)
    affinity = graph.add("FusedMatMul", query, key, transBatchA=1, transBatchB=1, transB=1, alpha=width**-0.5)
    if bias is not None:
        affinity = graph.add("Add", affinity, bias)
    weights = weights_of(graph, attention.weighting, affinity)  # (attention_head, query, key)
    if heads is not None:
        weights = graph.add("Mul", weights, heads)  # a head that is gone gives nothing and is not heard
    by_head = graph.add("FusedMatMul", weights, value, transBatchB=1)  # (attention_head, piece, head_width)
    mixed = graph.reshape(graph.add("Transpose", by_head, perm=[1, 0, 2]), -1, attention.inner)
    return Attended(mixed, by_head, weights, value)


def attend_first(products: Products, attention: Attention, hidden: str, bias: str | None, *, heads: str | None) -> str:
    """What the first piece gathers, without any piece's key or value. (1, attention_head × head_width)

        a_j = q · (K h_j) = (Kᵀ q) · h_j        Σ_j w_j (V h_j + b) = V (Σ_j w_j h_j) + b

    One query per attention head goes through the weights instead of all pieces: exact, for the weights sum to 1, and the offset of the
    keys adds the same to every affinity of a row.
    """
    graph, n_heads, width = products.graph, attention.n_heads, attention.inner // attention.n_heads
    query_layer, key_layer, value_layer = _query_key_value(attention)
    query = graph.reshape(products.one(first_row(graph, hidden), query_layer), n_heads, 1, width)
    keys = as_array(key_layer.weight).reshape(n_heads, width, -1) * np.float32(width**-0.5)
    asking = graph.reshape(graph.add("MatMul", query, graph.constant(keys)), n_heads, -1)  # (attention_head, model width)
    affinity = graph.add("Unsqueeze", graph.add("FusedMatMul", asking, hidden, transB=1), graph.ints(1))  # (attention_head, 1, key)
    if bias is not None:
        affinity = graph.add("Add", affinity, graph.add("Slice", bias, graph.ints(0), graph.ints(1), graph.ints(1)))
    weights = graph.add("Squeeze", weights_of(graph, attention.weighting, affinity), graph.ints(1))
    gathered = graph.add("Unsqueeze", graph.add("MatMul", weights, hidden), graph.ints(1))  # (attention_head, 1, model width)
    values = as_array(value_layer.weight).reshape(n_heads, width, -1).transpose(0, 2, 1)
    offset = as_array(value_layer.bias).reshape(n_heads, 1, width)
    mixed = graph.add("Add", graph.add("MatMul", gathered, graph.constant(values)), graph.constant(offset))
    if heads is not None:
        mixed = graph.add("Mul", mixed, heads)
    return graph.reshape(mixed, 1, attention.inner)


def first_row(graph: Graph, rows: str) -> str:
    return graph.rows(rows, graph.ints(0), graph.ints(1))


def completed(products: Products, block: Block, activation: str, hidden: str, mixed: str) -> str:
    """From what each piece was and what its attention gathered to what it is next. (piece, width)"""
    graph = products.graph
    hidden = normed(graph, graph.add("Add", hidden, products.one(mixed, block.attention.output)), block.attention_norm)
    inner = _activated(graph, activation, products.one(hidden, block.inner))
    return normed(graph, graph.add("Add", hidden, products.one(inner, block.outer)), block.outer_norm)


def _activated(graph: Graph, activation: str, rows: str) -> str:
    if activation == "silu":
        return graph.add("Mul", rows, graph.add("Sigmoid", rows))
    if activation not in ACTIVATIONS:
        raise UserError(f"The activation {activation!r} cannot be exported to ONNX yet: use the torch runtime.")
    op, attributes = ACTIVATIONS[activation]
    return graph.add(op, rows, **attributes)


def _query_key_value(attention: Attention) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
    inner = attention.inner
    return part_of(attention.qkv, 0, inner), part_of(attention.qkv, inner, 2 * inner), part_of(attention.qkv, 2 * inner, 3 * inner)
