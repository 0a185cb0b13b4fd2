"""A tiny writer of ONNX graphs: operators are added one by one, each known by its output's name.

    graph = Graph()
    with graph.part("feed_forward"):
        wide = graph.add("Gemm", "rows", graph.constant(weight), graph.constant(offset))   # a name
        back = graph.add("Relu", wide)

Nodes are named after their part (`layer.3.feed_forward/Gemm_57`), so that a profile can say where
time goes. Constants that are equal are kept once: layers that share their weights (ALBERT) share
them in the file as well. Everything is in the one file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import require_extra
from litotes.prediction.onnx_file import IR_VERSION, MICROSOFT, MICROSOFT_OPERATORS, OPSET, PRODUCER

_TYPE_NUMBERS: dict[type[np.generic], int] = {
    np.float32: 1,
    np.int64: 7,
    np.bool_: 9,
    np.float64: 11,
}
"""How ONNX numbers types (TensorProto.DataType)."""
_LARGE = 1 << 16
"""Bytes of a constant from which on it is kept once, for branches too."""


@dataclass(frozen=True)
class Value:
    """An input or output of a graph: its name, its type and its shape, in which a word is a size
    that varies.
    """

    name: str
    dtype: type[np.generic]
    shape: tuple[int | str, ...]


@dataclass(frozen=True)
class Node:
    """One operator. An attribute that is a Graph is the body of a loop, or one side of an If."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    name: str
    attributes: Mapping[str, Any]


class Graph:
    """Operators in the order they run, and the constants they read."""

    def __init__(self, outer: Graph | None = None) -> None:
        self.nodes: list[Node] = []
        self.outer = outer
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.constants: dict[str, NDArray[Any]] = {}
        self._names: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._outside: dict[tuple[str, tuple[int, ...], bytes], str] = {}  # of a branch
        # names inside a body differ from those outside
        self._numbers: Iterator[int] = count() if outer is None else outer._numbers
        self._constant_numbers: Iterator[int] = (
            count() if outer is None else outer._constant_numbers
        )
        self._part: str = "" if outer is None else outer._part

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Nodes added inside belong to this part of the model."""
        before, self._part = self._part, name
        try:
            yield
        finally:
            self._part = before

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Adds an operator with one output; gives the output's name.

        An input that is left out is an empty name.
        """
        return self.add_several(op, *inputs, n_outputs=1, **attributes)[0]

    def add_several(
        self, op: str, *inputs: str, n_outputs: int, unused: Collection[int] = (), **attributes: Any
    ) -> list[str]:
        """Adds an operator with several outputs.

        Those that are unused are not computed and have no name.
        """
        number = next(self._numbers)
        outputs = [f"{op}_{number}"]
        outputs += [f"{op}_{number}_{place}" for place in range(1, n_outputs)]
        for place in unused:
            outputs[place] = ""
        name = f"{self._part}/{op}_{number}"
        self.nodes.append(Node(op, inputs, tuple(outputs), name, attributes))
        return outputs

    def add_as(self, name: str, op: str, *inputs: str, **attributes: Any) -> str:
        """Adds an operator whose output has this name: an output of the whole graph."""
        node_name = f"{self._part}/{op}_{next(self._numbers)}"
        self.nodes.append(Node(op, inputs, (name,), node_name, attributes))
        return name

    def constant(self, values: Any) -> str:
        """The name of a constant tensor. numpy's own types stay what they are; give float32 where
        float32 is meant.
        """
        if self.outer is not None:
            return self.outer.constant(values)
        array = np.asarray(values, order="C")
        key = (array.dtype.str, array.shape, hashlib.sha256(array.data).digest())
        if key not in self._names:
            if array.nbytes > _LARGE and key in self._outside:
                return self._outside[key]
            self._names[key] = f"constant_{next(self._constant_numbers)}"
            self.constants[self._names[key]] = array
        return self._names[key]

    def ints(self, *values: int) -> str:
        """A vector of whole numbers: axes, shapes, places."""
        return self.constant(np.array(values, dtype=np.int64))

    def number(self, value: float) -> str:
        """A float32 that broadcasts."""
        return self.constant(np.float32(value))

    # The operators that every writer needs.

    def plus(self, a: str, b: str) -> str:
        return self.add("Add", a, b)

    def minus(self, a: str, b: str) -> str:
        return self.add("Sub", a, b)

    def times(self, a: str, b: str) -> str:
        return self.add("Mul", a, b)

    def over(self, a: str, b: str) -> str:
        return self.add("Div", a, b)

    def matmul(self, a: str, b: str) -> str:
        return self.add("MatMul", a, b)

    def concat(self, *values: str, axis: int) -> str:
        return self.add("Concat", *values, axis=axis)

    def transpose(self, values: str, *axes: int) -> str:
        return self.add("Transpose", values, perm=list(axes))

    def unsqueeze(self, values: str, axis: int) -> str:
        return self.add("Unsqueeze", values, self.ints(axis))

    def reshape(self, values: str, *shape: int) -> str:
        """-1: what is left; 0: as it was."""
        return self.add("Reshape", values, self.ints(*shape))

    def slice(self, values: str, start: str, end: str, *, axis: int = 0) -> str:
        """values[start:end] along an axis; start and end name vectors of one whole number."""
        return self.add("Slice", values, start, end, self.ints(axis))

    def first(self, values: str, n: str | int, *, axis: int = 0) -> str:
        """values[:n] along an axis; n is a number or names a vector of one."""
        start = self.ints(0)
        end = self.ints(n) if isinstance(n, int) else n
        return self.slice(values, start, end, axis=axis)

    def cast(self, values: str, dtype: type[np.generic]) -> str:
        return self.add("Cast", values, to=_TYPE_NUMBERS[dtype])

    def gather(self, values: str, places: str, *, axis: int = 0) -> str:
        return self.add("Gather", values, places, axis=axis)

    def sum(self, values: str, *axes: int, keep: bool = False) -> str:
        """The sum along some axes."""
        return self.add("ReduceSum", values, self.ints(*axes), keepdims=int(keep))

    def zeros_like(self, values: str) -> str:
        """values: finite"""
        return self.times(values, self.number(0))

    def mark(self, places: str, *, like: str, axis: int = -1) -> str:
        """1 at these places of each row, 0 elsewhere, in the shape of `like`, which is finite."""
        zeros = self.zeros_like(like)
        ones = self.add("Expand", self.number(1), self.add("Shape", places))
        return self.add("ScatterElements", zeros, places, ones, axis=axis)

    def body(self) -> Graph:
        """A graph for the inside of a loop; it can read everything outside it."""
        return Graph(self)

    @contextmanager
    def branch(self) -> Iterator[Graph]:
        """Nodes added to this graph meanwhile go into a body of their own, for one side of an If;
        the writers need not know.

        So do constants: ONNX Runtime prepares the weights of a graph when it opens a file, but not
        those that a body reads from outside. A large one that is there already is not repeated.
        """
        body = self.body()
        before = self.nodes, self.constants, self._names, self._outside
        self._outside = self._outside | self._names
        self.nodes, self.constants, self._names = body.nodes, body.constants, body._names
        try:
            yield body
        finally:
            self.nodes, self.constants, self._names, self._outside = before


