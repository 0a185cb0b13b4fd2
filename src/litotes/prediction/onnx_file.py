"""What an exported file and its inputs are called, and what it says about itself.

Nothing here needs torch.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from litotes.core.errors import UserError
from litotes.core.json_text import from_json, parse_json, read_small_file
from litotes.core.registry import is_plain_name
from litotes.core.storage import sha256_of
from litotes.model.builtin import is_builtin, light_folder
from litotes.model.folder import DESCRIPTION, HASHED, TOKENIZER, WEIGHTS, ModelFolder

FILE = "model.onnx"
NOTE = "export.json"
"""Written next to the file when it is whole, with its sha256."""
MADE_FROM = "made_from"
"""Where that note has the sha256 of the files of the model: of the built-in one, whose file is not
next to them.
"""
PRODUCER = "litotes"
PIECES, SEGMENTS = "pieces", "segments"
LAYERS = "answered_at_layer"
"""An output of files with exits: after how many layers each text was answered."""
EXITS = "exits"
"""The fact of such a file: the rule by which texts leave."""
SEVERAL = "multi_label"
"""The fact that names the tasks in which a text may have several labels."""
HASH_OF = "sha256 of "
"""Begins the facts that say which files of a model folder the file was made from."""
INT16 = "int16"
"""The precision of a file that keeps its weights in 16 bits and computes in float32."""
ONE_BY_ONE = "one text at a time"
"""The fact of a file some of whose operators add in another order for several texts."""
MOST_ROUNDS = 30
"""Of a loop in the file: `attention.simplex.MOST_ROUNDS`, which needs torch."""
OPSET = 23
"""The first with an operator for attention (ONNX 1.18)."""
IR_VERSION = 11
MICROSOFT = "com.microsoft"
"""The domain of ONNX Runtime's own operators: documented in its ContribOperators.md and there on
every processor.
"""
OPERATORS: dict[str, frozenset[str]] = {
    "": frozenset({
        "Abs", "Add", "ArgMax", "Attention", "Cast", "Ceil", "Clip", "Concat", "Div", "Exp",
        "Expand", "Gather", "GatherElements", "GatherND", "Gelu", "Gemm", "Greater",
        "GreaterOrEqual", "Identity", "If", "LSTM", "LayerNormalization", "Log", "Loop", "MatMul",
        "Max", "Min", "Mul", "NonZero", "OneHot", "Pad", "Pow", "QuantizeLinear", "Range",
        "ReduceL2", "ReduceMax", "ReduceSum", "Relu", "Reshape", "RotaryEmbedding",
        "ScatterElements", "ScatterND", "Shape", "Sigmoid", "Sign", "Slice", "Softmax", "Squeeze",
        "Sub", "Tanh", "TopK", "Transpose", "Unsqueeze", "Where",
    }),
    MICROSOFT: frozenset({"FusedMatMul", "MatMulIntegerToFloat"}),
}  # fmt: skip
"""All that is ever written, by domain; a file with any other operator is refused (model_check.py).
"""


# Where the ONNX file of a model is: in its folder, or, of the built-in model, beside it.
#
# The built-in model's file is large and can be made from what the package has, so a source
# checkout
# may lack it, or have one of an earlier model; neither counts as an export. A package has the file
# of
# its current edition alone, which is no export of the earlier ones.


def export_folder(folder: ModelFolder) -> Path:
    return light_folder() if is_builtin(folder.path) else folder.path


def has_export(folder: ModelFolder) -> bool:
    """Whether the folder has an exported file, or should have one."""
    if is_builtin(folder.path):
        return _is_made_from(folder, light_folder() / NOTE)
    is_listed = folder.manifest is not None and FILE in folder.manifest.files
    return is_listed or (folder.path / FILE).exists()


def _is_made_from(folder: ModelFolder, note: Path) -> bool:
    """Whether the note is of a file that was made from this very model."""
    if not note.is_file():
        return False
    try:
        stated = parse_json(read_small_file(note))
    except (OSError, ValueError):
        return True  # damaged, which opening it will say
    return isinstance(stated, dict) and stated.get(MADE_FROM) == folder.stated_hashes


# Is this `model.onnx` one that litotes could have written?
#
# This is asked before ONNX Runtime is given a single byte of it. A file may come from anywhere,
# and
# ONNX can say more than a classifier needs: data in other files, functions, operators that read
# files, endless loops. So the check does not look for what is known to be bad; whatever our
# exporter
# does not write is refused (model_check.py). What a hostile author can still make is what any
# weights
# can be: a model that answers nonsense, or slowly.
#
# The bytes that were checked are kept (`CheckedFile.content`) and are what is run, so that the
# file
# cannot be exchanged in between. They are read through symbolic links, also out of the folder: the
# Hub's cache is made of such links, and it is the content that is judged. Needs neither onnx nor
# torch.

MOST_BYTES = (1 << 31) - 1
"""Of a file: protobuf's own bound."""
MOST_LETTERS = 300
"""Of what is wrong with a file: names in it may be long."""


