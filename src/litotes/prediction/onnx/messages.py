"""The messages of an ONNX file, as far as litotes writes them: each with the fields it may have.

The numbers are those of onnx.proto3, which defines the format. Where a field that litotes never
writes is refused, its name makes the error clearer.
"""

from __future__ import annotations

from litotes.prediction.onnx.wire_format import Bytes, Float, Kind, Number, Text

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
