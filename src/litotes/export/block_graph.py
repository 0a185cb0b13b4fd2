"""One layer in the file: attention, then feed-forward; and the last layer where nobody reads
anything but the first piece.

    a = norm(h + Attention(h))        h' = norm(a + W₂ act(W₁ a))

Query, key and value are three products of the same rows rather than one that is split up again: the
copies of the split cost more than the larger product saves.
"""

from __future__ import annotations

from dataclasses import dataclass

from litotes.attention.softmax import Softmax
from litotes.core.errors import UserError
from litotes.encoders.encoder import Block
from litotes.encoders.self_attention import Attention
from litotes.export.embedding_graph import normed
from litotes.export.graph import Graph
from litotes.export.products import Products
from litotes.export.weighting_graph import weights_of

ACTIVATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "gelu": ("Gelu", {}),
    "gelu_new": ("Gelu", {"approximate": "tanh"}),
    "gelu_pytorch_tanh": ("Gelu", {"approximate": "tanh"}),
    "relu": ("Relu", {}),
}


@dataclass(frozen=True)
class Asked:
    """Queries, keys and values by text, (text, piece, attention_head × head_width) each."""

    query: str
    key: str
    value: str

    @classmethod
    def of(
        cls, products: Products, attention: Attention, hidden: str, *, first: str | None = None
    ) -> Asked:
        """hidden: rows. first: the rows of first pieces, where they alone have queries; keys and
        values are those of all.
        """
        inner, qkv = attention.inner, attention.qkv
        query, key, value = (slice(start, start + inner) for start in (0, inner, 2 * inner))
        if first is None:
            rows = products.of(hidden, qkv, query, key, value)
        else:
            rows = [*products.of(first, qkv, query), *products.of(hidden, qkv, key, value)]
        return cls(*(products.apart(some, inner) for some in rows))


@dataclass(frozen=True)
class Attended:
    """What the attention of one layer gave, by the names of the tensors.

    mixed: what each query gathered (text, query, attention_head × head_width). weights: (text,
    attention_head, query, key).
    value: (text, key, attention_head × head_width).
    """

    mixed: str
    weights: str
    value: str
    n_heads: int


def attend(graph: Graph, attention: Attention, asked: Asked, bias: str | None = None) -> str:
    """What each query gathers by softmax, where nobody looks on.

    (text, query, attention_head × head_width)
    """
    return graph.add(
        "Attention",
        *_told(asked, bias),
        q_num_heads=attention.n_heads,
        kv_num_heads=attention.n_heads,
    )


def observe(
    graph: Graph, attention: Attention, asked: Asked, *, bias: str | None, heads: str | None
) -> Attended:
    """The same by any weighting, and with everything a pruning wants to see.

    bias: (text, attention_head, query, key). heads: 1 for those a text still uses, 0 for the
    others, (text, attention_head, 1, 1).
    """
    if type(attention.weighting) is not Softmax or heads is not None:
        return _by_hand(graph, attention, asked, bias, heads)
    n, after_softmax = attention.n_heads, 3
    counts = {"q_num_heads": n, "kv_num_heads": n, "qk_matmul_output_mode": after_softmax}
    mixed, _, _, weights = graph.add_several(
        "Attention", *_told(asked, bias), n_outputs=4, unused=(1, 2), **counts
    )
    return Attended(mixed, weights, asked.value, n)


def _told(asked: Asked, bias: str | None) -> tuple[str, ...]:
    return (asked.query, asked.key, asked.value, *(() if bias is None else (bias,)))


def _by_hand(
    graph: Graph, attention: Attention, asked: Asked, bias: str | None, heads: str | None
) -> Attended:
    n_heads, width = attention.n_heads, attention.inner // attention.n_heads
    split = (
        graph.reshape(values, 0, 0, n_heads, width)
        for values in (asked.query, asked.key, asked.value)
    )
    # (text, attention_head, piece, …)
    query, key, value = (graph.add("Transpose", values, perm=[0, 2, 1, 3]) for values in split)
    affinity = graph.add("FusedMatMul", query, key, transB=1, alpha=width**-0.5)
    if bias is not None:
        affinity = graph.add("Add", affinity, bias)
    weights = weights_of(graph, attention.weighting, affinity)  # (text, attention_head, query, key)
    if heads is not None:
        # a head that is gone gives nothing and is not heard
        weights = graph.add("Mul", weights, heads)
    mixed = graph.add("Transpose", graph.add("MatMul", weights, value), perm=[0, 2, 1, 3])
    return Attended(graph.reshape(mixed, 0, 0, attention.inner), weights, asked.value, n_heads)


def with_gathered(products: Products, block: Block, hidden: str, mixed: str) -> str:
    """What each piece was and what its attention gathered, together, as rows. mixed: (text, piece,
    attention_head × head_width)
    """
    graph = products.graph
    mixed = products.joined(mixed, block.attention.inner)
    return normed(
        graph,
        graph.add("Add", hidden, products.one(mixed, block.attention.output)),
        block.attention_norm,
    )


def fed_forward(products: Products, block: Block, activation: str, hidden: str) -> str:
    """What each piece makes of that by itself. Rows → rows"""
    graph = products.graph
    inner = _activated(graph, activation, products.one(hidden, block.inner))
    return normed(
        graph, graph.add("Add", hidden, products.one(inner, block.outer)), block.outer_norm
    )


def _activated(graph: Graph, activation: str, rows: str) -> str:
    if activation == "silu":
        return graph.add("Mul", rows, graph.add("Sigmoid", rows))
    if activation not in ACTIVATIONS:
        raise UserError(
            f"The activation {activation!r} cannot be exported to ONNX yet: use the torch runtime."
        )
    op, attributes = ACTIVATIONS[activation]
    return graph.add(op, rows, **attributes)