@dataclass(frozen=True)
class CheckedFile:
    """A file that may be run.

    content: its bytes. facts: what it says about itself. sha256: of the bytes, if it was computed.
    """

    path: Path
    content: bytes
    facts: Mapping[str, str]
    sha256: str = ""


def check_file(path: Path) -> CheckedFile:
    """Reads a file and checks it; folder_check.py asks whether it belongs to its folder."""
    return check_content(path, read_model_bytes(path))


def check_content(path: Path, content: bytes) -> CheckedFile:
    """Checks what was read from a file, or will be written to it."""
    try:
        return CheckedFile(path, content, ModelCheck().read_facts(memoryview(content)))
    except (ValueError, RecursionError) as error:
        reason = str(error)[:MOST_LETTERS]
        raise UserError(
            f"{path} is not a file that litotes exported, or not a whole one: {reason}. Export the"
            " model again."
        ) from error


def read_model_bytes(path: Path) -> bytes:
    """A file's content; not a folder, not a pipe, and nothing too large to be a model."""
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


# Does the `model.onnx` of a model folder belong to it? Five witnesses must agree:
#
#     export.json        the sha256 of the file, written when the file was whole
#     the file's facts   the sha256 of the weights and the tokenizer it was made from, and its
#     tasks,
#                        calibration and longest text
#     litotes.json       the same of the model
#     the files          what is really there
#     manifest.json      the sha256 of all of them
#
# Where ONNX Runtime answers, the weights are not read; but a folder whose files are of two models
# is
# a mistake that the user should hear of.

_ADVICE = "Copy the model folder again, or export the model again."


@dataclass(frozen=True)
class CheckedExport:
    """An export that belongs to its folder, and the content of the tokenizer next to it."""

    file: CheckedFile
    tokenizer: bytes


def check_folder(folder: ModelFolder) -> CheckedExport:
    """The export in a folder, if it is whole, ours, and made from the files next to it."""
    with checked_export(folder) as export:
        return export


@contextmanager
def checked_export(folder: ModelFolder) -> Iterator[CheckedExport]:
    """The same, for what takes time as well: hashes are computed beside the block, and compared
    when it ends. What it has made must not be used before that.

    Damage is reported as such, whatever else it led to within the block.
    """
    place = export_folder(folder)
    path, note = place / FILE, place / NOTE
    content = read_model_bytes(path)
    if not note.is_file():
        raise UserError(
            f"{path} was not finished: there is no {NOTE} next to it. Export the model again."
        )
    stated, hash_of_note = _read_note(note)
    tokenizer = _read_tokenizer(folder)
    file: CheckedFile | None = None
    # hashing leaves the interpreter free
    with ThreadPoolExecutor(1) as pool:
        hashing = pool.submit(_hash_files, folder, tokenizer, content)
        try:
            file = replace(check_content(path, content), sha256=stated)
            _check_description(file, folder.description)
            yield CheckedExport(file, tokenizer)
        finally:
            hashes = hashing.result()
            if hashes.pop(FILE) != stated:
                raise UserError(
                    f"{path} is not the file that was exported: {NOTE} has another sha256. Export"
                    " the model again."
                )
            if file is not None:
                _check_origin(file, hashes)
            if place == folder.path:  # else its note alone has the sha256
                hashes |= {FILE: stated, NOTE: hash_of_note}
            for name, found in hashes.items():
                folder.check_hash(name, found)