def model_bytes(graph: Graph, facts: Mapping[str, str]) -> bytes:
    """The file's content. facts: what it says about itself (`metadata_props`)."""
    onnx = _import_onnx()
    operators = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid(MICROSOFT, 1)]
    model = onnx.helper.make_model(
        _graph_proto(graph, "litotes"),
        opset_imports=operators,
        ir_version=IR_VERSION,
        producer_name=PRODUCER,
    )
    onnx.helper.set_model_props(model, dict(facts))
    content: bytes = model.SerializeToString()
    return content


def _graph_proto(graph: Graph, name: str) -> Any:
    onnx = _import_onnx()
    nodes = [_node_proto(node) for node in graph.nodes]
    inputs, outputs = _value_protos(graph.inputs), _value_protos(graph.outputs)
    constants = [
        onnx.numpy_helper.from_array(array, constant) for constant, array in graph.constants.items()
    ]
    return onnx.helper.make_graph(nodes, name, inputs, outputs, constants)


def _node_proto(node: Node) -> Any:
    attributes = dict(node.attributes)
    for key, value in attributes.items():
        if isinstance(value, Graph):
            attributes[key] = _graph_proto(value, key)
    return _import_onnx().helper.make_node(
        node.op,
        node.inputs,
        node.outputs,
        name=node.name,
        domain=_domain_of(node.op),
        **attributes,
    )


def _domain_of(op: str) -> str:
    return MICROSOFT if op in MICROSOFT_OPERATORS else ""


def _value_protos(values: Sequence[Value]) -> list[Any]:
    make = _import_onnx().helper.make_tensor_value_info
    return [make(value.name, _TYPE_NUMBERS[value.dtype], value.shape) for value in values]


def _import_onnx() -> Any:
    require_extra("onnx", "Writing an ONNX file")
    import onnx

    return onnx
