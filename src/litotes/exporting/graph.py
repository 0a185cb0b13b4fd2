"""A tiny writer of ONNX graphs: operators are added one by one, by the names ONNX gives them, and
their outputs computed with.

    graph = Graph()
    wide = graph.Gemm("rows", weight, offset)   # arrays become constants
    back = graph.Relu(wide * 2.0 + 1.0)

What is equal is written once: an operator whose inputs and attributes are those of an earlier one
gives what that gives, so that writers need not remember what they have made; and constants, so that
layers that share their weights (ALBERT) share them in the file as well.

Nodes are named after their part (`layer.3.feed_forward/Gemm_57`), so that a profile can say where
time goes. Everything is in the one file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import require_extra
from litotes.prediction.onnx_file import IR_VERSION, MICROSOFT, MICROSOFT_OPERATORS, OPSET, PRODUCER

_LARGE = 1 << 16
"""Bytes of a constant from which on it is kept once, for branches too."""


def _operator(op: str, *, swapped: bool = False) -> Callable[[Any, Any], Any]:
    """A method of symbols that adds this operator."""

    def apply(symbol: Symbol, other: Any) -> Symbol:
        other = np.float32(other) if type(other) in (int, float) else other
        inputs = (other, symbol) if swapped else (symbol, other)
        return symbol.graph.several(op, *inputs, n_outputs=1)[0]

    return apply


class Symbol:
    """The output of an operator, by its name in the graph; arithmetic adds operators. Numbers it
    meets are float32, tuples vectors of whole numbers.

    layout, width: what operations note about it (onnx_operations.py).
    """

    __array_ufunc__ = None  # arrays leave arithmetic to symbols
    layout = "rows"
    width: int | None = None

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __repr__(self) -> str:
        return self.name

    __add__, __radd__ = _operator("Add"), _operator("Add", swapped=True)
    __sub__, __rsub__ = _operator("Sub"), _operator("Sub", swapped=True)
    __truediv__ = _operator("Div")
    __gt__, __lt__ = _operator("Greater"), _operator("Greater", swapped=True)
    __matmul__, __rmatmul__ = _operator("MatMul"), _operator("MatMul", swapped=True)

    def __mul__(self, other: Any) -> Symbol:
        is_one = type(other) is float and other == 1
        return self if is_one else _operator("Mul")(self, other)

    __rmul__ = __mul__

    def plus(self, whole: int) -> Symbol:
        """The sum of whole numbers."""
        return self + np.array([whole])


@dataclass(frozen=True)
class Value:
    """An input or output of a graph: its name, its type and its shape, in which a word is a size
    that varies.
    """

    name: str
    dtype: type[np.generic]
    shape: tuple[int | str, ...]


class Graph:
    """Operators in the order they run, and the constants they read.

    part: what nodes added from now on belong to.
    """

    def __init__(self, outer: Graph | None = None) -> None:
        self.nodes: list[Any] = []  # in onnx's own form
        self.outer = outer
        self._onnx = _import_onnx()
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.constants: dict[str, NDArray[Any]] = {}
        self._made: dict[tuple[Any, ...], list[Symbol]] = {}
        self._names: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._outside: dict[tuple[str, tuple[int, ...], bytes], str] = {}  # of a branch
        # names inside a body differ from those outside
        self._numbers: Iterator[int] = count() if outer is None else outer._numbers
        self.part: str = "" if outer is None else outer.part

    def __getattr__(self, op: str) -> Callable[..., Symbol]:
        """Adds an operator with one output. Inputs: symbols, names (an empty one for an input that
        is left out), or what `constant` takes.
        """
        if not op[0].isupper():  # as no operator is called
            raise AttributeError(op)
        return lambda *inputs, **attributes: self.several(op, *inputs, n_outputs=1, **attributes)[0]

    def several(
        self, op: str, *inputs: Any, n_outputs: int, unused: Sequence[int] = (), **attributes: Any
    ) -> list[Symbol]:
        """Adds an operator with several outputs. Those that are unused are not computed and have no
        name.
        """
        names = [self._name(value) for value in inputs]
        bodies = [value for value in attributes.values() if isinstance(value, Graph)]
        key = (op, *names, n_outputs, tuple(unused), repr(attributes))
        if key not in self._made or bodies:
            number = next(self._numbers)
            outputs = [f"{op}_{number}", *(f"{op}_{number}_{n}" for n in range(1, n_outputs))]
            for place in unused:
                outputs[place] = ""
            self._made[key] = self._append(op, names, outputs, attributes)
        return self._made[key]

    def top(self, values: Any, n: Any, **attributes: Any) -> list[Symbol]:
        """The n largest of the last axis, or of another, and their places."""
        return self.several("TopK", values, n, n_outputs=2, **attributes)

    def add_as(self, name: str, op: str, *inputs: Any, **attributes: Any) -> Symbol:
        """Adds an operator whose output has this name: an output of the whole graph."""
        return self._append(op, [self._name(value) for value in inputs], [name], attributes)[0]

    def _append(
        self, op: str, inputs: Sequence[str], outputs: Sequence[str], attributes: dict[str, Any]
    ) -> list[Symbol]:
        for key, value in attributes.items():
            if isinstance(value, Graph):  # the body of a loop, or one side of an If
                attributes[key] = _graph_proto(value, key)
        node = self._onnx.helper.make_node(
            op,
            inputs,
            outputs,
            name=f"{self.part}/{outputs[0]}",
            domain=MICROSOFT if op in MICROSOFT_OPERATORS else "",
            **attributes,
        )
        self.nodes.append(node)
        return [Symbol(self, output) for output in outputs]

    def _name(self, value: Any) -> str:
        if isinstance(value, Symbol):
            return value.name
        return value if isinstance(value, str) else self.constant(value).name

    def constant(self, values: Any) -> Symbol:
        """A constant tensor. A tuple is a vector of whole numbers (axes, shapes, places), a number
        what it is in Python; numpy's own types stay what they are.
        """
        if self.outer is not None:
            return self.outer.constant(values)
        array = np.asarray(values, order="C")
        if type(values) is float:
            array = array.astype(np.float32)
        key = (array.dtype.str, array.shape, hashlib.sha256(array.data).digest())
        if key not in self._names:
            if array.nbytes > _LARGE and key in self._outside:
                return Symbol(self, self._outside[key])
            self._names[key] = f"constant_{next(self._numbers)}"
            self.constants[self._names[key]] = array
        return Symbol(self, self._names[key])

    # The operators that need more than their name

    def slice(self, values: Any, start: Any, end: Any, *, axis: int = 0) -> Symbol:
        """values[start:end] along an axis; start and end: vectors of one whole number, or numbers.

        end None: to the end.
        """
        bounds = [(one,) if isinstance(one, int) else one for one in (start, end)]
        if end is None:
            bounds[1] = (np.iinfo(np.int64).max,)
        return self.Slice(values, *bounds, (axis,))

    def cast(self, values: Any, dtype: type[np.generic]) -> Symbol:
        return self.Cast(values, to=_type_number(dtype))

    def range(self, start: Any, end: Any) -> Symbol:
        """start, start + 1, … up to end; both vectors of one whole number, or numbers."""
        bounds = [one if isinstance(one, int) else self.Squeeze(one) for one in (start, end)]
        return self.Range(*bounds, 1)

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
        outside = vars(self).copy()
        self._outside, self._made = self._outside | self._names, self._made.copy()
        self.nodes, self.constants, self._names = body.nodes, body.constants, body._names
        try:
            yield body
        finally:
            vars(self).update(outside)


def model_bytes(graph: Graph, facts: Mapping[str, str]) -> bytes:
    """The file's content. facts: what it says about itself (`metadata_props`)."""
    helper = _import_onnx().helper
    operators = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(
        _graph_proto(graph, "litotes"),
        opset_imports=operators,
        ir_version=IR_VERSION,
        producer_name=PRODUCER,
    )
    helper.set_model_props(model, dict(facts))
    content: bytes = model.SerializeToString()
    return content


def _graph_proto(graph: Graph, name: str) -> Any:
    onnx = _import_onnx()

    def described(values: Sequence[Value]) -> list[Any]:
        describe = onnx.helper.make_tensor_value_info
        return [describe(one.name, _type_number(one.dtype), one.shape) for one in values]

    constants = [onnx.numpy_helper.from_array(array, key) for key, array in graph.constants.items()]
    return onnx.helper.make_graph(
        graph.nodes, name, described(graph.inputs), described(graph.outputs), constants
    )


def _type_number(dtype: type[np.generic]) -> int:
    number: int = _import_onnx().helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return number


def _import_onnx() -> Any:
    require_extra("onnx", "Writing an ONNX file")
    import onnx

    return onnx