def _hash_files(folder: ModelFolder, tokenizer: bytes, content: bytes) -> dict[str, str]:
    """The sha256 of all that the export depends on, by name. content: of the exported file."""
    hashes = {WEIGHTS: _hash_weights(folder), TOKENIZER: hashlib.sha256(tokenizer).hexdigest()}
    # the largest last: it needs the interpreter no more, which opening the file may keep
    return hashes | {FILE: hashlib.sha256(content).hexdigest()}


def _hash_weights(folder: ModelFolder) -> str:
    """Empty where there are none."""
    file = folder.path / WEIGHTS
    return sha256_of(file) if file.is_file() else ""


def _read_tokenizer(folder: ModelFolder) -> bytes:
    """Empty where there is none."""
    file = folder.path / TOKENIZER
    return file.read_bytes() if file.is_file() else b""


def _read_note(note: Path) -> tuple[str, str]:
    """The sha256 that the note states of the file, and that of the note itself."""
    try:
        content = read_small_file(note)
        stated = parse_json(content)
        if not isinstance(stated, dict):
            raise ValueError("not a table")
    except (OSError, ValueError) as error:
        raise UserError(f"{note}: not readable ({error}). {_ADVICE}") from error
    return str(stated.get("sha256")), hashlib.sha256(content).hexdigest()


def _check_origin(file: CheckedFile, hashes: Mapping[str, str]) -> None:
    """hashes: those of the files next to it."""
    for name in HASHED:
        if f"{HASH_OF}{name}" not in file.facts:
            raise UserError(
                f"{file.path} does not say which {name} it was made from. Export the model again."
            )
        if file.facts[f"{HASH_OF}{name}"] != hashes.get(name):
            raise UserError(
                f"{file.path} was not made from the {name} next to it. Export the model again."
            )


def _check_description(file: CheckedFile, description: Mapping[str, Any]) -> None:
    for name in ("tasks", "calibration"):
        if name not in description or _fact(file, name) != description[name]:
            raise UserError(
                f"{file.path} and the {DESCRIPTION} next to it disagree about {name}. Export the"
                " model again."
            )
    for name in (EXITS, SEVERAL):
        stated = _fact(file, name) if name in file.facts else None
        if stated != description.get(name):
            raise UserError(
                f"{file.path} and the {DESCRIPTION} next to it disagree about {name}. Export the"
                " model again."
            )
    longest = description.get("max_pieces")
    if not isinstance(longest, int) or not 1 <= longest <= int(file.facts["max_pieces"]):
        raise UserError(
            f"{file.path} reads {file.facts['max_pieces']} pieces, the {DESCRIPTION} next to it"
            f" promises {longest}. Export the model again."
        )


def _fact(file: CheckedFile, name: str) -> Any:
    try:
        return from_json(file.facts[name])
    except (KeyError, ValueError) as error:
        raise UserError(f"{file.path} does not say its {name}. Export the model again.") from error


# A careful reader of protobuf's wire format, in which ONNX files are written, for untrusted files.
#
#     message = field*
#     field   = varint(number · 8 + wire), then by wire:
#               0 a varint      2 a varint length and that many bytes      5 four bytes
#
# A message is read by its `Kind`: the fields that may be there. Everything else is refused, and so
# is
# a second value of a field that has one (protobuf would merge the two, and what was checked would
# not
# be what is used). Nothing is copied but short texts: a message inside another is a view of the
# same
# bytes. Each problem is a `ValueError` that says what is wrong, for the caller to make a sentence
# of.

_VARINT, _BYTES, _FOUR_BYTES = 0, 2, 5
MOST_FIELDS = 1_000_000
"""Of a whole file, so that the time to read it is bounded: twelve layers take some ten thousand."""
LONGEST_TEXT = 1 << 20
"""Bytes of a name or a fact."""


