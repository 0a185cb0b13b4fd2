"""One walk through an ONNX model: model → graph → operators → attributes → the graphs inside loops
and branches.

Whatever our exporter does not write is a `ValueError`: messages and fields (messages.py), operators
(`file_format.OPERATORS`), versions, inputs and outputs other than those of the tasks the file says
it has. A tensor must have exactly the bytes its shape asks for, a name is given once, a loop has a
fixed bound, and there is one branch for each exit.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from litotes.core.json_text import from_json
from litotes.core.registry import is_plain_name
from litotes.prediction.onnx.file_format import (
    EXITS,
    INT16,
    IR_VERSION,
    LAYERS,
    MICROSOFT,
    MOST_ROUNDS,
    OPERATORS,
    OPSET,
    PIECES,
    PRODUCER,
    SEGMENTS,
    SEVERAL,
)
from litotes.prediction.onnx.messages import (
    ATTRIBUTE,
    ENTRY,
    GRAPH,
    MODEL,
    NODE,
    OPERATOR_SET,
    SHAPE,
    SIDE,
    TENSOR,
    TENSOR_TYPE,
    TYPE,
    VALUE,
)
from litotes.prediction.onnx.wire_format import WireReader

Message = Mapping[str, list[Any]]
Promise = tuple[int, int | None]
"""Of an input or output: its type, and its number of classes, the last side of its shape; None: it
has no such side.
"""
MOST_OUTSIDE_TENSORS = 1 << 24
"""Bytes of everything but weights; ours have some hundred kilobytes."""
_LARGEST_SIDE, _MOST_SIDES = (1 << 31) - 1, 8
_FLOAT32, _INT16, _INT64, _FLOAT64 = 1, 5, 7, 11
_ITEM_BYTES = {_FLOAT32: 4, 2: 1, 3: 1, 6: 4, _INT64: 8, 9: 1, _FLOAT64: 8}
"""Of float32, uint8, int8, int32, int64, bool and float64, as ONNX numbers types
(TensorProto.DataType).
"""
_ATTRIBUTE_VALUES = {1: "f", 2: "i", 3: "s", 5: "g", 7: "ints"}
"""Where a value of each type stands (AttributeProto.AttributeType)."""
_EMPTY = memoryview(b"")


def tasks_of(facts: Mapping[str, str]) -> dict[str, list[str]]:
    """The labels of every task the file says it has; none where the answer is a number."""
    tasks = from_json(facts["tasks"])
    if not isinstance(tasks, dict) or not tasks:
        raise ValueError("its tasks are not a table")
    for name, labels in tasks.items():
        if not is_plain_name(name):
            raise ValueError(f"it has a task called {name!r}")
        are_words = isinstance(labels, list) and all(isinstance(label, str) for label in labels)
        if not are_words or len(set(labels)) != len(labels):
            raise ValueError(f"its labels of {name} are not a list of different words")
    return tasks


@dataclass(frozen=True)
class _Value:
    """An input or output of a graph: its type as ONNX numbers it, and its sides; a side that varies
    is None.
    """

    name: str
    dtype: int
    shape: tuple[int | None, ...]


class ModelCheck:
    """Checks one file; `read_facts` does it all."""

    def __init__(self) -> None:
        self._read = WireReader().read
        self._names: set[str] = set()
        self._rounds: dict[str, int] = {}  # whole numbers by name: a loop's bound is one of them
        self._n_tensor_bytes = 0
        self._item_bytes = dict(_ITEM_BYTES)
        self._n_branches = 0  # that may still come: one for each exit

    def read_facts(self, content: memoryview) -> dict[str, str]:
        """What the file says about itself, if all of it is as litotes writes it."""
        if not content:
            raise ValueError("it is empty")
        # ONNX Runtime would take it for a file of its other format
        if bytes(content[4:8]) == b"ORTM":
            raise ValueError("it looks like a file of another format")
        model = self._read(content, MODEL)
        self._check_origin(model)
        facts = self._facts(model)
        if facts["precision"] == INT16:  # only these have weights in 16 bits
            self._item_bytes[_INT16] = 2
        if not model["graph"]:
            raise ValueError("it has no graph")
        self._n_branches = _n_branches(facts)
        tasks = tasks_of(facts)
        several = _several_of(facts, tasks)
        promised = _promised_outputs(tasks, several, has_exits=has_branches(facts))
        self._check_model_graph(self._read(model["graph"][0], GRAPH), promised)
        if len(content) - self._n_tensor_bytes > MOST_OUTSIDE_TENSORS:
            raise ValueError(f"of its {len(content)} bytes only {self._n_tensor_bytes} are tensors")
        return facts

    def _check_origin(self, model: Message) -> None:
        version = _first(model, "ir_version", 0)
        if version != IR_VERSION:
            raise ValueError(f"its format is version {version}, ours {IR_VERSION}")
        if _first(model, "producer_name", "") != PRODUCER:
            raise ValueError("it was written by something else")
        sets = [self._read(content, OPERATOR_SET) for content in model["opset_import"]]
        found = sorted((_first(one, "domain", ""), _first(one, "version", 0)) for one in sets)
        if found != [("", OPSET), (MICROSOFT, 1)]:
            raise ValueError(
                f"its operators are of the versions {found}, ours are {OPSET} and {MICROSOFT} 1"
            )

    def _facts(self, model: Message) -> dict[str, str]:
        entries = [self._read(content, ENTRY) for content in model["metadata_props"]]
        facts = {_first(entry, "key", ""): _first(entry, "value", "") for entry in entries}
        if len(facts) != len(entries):
            raise ValueError("it gives a fact twice")
        for name in ("litotes", "precision", "tasks", "max_pieces"):
            if name not in facts:
                raise ValueError(f"it does not say its {name}")
        if not re.fullmatch(r"[1-9][0-9]{0,8}", facts["max_pieces"], re.ASCII):
            raise ValueError("its max_pieces is not a count")
        return facts

    def _check_model_graph(self, graph: Message, promised: Mapping[str, Promise]) -> None:
        inputs = [self._value(content) for content in graph["input"]]
        outputs = [self._value(content) for content in graph["output"]]
        _compare("inputs", inputs, {PIECES: (_INT64, None), SEGMENTS: (_INT64, None)})
        _compare("outputs", outputs, promised)
        self._define(value.name for value in inputs)
        for content in graph["initializer"]:
            self._check_tensor(self._read(content, TENSOR))
        self._check_nodes(graph, may_loop=True)

    def _check_tensor(self, tensor: Message) -> None:
        name, dtype = _first(tensor, "name", ""), _first(tensor, "data_type", 0)
        content = _first(tensor, "raw_data", _EMPTY)
        if dtype not in self._item_bytes:
            raise ValueError(f"the tensor {name!r} is of a type that litotes never writes")
        n_bytes = _n_items(tensor) * self._item_bytes[dtype]
        if len(content) != n_bytes:
            raise ValueError(
                f"the tensor {name!r} should have {n_bytes} bytes and has {len(content)}"
            )
        self._n_tensor_bytes += len(content)
        self._define([name])
        if dtype == _INT64 and not tensor["dims"]:
            self._rounds[name] = int(np.frombuffer(content, "<i8")[0])

    def _check_nodes(self, graph: Message, *, may_loop: bool) -> None:
        for content in graph["node"]:
            node = self._read(content, NODE)
            op, domain = _first(node, "op_type", ""), _first(node, "domain", "")
            if op not in OPERATORS.get(domain, ()):
                raise ValueError(
                    f"it has the operator {op!r} of the domain {domain!r}, which litotes never"
                    " writes"
                )
            self._define(filter(None, node["output"]))  # an output that is not used has no name
            bodies: list[memoryview] = []
            for attribute in node["attribute"]:
                bodies += self._bodies(self._read(attribute, ATTRIBUTE))
            if op == "Loop":
                self._check_loop(node, bodies, may_loop=may_loop)
            elif op == "If":
                self._check_branches(bodies, may_branch=may_loop)
            elif bodies:
                raise ValueError(f"its operator {op} has a graph inside")

    def _bodies(self, attribute: Message) -> list[memoryview]:
        """The graph an attribute holds, if it holds one."""
        values = [name for name in _ATTRIBUTE_VALUES.values() if attribute[name]]
        if values not in ([_ATTRIBUTE_VALUES.get(_first(attribute, "type", 0))], []):
            raise ValueError("an attribute's value is not of its type")
        return attribute["g"]

    def _check_loop(self, node: Message, bodies: list[memoryview], *, may_loop: bool) -> None:
        bound = self._rounds.get(_first(node, "input", ""), -1)
        if not may_loop or len(bodies) != 1:
            raise ValueError("it has a loop that is not built like ours")
        if not 0 <= bound <= MOST_ROUNDS:
            raise ValueError(f"it has a loop that may run longer than {MOST_ROUNDS} rounds")
        body = self._read(bodies[0], GRAPH)
        if body["initializer"]:
            raise ValueError("a loop has tensors of its own")
        self._define(self._value(content).name for content in body["input"])
        for content in body["output"]:
            self._value(content)
        self._check_nodes(body, may_loop=False)

    def _check_branches(self, bodies: list[memoryview], *, may_branch: bool) -> None:
        """The two sides of an exit; a loop has none inside."""
        self._n_branches -= 1
        if not may_branch or self._n_branches < 0 or len(bodies) != 2:
            raise ValueError("it has a branch that is not one of its exits")
        for content in bodies:
            body = self._read(content, GRAPH)
            if body["input"]:
                raise ValueError("a branch has inputs of its own")
            for tensor in body["initializer"]:
                self._check_tensor(self._read(tensor, TENSOR))
            for value in body["output"]:
                self._value(value)
            self._check_nodes(body, may_loop=True)

    def _value(self, content: memoryview) -> _Value:
        value = self._read(content, VALUE)
        kind = self._read(_first(value, "type", _EMPTY), TYPE)
        tensor = self._read(_first(kind, "tensor_type", _EMPTY), TENSOR_TYPE)
        shape = self._read(_first(tensor, "shape", _EMPTY), SHAPE)
        sides = [self._read(side, SIDE) for side in shape["dim"]]
        lengths = tuple(_first(side, "dim_value", None) for side in sides)
        return _Value(_first(value, "name", ""), _first(tensor, "elem_type", 0), lengths)

    def _define(self, names: Iterable[str]) -> None:
        """A name has one meaning in the whole file."""
        for name in names:
            if not name or name in self._names:
                raise ValueError(f"it gives the name {name!r} twice, or to nothing")
            self._names.add(name)


def has_branches(facts: Mapping[str, str]) -> bool:
    """Whether texts may leave inside the graph, which then says where each of them did."""
    return _n_branches(facts) > 0


def _n_branches(facts: Mapping[str, str]) -> int:
    """How many exits the file says it has; one before the first layer is asked outside of it."""
    if EXITS not in facts:
        return 0
    exits = from_json(facts[EXITS])
    if not isinstance(exits, dict) or not isinstance(exits.get("layers"), list):
        raise ValueError("its exits are not a table")
    return sum(layer != 0 for layer in exits["layers"])


def _n_items(tensor: Message) -> int:
    sides = tensor["dims"]
    if len(sides) > _MOST_SIDES or not all(0 <= side <= _LARGEST_SIDE for side in sides):
        raise ValueError(f"the tensor {_first(tensor, 'name', '')!r} has an impossible shape")
    return prod(sides)


def _several_of(facts: Mapping[str, str], tasks: Mapping[str, list[str]]) -> Collection[str]:
    """The tasks in which the file says that a text may have several labels."""
    names = from_json(facts.get(SEVERAL, "[]"))
    if not isinstance(names, list) or not all(tasks.get(name) for name in names):
        raise ValueError("its tasks with several labels are not tasks with labels")
    return names


def _promised_outputs(
    tasks: Mapping[str, list[str]], several: Collection[str], *, has_exits: bool
) -> dict[str, Promise]:
    promised: dict[str, Promise] = {}
    for task, labels in tasks.items():
        promised[f"{task}.logits"] = (_FLOAT32, len(labels) or 1)
        if labels:
            promised[f"{task}.probabilities"] = (_FLOAT64, len(labels))
            if task in several:
                promised[f"{task}.labels"] = (_INT64, len(labels))
            else:
                promised[f"{task}.label"] = (_INT64, None)
    if has_exits:
        promised[LAYERS] = (_INT64, None)
    return promised


def _compare(what: str, values: Sequence[_Value], promised: Mapping[str, Promise]) -> None:
    """All sides but the classes vary: texts and pieces."""
    found: dict[str, Promise] = {}
    has_fixed_side = False
    for value in values:
        found[value.name] = (value.dtype, value.shape[-1] if value.shape else None)
        has_fixed_side |= any(side is not None for side in value.shape[:-1])
    if len(values) != len(promised) or found != promised or has_fixed_side:
        raise ValueError(f"its {what} are not {', '.join(promised)} as litotes writes them")


def _first(message: Message, name: str, default: Any) -> Any:
    """The value of a field that has one; the default if the message lacks it."""
    return message[name][0] if message[name] else default
