"""Is this `model.onnx` one that litotes could have written?

Asked before ONNX Runtime is given a single byte of it.

A file may come from anywhere, and ONNX can say more than a classifier needs: data in other files,
functions, operators that read files, loops without end. So nothing is looked for that is known to
be bad; whatever our exporter does not write is refused: messages and fields (the `Kind`s below),
operators (`graph.OPERATORS`), versions, inputs and outputs other than those of the tasks the file
says it has. A tensor must have exactly the bytes its shape asks for, a name is given once, and a
loop has a fixed bound.

What is left to an ill-meaning author is the same as with any weights: a model that answers
nonsense, or slowly.

The bytes that were checked are kept (`CheckedFile.content`) and are what is run, so that nobody can
exchange the file in between. They are read through symbolic links, also out of the folder: the
Hub's cache is made of such links, and it is the content that is judged. Needs neither onnx nor
torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from litotes.core.errors import UserError
from litotes.runtime.onnx.file_format import (
    IR_VERSION,
    MICROSOFT,
    MOST_ROUNDS,
    OPERATORS,
    OPSET,
    PIECES,
    PRODUCER,
    SEGMENTS,
)
from litotes.runtime.onnx.wire_format import Bytes, Float, Kind, Number, Text, WireReader

Message = Mapping[str, list[Any]]
MOST_BYTES = (1 << 31) - 1
"""Of a file: protobuf's own bound."""
MOST_BESIDE_TENSORS = 1 << 24
"""Bytes of everything but weights; ours have some hundred kilobytes."""
MOST_LETTERS = 300
"""Of what is wrong with a file: names in it may be long."""
_LARGEST_SIDE, _MOST_SIDES = (1 << 31) - 1, 8
_FLOAT32, _INT64, _FLOAT64 = 1, 7, 11
_ITEM_BYTES = {_FLOAT32: 4, 2: 1, 3: 1, 6: 4, _INT64: 8, 9: 1, _FLOAT64: 8}
"""Of float32, uint8, int8, int32, int64, bool and float64, as ONNX numbers types
(TensorProto.DataType).
"""
_ATTRIBUTE_VALUES = {1: "f", 2: "i", 3: "s", 5: "g", 7: "ints"}
"""Where a value of each type stands (AttributeProto.AttributeType)."""
_OUTSIDE = "data outside the file"

MODEL = Kind(
    "the model",
    {
        1: Number("ir_version"),
        2: Text("producer_name"),
        7: Bytes("graph"),
        8: Bytes("opset_import", repeats=True),
        14: Bytes("metadata_props", repeats=True),
    },
    {20: "training info", 25: "functions"},
)
OPERATOR_SET = Kind("an operator set", {1: Text("domain"), 2: Number("version")})
ENTRY = Kind("a fact", {1: Text("key"), 2: Text("value")})
GRAPH = Kind(
    "a graph",
    {
        1: Bytes("node", repeats=True),
        2: Text("name"),
        5: Bytes("initializer", repeats=True),
        11: Bytes("input", repeats=True),
        12: Bytes("output", repeats=True),
    },
    {15: "sparse tensors"},
)
NODE = Kind(
    "an operator",
    {
        1: Text("input", repeats=True),
        2: Text("output", repeats=True),
        3: Text("name"),
        4: Text("op_type"),
        5: Bytes("attribute", repeats=True),
        7: Text("domain"),
    },
)
ATTRIBUTE = Kind(
    "an attribute",
    {
        1: Text("name"),
        2: Float("f"),
        3: Number("i"),
        4: Text("s"),
        6: Bytes("g"),
        8: Number("ints", repeats=True),
        20: Number("type"),
    },
    {
        5: "a tensor",
        10: "tensors",
        11: "graphs",
        21: "a reference",
        22: "a sparse tensor",
        23: "sparse tensors",
    },
)
TENSOR = Kind(
    "a tensor",
    {
        1: Number("dims", repeats=True),
        2: Number("data_type"),
        8: Text("name"),
        9: Bytes("raw_data"),
    },
    {13: _OUTSIDE, 14: _OUTSIDE},
)
VALUE = Kind("an input or output", {1: Text("name"), 2: Bytes("type")})
TYPE = Kind("a type", {1: Bytes("tensor_type")})
TENSOR_TYPE = Kind("a tensor's type", {1: Number("elem_type"), 2: Bytes("shape")})
SHAPE = Kind("a shape", {1: Bytes("dim", repeats=True)})
SIDE = Kind("a side of a shape", {1: Number("dim_value"), 2: Text("dim_param")})