@dataclass(frozen=True)
class Field:
    """One that a message may have, once or repeatedly. wire: how its value is written."""

    name: str
    repeats: bool = False
    wire: ClassVar[int]


class Number(Field):
    """A whole number, signed, 64 bits."""

    wire = _VARINT


class Float(Field):
    """A float32, whose value is not needed here."""

    wire = _FOUR_BYTES


class Text(Field):
    """UTF-8 that can be printed."""

    wire = _BYTES


class Bytes(Field):
    """Another message, or raw numbers: a view."""

    wire = _BYTES


@dataclass(frozen=True)
class Kind:
    """A kind of message: the fields that may be there, by number, and the names of some that may
    not.
    """

    name: str
    fields: Mapping[int, Field]
    refused: Mapping[int, str] = field(default_factory=dict)


class WireReader:
    """Reads the messages of one file and counts their fields."""

    def __init__(self) -> None:
        self._n_fields = 0

    def read(self, message: memoryview, kind: Kind) -> dict[str, list[Any]]:
        """The values of a message by the names of its fields; a name is always there, with no
        values if the message has none.
        """
        values: dict[str, list[Any]] = {known.name: [] for known in kind.fields.values()}
        place = 0
        while place < len(message):
            tag, place = _varint(message, place)
            known = _known_field(kind, tag)
            value, place = self._value(message, place, known)
            if values[known.name] and not known.repeats:
                raise ValueError(f"{kind.name} has two values for {known.name}")
            values[known.name].append(value)
        return values

    def _value(self, message: memoryview, place: int, known: Field) -> tuple[Any, int]:
        self._n_fields += 1
        if self._n_fields > MOST_FIELDS:
            raise ValueError(f"it has more than {MOST_FIELDS} fields")
        if isinstance(known, Number):
            number, place = _varint(message, place)
            return number - (1 << 64) * (number >> 63), place
        length, place = (4, place) if isinstance(known, Float) else _varint(message, place)
        n_left = len(message) - place
        if length > n_left:
            raise ValueError(
                f"{known.name} is said to have {length} bytes, of which {n_left} are there"
            )
        end = place + length
        value = message[place:end]
        return _text(value, known.name) if isinstance(known, Text) else value, end


def _known_field(kind: Kind, tag: int) -> Field:
    """The field that a tag announces, if messages of this kind may have it."""
    number, wire = tag >> 3, tag & 7
    known = kind.fields.get(number)
    if known is None:
        what = kind.refused.get(number, f"a field with the number {number}")
        raise ValueError(f"{kind.name} has {what}, which litotes never writes")
    if known.wire != wire:
        raise ValueError(f"the {known.name} of {kind.name} is of another type")
    return known


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first, at most 64 bits; and the place behind it."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(message):
            raise ValueError("it ends in the middle of a number")
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    else:
        raise ValueError("it has a number of more than ten bytes")
    if value >= 1 << 64:
        raise ValueError("it has a number of more than 64 bits")
    return value, place


def _text(value: memoryview, name: str) -> str:
    if len(value) > LONGEST_TEXT:
        raise ValueError(f"{name} is a text of {len(value)} bytes")
    try:
        text = str(value, "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not in UTF-8") from error
    if not text.isprintable():  # it may end up in a message, and a terminal would obey it
        raise ValueError(f"{name} has letters that cannot be printed")
    return text


# The messages of an ONNX file, as far as litotes writes them: each with the fields it may have.
#
# The numbers are those of onnx.proto3, which defines the format. Where a field that litotes never
# writes is refused, its name makes the error clearer.

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


# One walk through an ONNX model: model → graph → operators → attributes → the graphs inside loops
# and branches.
#
# Whatever our exporter does not write is a `ValueError`: messages and fields (messages.py),
# operators
# (`file_format.OPERATORS`), versions, inputs and outputs other than those of the tasks the file
# says
# it has. A tensor must have exactly the bytes its shape asks for, a name is given once, a loop has
# a
# fixed bound, and there is one branch for each exit.

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
