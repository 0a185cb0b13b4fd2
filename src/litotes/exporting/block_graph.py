"""One layer in the file: attention, then feed-forward.

    a = norm(h + Attention(h))        h' = norm(a + W₂ act(W₁ a))
    a = h + Attention(norm(h))        h' = a + W₂ (act(W₁ n) ⊙ V n),  n = norm(a)

The second is ModernBERT's.

Query, key and value are three products of the same rows rather than one that is split up again: the
copies of the split cost more than the larger product saves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from litotes.core.errors import UserError
from litotes.encoder.attention.softmax import Softmax
from litotes.encoder.encoder import Attention, Block
from litotes.exporting.embedding_graph import write_norm
from litotes.exporting.graph import Graph
from litotes.exporting.products import Products
from litotes.exporting.weighting_graph import write_weights

ACTIVATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "gelu": ("Gelu", {}),
    "gelu_new": ("Gelu", {"approximate": "tanh"}),
    "gelu_pytorch_tanh": ("Gelu", {"approximate": "tanh"}),
    "relu": ("Relu", {}),
}


@dataclass(frozen=True)
class Projections:
    """Queries, keys and values by text, (text, piece, attention_head × head_width) each.

    All by the names of their tensors.
    """

    query: str
    key: str
    value: str

    def inputs(self, bias: str | None) -> list[str]:
        """The inputs of ONNX's own operator for attention."""
        names = [self.query, self.key, self.value]
        return names if bias is None else [*names, bias]


@dataclass(frozen=True)
class GraphAttention:
    """What the attention of one layer gave, by the names of the tensors.

    mixed: what each query gathered, (text, query, attention_head × head_width).
    weights: (text, attention_head, query, key).
    value: (text, key, attention_head × head_width).
    """

    mixed: str
    weights: str
    value: str
    n_heads: int


def write_projections(
    products: Products, attention: Attention, hidden: str, *, first: str | None = None
) -> Projections:
    """hidden: rows. first: the rows of first pieces, if only they have queries; keys and values
    are those of all.
    """
    inner, qkv = attention.inner, attention.qkv
    query, key, value = (slice(start, start + inner) for start in (0, inner, 2 * inner))
    if first is None:
        rows = products.apply_parts(hidden, qkv, query, key, value)
    else:
        rows = products.apply_parts(first, qkv, query)
        rows += products.apply_parts(hidden, qkv, key, value)
    return Projections(*(products.to_texts(part, inner) for part in rows))


def write_attention(
    graph: Graph, attention: Attention, projections: Projections, bias: str | None = None
) -> str:
    """What each query gathers by softmax, where the weights are not needed.

    (text, query, attention_head × head_width)
    """
    return graph.add("Attention", *projections.inputs(bias), **_attributes(attention))


def _attributes(attention: Attention) -> dict[str, Any]:
    """Of ONNX's own operator for attention."""
    n, attributes = attention.n_heads, {}
    if attention.disentangled is not None:  # else the operator scales as we do
        attributes["scale"] = attention.scale
    return {"q_num_heads": n, "kv_num_heads": n, **attributes}


def write_attention_with_weights(
    graph: Graph,
    attention: Attention,
    projections: Projections,
    *,
    bias: str | None,
    heads: str | None,
) -> GraphAttention:
    """The same by any weighting, with everything a pruning wants to see.

    bias: (text, attention_head, query, key). heads: 1 for those a text still uses, 0 for the
    others, (text, attention_head, 1, 1).
    """
    if type(attention.weighting) is not Softmax or heads is not None:
        return _write_by_hand(graph, attention, projections, bias, heads)
    after_softmax = 3
    attributes = _attributes(attention) | {"qk_matmul_output_mode": after_softmax}
    mixed, _, _, weights = graph.add_several(
        "Attention", *projections.inputs(bias), n_outputs=4, unused=(1, 2), **attributes
    )
    return GraphAttention(mixed, weights, projections.value, attention.n_heads)


def _write_by_hand(
    graph: Graph,
    attention: Attention,
    projections: Projections,
    bias: str | None,
    heads: str | None,
) -> GraphAttention:
    """Attention by products and a weighting of our own."""
    query = split_heads(graph, attention, projections.query)
    key = split_heads(graph, attention, projections.key)
    value = split_heads(graph, attention, projections.value)
    affinity = graph.add("FusedMatMul", query, key, transB=1, alpha=attention.scale)
    if bias is not None:
        affinity = graph.plus(affinity, bias)
    # (text, attention_head, query, key)
    weights = write_weights(graph, attention.weighting, affinity)
    if heads is not None:
        # a head that is gone gives nothing and is not counted
        weights = graph.times(weights, heads)
    mixed = graph.transpose(graph.matmul(weights, value), 0, 2, 1, 3)
    mixed = graph.reshape(mixed, 0, 0, attention.inner)
    return GraphAttention(mixed, weights, projections.value, attention.n_heads)


def split_heads(graph: Graph, attention: Attention, values: str) -> str:
    """(text, piece, attention_head × head_width) → (text, attention_head, piece, head_width)"""
    head_width = attention.inner // attention.n_heads
    split = graph.reshape(values, 0, 0, attention.n_heads, head_width)
    return graph.transpose(split, 0, 2, 1, 3)


def write_attention_input(products: Products, block: Block, hidden: str) -> str:
    """What attention reads of the pieces. Rows → rows"""
    norm = block.attention_norm
    if not block.norm_first or not isinstance(norm, nn.LayerNorm):
        return hidden
    return write_norm(products.graph, hidden, norm)


def write_attention_output(products: Products, block: Block, hidden: str, mixed: str) -> str:
    """norm(h + W mixed), without the norm where that comes first: what each piece was and what its
    attention gathered, as rows.

    mixed: (text, piece, attention_head × head_width)
    """
    graph = products.graph
    mixed = products.to_rows(mixed, block.attention.inner)
    output = products.apply(mixed, block.attention.output)
    added = graph.plus(hidden, output)
    if block.norm_first:
        return added
    assert isinstance(block.attention_norm, nn.LayerNorm)
    return write_norm(graph, added, block.attention_norm)


def write_feed_forward(products: Products, block: Block, activation: str, hidden: str) -> str:
    """norm(a + W₂ act(W₁ a)), or a + W₂ (act(W₁ n) ⊙ V n) with n = norm(a). Rows → rows"""
    graph = products.graph
    if block.norm_first:
        normed = write_norm(graph, hidden, block.outer_norm)
        return graph.plus(hidden, _write_both_products(products, block, activation, normed))
    outer = _write_both_products(products, block, activation, hidden)
    return write_norm(graph, graph.plus(hidden, outer), block.outer_norm)


def _write_both_products(products: Products, block: Block, activation: str, rows: str) -> str:
    graph, width = products.graph, block.outer.in_features
    parts = (slice(width), slice(width, None)) if block.is_gated else (slice(None),)
    inner, *gates = products.apply_parts(rows, block.inner, *parts)
    inner = _write_activation(graph, activation, inner)
    for gate in gates:
        inner = graph.times(inner, gate)
    return products.apply(inner, block.outer)


def _write_activation(graph: Graph, activation: str, rows: str) -> str:
    if activation == "silu":
        return graph.times(rows, graph.add("Sigmoid", rows))
    if activation not in ACTIVATIONS:
        raise UserError(
            f"The activation {activation!r} cannot be exported to ONNX yet: use the torch runtime."
        )
    op, attributes = ACTIVATIONS[activation]
    return graph.add(op, rows, **attributes)