@dataclass(frozen=True)
class CheckedFile:
    """A file that may be run. content: its bytes. facts: what it says about itself. sha256: of the
    bytes, where somebody asked.
    """

    path: Path
    content: bytes
    facts: Mapping[str, str]
    sha256: str = ""


def check_file(path: Path) -> CheckedFile:
    """Reads a file and checks it; whether it belongs to its folder is another question
    (folder_check.py).
    """
    return check_content(path, read_model_bytes(path))


def check_content(path: Path, content: bytes) -> CheckedFile:
    try:
        return CheckedFile(path, content, _FileCheck().facts_of(memoryview(content)))
    except (ValueError, RecursionError) as error:
        reason = str(error)[:MOST_LETTERS]
        raise UserError(
            f"{path} is no file that litotes exported, or not a whole one: {reason}. Export the"
            " model again."
        ) from error


def read_model_bytes(path: Path) -> bytes:
    """A file's content; neither a folder nor a pipe, and nothing that could not be a model for its
    size alone.
    """
    if not path.is_file():
        raise UserError(f"There is no {path}. Make it with `litotes export`.")
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise UserError(
                f"{path} has {size} bytes, more than an ONNX file can have. Export the model again."
            )
        with path.open("rb") as stream:
            return stream.read(size + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}).") from error


def tasks_of(facts: Mapping[str, str]) -> dict[str, list[str]]:
    """The labels of every task the file says it has; none where it asks for a number."""
    tasks = json.loads(facts["tasks"])
    if not isinstance(tasks, dict) or not tasks:
        raise ValueError("its tasks are no table")
    for name, labels in tasks.items():
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
            raise ValueError(f"it has a task called {name!r}")
        if (
            not isinstance(labels, list)
            or not all(isinstance(label, str) for label in labels)
            or len(set(labels)) != len(labels)
        ):
            raise ValueError(f"its labels of {name} are no list of different words")
    return tasks


@dataclass(frozen=True)
class _Value:
    """An input or output of a graph: its type as ONNX numbers it, and its sides; a side that varies
    is None.
    """

    name: str
    dtype: int
    shape: tuple[int | None, ...]


