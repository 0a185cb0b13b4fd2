"""The exported file of a model, `model.onnx`: where it is, what it says about itself, and what it
must not do.

In a file from anywhere, ONNX Runtime refuses what does not fit together and all that lies outside
the folder it may read, so that a hostile file can do two things to a process: read another file as
weights, which is why that folder is one that holds no file (`onnx_runtime`), and compute without
end, which is why loops have a bound here, and why functions and operators of strangers, in which
loops could hide, are refused. What else a hostile author can make is what any weights can be: a
model that answers nonsense, or slowly.

Nothing here needs torch or onnx.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.json_text import parse_json, read_small_file
from litotes.core.text import harmless
from litotes.model.builtin import is_builtin, light_folder
from litotes.model.folder import ModelFolder

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
MICROSOFT_OPERATORS = frozenset({"FusedMatMul", "MatMulIntegerToFloat"})
"""Those of them that are ever written; all others are ONNX's."""
MOST_BYTES = (1 << 31) - 1
"""Of a file: protobuf's own bound."""


def export_folder(folder: ModelFolder) -> Path:
    """Locates a model's exported file: in its folder or, of the built-in model, next to it."""
    return light_folder() if is_builtin(folder.path) else folder.path


def has_export(folder: ModelFolder) -> bool:
    """Tells whether the folder has an exported file, or should have one.

    The built-in model's file is large and can be made from what the package has, so a source
    checkout may lack it, or have one of an earlier model; neither counts.
    """
    if not is_builtin(folder.path):
        return FILE in folder.manifest.files or (folder.path / FILE).exists()
    note = light_folder() / NOTE
    if not note.is_file():
        return False
    try:
        stated = parse_json(read_small_file(note))
    except (OSError, ValueError):
        return True  # damaged, which opening it will say
    return isinstance(stated, dict) and stated.get(MADE_FROM) == folder.stated_hashes


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


def check_content(path: Path, content: bytes) -> None:
    """Refuses a file that may compute without end, before ONNX Runtime is given a byte of it."""
    try:
        _check_operators(content)
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{path} is not a file that litotes exported, or not a whole one:"
            f" {harmless(str(error), in_terminal=True):.300}. Export the model again."
        ) from error


# The tags of the fields of onnx.proto3 that are read (number · 8 + wire), by message.
_MODEL_GRAPH, _MODEL_FUNCTIONS = 7 << 3 | 2, 25 << 3 | 2
_NODE, _INITIALIZER, _GRAPH_INPUT = 1 << 3 | 2, 5 << 3 | 2, 11 << 3 | 2
_INPUT, _OUTPUT, _OPERATOR, _ATTRIBUTE, _DOMAIN = (n << 3 | 2 for n in (1, 2, 4, 5, 7))
_INNER_GRAPHS = (6 << 3 | 2, 11 << 3 | 2)  # one, several
_TYPE, _TENSOR_NAME, _RAW_DATA = 2 << 3, 8 << 3 | 2, 9 << 3 | 2
_VALUE_NAME = 1 << 3 | 2
_INT64 = 7


def _check_operators(content: bytes) -> None:
    """Walks through the operators of a file: graph → operators → graphs in loops and branches.

    A loop must be bounded by a number in the file that nothing else can be taken for: its name is
    given once.
    """
    n_given: Counter[bytes] = Counter()  # how often a name is given to something
    numbers: dict[bytes, int] = {}
    bounds: list[bytes] = []

    def read_graph(graph: memoryview, *, in_loop: bool) -> None:
        parts = _by_tag(graph)
        for node in parts[_NODE]:
            read_node(_by_tag(node), in_loop=in_loop)
        for value in parts[_GRAPH_INPUT]:
            n_given[_last(_by_tag(value), _VALUE_NAME)] += 1
        for tensor in parts[_INITIALIZER]:
            fields = _by_tag(tensor)
            name = _last(fields, _TENSOR_NAME)
            n_given[name] += 1
            # of a whole number without sides; no other field may say that it is something else
            is_number = fields.keys() - {_TENSOR_NAME} == {_TYPE, _RAW_DATA}
            if is_number and fields[_TYPE][-1] == _INT64:
                numbers[name] = int.from_bytes(fields[_RAW_DATA][-1], "little", signed=True)

    def read_node(node: _Fields, *, in_loop: bool) -> None:
        operator, domain = _last(node, _OPERATOR), _last(node, _DOMAIN)
        n_given.update(map(bytes, node[_OUTPUT]))
        inner = [_by_tag(attribute) for attribute in node[_ATTRIBUTE]]
        graphs = [graph for own in inner for tag in _INNER_GRAPHS for graph in own[tag]]
        is_ours = domain == MICROSOFT.encode() and operator.decode() in MICROSOFT_OPERATORS
        if domain and not is_ours:
            raise ValueError(f"it has the operator {operator!r} of the domain {domain!r}")
        is_loop = operator == b"Loop"
        if graphs and (in_loop or not (is_loop or operator == b"If")):
            raise ValueError(f"it has a graph inside {operator!r}, which litotes never writes")
        if is_loop:
            bounds.append(bytes(next(iter(node[_INPUT]), b"")))
        for graph in graphs:
            read_graph(graph, in_loop=is_loop)

    model = _by_tag(memoryview(content))
    if model[_MODEL_FUNCTIONS]:
        raise ValueError("it has functions")
    for graph in model[_MODEL_GRAPH]:
        read_graph(graph, in_loop=False)
    for name in bounds:
        if n_given[name] != 1 or not 0 <= numbers.get(name, -1) <= MOST_ROUNDS:
            raise ValueError(f"it has a loop that may run longer than {MOST_ROUNDS} rounds")


_Fields = defaultdict[int, list[Any]]


def _by_tag(message: memoryview) -> _Fields:
    """The values of a message's fields, by their tags."""
    found: _Fields = defaultdict(list)
    for tag, value in _fields(message):
        found[tag].append(value)
    return found


def _last(message: _Fields, tag: int) -> bytes:
    """Returns a field that is given once: of several, protobuf believes the last."""
    return bytes(message[tag][-1]) if tag in message else b""


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """The fields of a message in protobuf's wire format: the tag of each, and its value.

    field = tag, then by its last three bits: 0 a varint, 1 eight bytes, 2 a varint length and that
    many bytes, 5 four bytes. Nothing is copied: a message inside another is a view.
    """
    place, end = 0, len(message)
    while place < end:
        tag, place = _varint(message, place)
        wire = tag & 7
        length = {1: 8, 5: 4}.get(wire)
        if wire in (0, 2):
            length, place = _varint(message, place)
        if length is None:
            raise ValueError("it has a field of a kind that is not written any more")
        tag &= 0xFFFFFFFF  # as protobuf does: a larger number must not hide a field
        if wire == 0:
            yield tag, length
            continue
        if length > end - place:
            raise ValueError(f"of {length} bytes that it speaks of {end - place} are there")
        yield tag, message[place : place + length]
        place += length


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """Reads seven bits a byte, the lowest first, at most 64 bits; and the place behind it."""
    value = shift = 0
    while shift < 70 and place < len(message):
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
    raise ValueError("it has a number without an end")