class _FileCheck:
    """One walk: model → graph → operators → attributes → the graphs inside loops."""

    def __init__(self) -> None:
        self._read = WireReader().read
        self._names: set[str] = set()
        self._rounds: dict[str, int] = {}  # whole numbers by name: a loop's bound is one of them
        self._n_tensor_bytes = 0

    def facts_of(self, content: memoryview) -> dict[str, str]:
        if not content:
            raise ValueError("it is empty")
        # ONNX Runtime would take it for a file of its other format
        if bytes(content[4:8]) == b"ORTM":
            raise ValueError("it looks like a file of another format")
        model = self._read(content, MODEL)
        if _one(model, "ir_version", 0) != IR_VERSION:
            raise ValueError(
                f"its format is version {_one(model, 'ir_version', 0)}, ours {IR_VERSION}"
            )
        if _one(model, "producer_name", "") != PRODUCER:
            raise ValueError("it was written by something else")
        self._check_versions(model)
        facts = self._facts(model)
        if not model["graph"]:
            raise ValueError("it has no graph")
        self._check_model_graph(self._read(model["graph"][0], GRAPH), tasks_of(facts))
        if len(content) - self._n_tensor_bytes > MOST_BESIDE_TENSORS:
            raise ValueError(f"of its {len(content)} bytes only {self._n_tensor_bytes} are tensors")
        return facts

    def _check_versions(self, model: Message) -> None:
        sets = [self._read(content, OPERATOR_SET) for content in model["opset_import"]]
        found = sorted((_one(one, "domain", ""), _one(one, "version", 0)) for one in sets)
        if found != [("", OPSET), (MICROSOFT, 1)]:
            raise ValueError(
                f"its operators are of the versions {found}, ours are {OPSET} and {MICROSOFT} 1"
            )

    def _facts(self, model: Message) -> dict[str, str]:
        entries = [self._read(content, ENTRY) for content in model["metadata_props"]]
        facts = {_one(entry, "key", ""): _one(entry, "value", "") for entry in entries}
        if len(facts) != len(entries):
            raise ValueError("it gives a fact twice")
        for name in ("litotes", "precision", "tasks", "max_pieces"):
            if name not in facts:
                raise ValueError(f"it does not say its {name}")
        if not re.fullmatch(r"[1-9][0-9]{0,8}", facts["max_pieces"], re.ASCII):
            raise ValueError("its max_pieces is no count")
        return facts

    def _check_model_graph(self, graph: Message, tasks: Mapping[str, list[str]]) -> None:
        inputs, outputs = (
            [self._value(content) for content in graph[side]] for side in ("input", "output")
        )
        _compare("inputs", inputs, {PIECES: (_INT64, None), SEGMENTS: (_INT64, None)})
        _compare("outputs", outputs, _promised(tasks))
        self._define(value.name for value in inputs)
        for content in graph["initializer"]:
            self._check_tensor(self._read(content, TENSOR))
        self._check_nodes(graph, may_loop=True)

    def _check_tensor(self, tensor: Message) -> None:
        name, dtype, sides = _one(tensor, "name", ""), _one(tensor, "data_type", 0), tensor["dims"]
        content = _one(tensor, "raw_data", memoryview(b""))
        if dtype not in _ITEM_BYTES:
            raise ValueError(f"the tensor {name!r} is of a type that litotes never writes")
        if len(sides) > _MOST_SIDES or not all(0 <= side <= _LARGEST_SIDE for side in sides):
            raise ValueError(f"the tensor {name!r} has an impossible shape")
        if len(content) != prod(sides) * _ITEM_BYTES[dtype]:
            raise ValueError(
                f"the tensor {name!r} should have {prod(sides) * _ITEM_BYTES[dtype]} bytes and has"
                f" {len(content)}"
            )
        self._n_tensor_bytes += len(content)
        self._define([name])
        if dtype == _INT64 and not sides:
            self._rounds[name] = int(np.frombuffer(content, "<i8")[0])

    def _check_nodes(self, graph: Message, *, may_loop: bool) -> None:
        for content in graph["node"]:
            node = self._read(content, NODE)
            op, domain = _one(node, "op_type", ""), _one(node, "domain", "")
            if op not in OPERATORS.get(domain, ()):
                raise ValueError(
                    f"it has the operator {op!r} of the domain {domain!r}, which litotes never"
                    " writes"
                )
            self._define(filter(None, node["output"]))  # an output that nobody reads has no name
            bodies = [
                body
                for attribute in node["attribute"]
                for body in self._bodies(self._read(attribute, ATTRIBUTE))
            ]
            if op == "Loop":
                self._check_loop(node, bodies, may_loop=may_loop)
            elif bodies:
                raise ValueError(f"its operator {op} has a graph inside")

    def _bodies(self, attribute: Message) -> list[memoryview]:
        """The graph an attribute holds, if it holds one."""
        values = [name for name in _ATTRIBUTE_VALUES.values() if attribute[name]]
        if values not in ([_ATTRIBUTE_VALUES.get(_one(attribute, "type", 0))], []):
            raise ValueError("an attribute's value is not of its type")
        return attribute["g"]

    def _check_loop(self, node: Message, bodies: list[memoryview], *, may_loop: bool) -> None:
        bound = self._rounds.get(node["input"][0] if node["input"] else "", -1)
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

    def _value(self, content: memoryview) -> _Value:
        value = self._read(content, VALUE)
        kind = self._read(_one(value, "type", memoryview(b"")), TYPE)
        tensor = self._read(_one(kind, "tensor_type", memoryview(b"")), TENSOR_TYPE)
        shape = self._read(_one(tensor, "shape", memoryview(b"")), SHAPE)
        sides = (self._read(side, SIDE) for side in shape["dim"])
        return _Value(
            _one(value, "name", ""),
            _one(tensor, "elem_type", 0),
            tuple(_one(side, "dim_value", None) for side in sides),
        )

    def _define(self, names: Iterable[str]) -> None:
        """A name has one meaning in the whole file."""
        for name in names:
            if not name or name in self._names:
                raise ValueError(f"it gives the name {name!r} twice, or to nothing")
            self._names.add(name)


def _promised(tasks: Mapping[str, list[str]]) -> dict[str, tuple[int, int | None]]:
    """The type of every output and its number of classes, the last side of its shape; None: it has
    no such side.
    """
    promised: dict[str, tuple[int, int | None]] = {}
    for task, labels in tasks.items():
        promised[f"{task}.logits"] = (_FLOAT32, len(labels) or 1)
        if labels:
            promised |= {
                f"{task}.probabilities": (_FLOAT64, len(labels)),
                f"{task}.label": (_INT64, None),
            }
    return promised


def _compare(
    what: str, values: list[_Value], promised: Mapping[str, tuple[int, int | None]]
) -> None:
    """All sides but the classes vary: texts and pieces."""
    found = {
        value.name: (value.dtype, value.shape[-1] if value.shape else None) for value in values
    }
    others = [side for value in values for side in value.shape[:-1]]
    if (
        len(values) != len(promised)
        or found != promised
        or any(side is not None for side in others)
    ):
        raise ValueError(f"its {what} are not {', '.join(promised)} as litotes writes them")


def _one(message: Message, name: str, default: Any) -> Any:
    return message[name][0] if message[name] else default
