"""A `model.onnx` from anywhere: whatever our exporter does not write is refused in one sentence
before ONNX Runtime sees it.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from tiny_exports import SARCASM, encoder_of, model_of, text_of

from litotes import exporting
from litotes.core.errors import UserError
from litotes.encoder.attention import simplex
from litotes.exporting.block_graph import ACTIVATIONS
from litotes.exporting.graph import Graph, model_bytes
from litotes.exporting.model_graph import build_onnx
from litotes.model import checkpoint
from litotes.prediction import onnx_file
from litotes.prediction.onnx_file import MICROSOFT, OPERATORS, check_content, check_file
from litotes.prediction.onnx_runtime import OnnxSession

PATH = Path("model.onnx")
WRITERS = Path(exporting.__file__).parent
WHOLE = build_onnx(
    model_of(encoder_of(n_layers=1, n_positions=40, weighting="entmax"), SARCASM, head="mean"),
    made_from={},
)
"""With a loop in it."""


def refused(content: bytes) -> str:
    """The one line somebody reads."""
    with pytest.raises(UserError) as caught:
        check_content(PATH, content)
    line = str(caught.value)
    assert line.endswith("Export the model again.")
    assert line.isprintable()
    assert len(line) < 500
    return line


def proto() -> onnx.ModelProto:
    return onnx.load_from_string(WHOLE)


def loop_of(model: onnx.ModelProto) -> onnx.NodeProto:
    return next(node for node in model.graph.node if node.op_type == "Loop")


def outside(location: str) -> onnx.TensorProto:
    """A tensor whose content lies in another file."""
    tensor = onnx.TensorProto(
        name="secret",
        dims=[8],
        data_type=onnx.TensorProto.UINT8,
        data_location=onnx.TensorProto.EXTERNAL,
    )
    tensor.external_data.add(key="location", value=location)
    return tensor


def tensor(values: object, name: str = "more") -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(values), name)


def sparse() -> onnx.SparseTensorProto:
    return onnx.SparseTensorProto(values=outside("/etc/passwd"), indices=tensor([0]), dims=[4])


def graph_inside(*nodes: onnx.NodeProto) -> onnx.GraphProto:
    return helper.make_graph(list(nodes), "inside", [], [])


def bounded_by(name: str) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        loop_of(model).input[0] = name

    return change


def bound(value: object) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        model.graph.initializer.append(tensor(value))
        loop_of(model).input[0] = "more"

    return change


def node(op: str, domain: str = "", **attributes: object) -> Callable[[onnx.ModelProto], None]:
    return lambda model: model.graph.node.append(
        helper.make_node(op, ["pieces"], ["more"], domain=domain, **attributes)
    )


def fact(key: str, value: str) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        next(entry for entry in model.metadata_props if entry.key == key).value = value

    return change


def without(key: str) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        kept = [entry for entry in model.metadata_props if entry.key != key]
        del model.metadata_props[:]
        model.metadata_props.extend(kept)

    return change


def last_side(output: int, size: int) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        model.graph.output[output].type.tensor_type.shape.dim[-1].dim_value = size

    return change


def body_of(model: onnx.ModelProto) -> onnx.GraphProto:
    return loop_of(model).attribute[0].g


HOSTILE: dict[str, tuple[Callable[[onnx.ModelProto], object], str]] = {
    "external data": (
        lambda m: m.graph.initializer.append(outside("/etc/passwd")),
        "data outside the file",
    ),
    "external data above": (
        lambda m: m.graph.initializer.append(outside("../x")),
        "data outside the file",
    ),
    "external data in a loop": (
        lambda m: body_of(m).initializer.append(outside("x")),
        "tensors of its own",
    ),
    "external data by a word": (
        lambda m: setattr(m.graph.initializer[0], "data_location", 1),
        "data outside the file",
    ),
    "external data without a place": (
        lambda m: m.graph.initializer[0].external_data.add(),
        "data outside the file",
    ),
    "external data in an attribute": (node("Abs", value=outside("/etc/passwd")), "a tensor"),
    "tensors in an attribute": (node("Abs", value=[outside("/etc/passwd")]), "tensors"),
    "sparse tensors": (lambda m: m.graph.sparse_initializer.append(sparse()), "sparse tensors"),
    "a sparse attribute": (node("Abs", value=sparse()), "a sparse tensor"),
    "an operator that reads files": (
        node("EPContext", "com.microsoft", ep_cache_context="/etc/passwd"),
        "'EPContext'",
    ),
    "an operator of ONNX": (node("RandomNormal"), "'RandomNormal'"),
    "an operator of a stranger": (node("Abs", "com.evil"), "'com.evil'"),
    "ours in another domain": (node("FusedMatMul"), "'FusedMatMul'"),
    "a condition": (
        node("If", then_branch=graph_inside(), else_branch=graph_inside()),
        "not one of its exits",
    ),
    "exits in no table": (
        lambda m: m.metadata_props.add(key="exits", value="[1]"),
        "exits are not a table",
    ),
    "exits that are not there": (
        lambda m: m.metadata_props.add(key="exits", value='{"layers": [1]}'),
        "outputs are not",
    ),
    "a graph where none belongs": (node("Abs", body=graph_inside()), "a graph inside"),
    "a graph among graphs": (node("Abs", bodies=[graph_inside()]), "graphs"),
    "a reference": (
        lambda m: m.graph.node[0].attribute.add(name="axis", ref_attr_name="x", type=2),
        "a reference",
    ),
    "a value of another type": (
        lambda m: m.graph.node[0].attribute.add(name="axis", f=1.0, type=2),
        "not of its type",
    ),
    "two values": (
        lambda m: m.graph.node[0].attribute.add(name="axis", f=1.0, i=1, type=2),
        "not of its type",
    ),
    "a function": (lambda m: m.functions.add(name="Abs", domain=""), "functions"),
    "training": (lambda m: m.training_info.add(), "training info"),
    "a newer opset": (lambda m: setattr(m.opset_import[0], "version", 99), "versions"),
    "an older opset": (lambda m: setattr(m.opset_import[0], "version", 7), "versions"),
    "one more opset": (lambda m: m.opset_import.add(domain="com.evil", version=1), "versions"),
    "an opset twice": (lambda m: m.opset_import.add(domain="", version=23), "versions"),
    "no opset": (lambda m: m.ClearField("opset_import"), "versions"),
    "another format": (lambda m: setattr(m, "ir_version", 3), "version 3"),
    "no format": (lambda m: m.ClearField("ir_version"), "version 0"),
    "another producer": (lambda m: setattr(m, "producer_name", "pytorch"), "something else"),
    "no producer": (lambda m: m.ClearField("producer_name"), "something else"),
    "no graph": (lambda m: m.ClearField("graph"), "no graph"),
    "no facts": (lambda m: m.ClearField("metadata_props"), "does not say its litotes"),
    "no tasks": (without("tasks"), "does not say its tasks"),
    "tasks in no JSON": (fact("tasks", "{"), "not a whole one"),
    "tasks in no table": (fact("tasks", "[1]"), "not a table"),
    "tasks nested": (fact("tasks", "[" * 100_000), "recursion|nested"),
    "a task with a bad name": (fact("tasks", '{"../x\\u001b[31m": []}'), "called"),
    "labels alike": (fact("tasks", '{"sarcasm": ["a", "a"]}'), "different words"),
    "labels in no list": (fact("tasks", '{"sarcasm": "ab"}'), "different words"),
    "another task": (
        fact("tasks", '{"irony": ["literal", "sarcastic"]}'),
        "outputs are not irony.logits",
    ),
    "one more label": (fact("tasks", '{"sarcasm": ["a", "b", "c"]}'), "outputs are not"),
    "max_pieces below zero": (fact("max_pieces", "-1"), "not a count"),
    "max_pieces without end": (fact("max_pieces", "9" * 5000), "not a count"),
    "a fact twice": (lambda m: m.metadata_props.add(key="tasks", value="{}"), "twice"),
    "one more input": (
        lambda m: m.graph.input.append(helper.make_tensor_value_info("x", 7, ["n"])),
        "inputs are not",
    ),
    "an input of another type": (
        lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 1),
        "inputs are not",
    ),
    "an input of one size": (
        lambda m: setattr(m.graph.input[0].type.tensor_type.shape.dim[0], "dim_value", 4),
        "inputs are not",
    ),
    "an output less": (lambda m: m.graph.output.pop(), "outputs are not"),
    "an output twice": (lambda m: m.graph.output.append(m.graph.output[0]), "outputs are not"),
    "an output of another size": (last_side(0, 7), "outputs are not"),
    "an output that is no tensor": (
        lambda m: m.graph.output[0].type.sequence_type.SetInParent(),
        "number 4",
    ),
    "a loop too long": (bound(np.int64(31)), "longer than 30"),
    "a loop without end": (bounded_by(""), "longer than 30"),
    "a loop below zero": (bound(np.int64(-1)), "longer than 30"),
    "a loop as long as the text": (bounded_by("pieces"), "longer than 30"),
    "a loop bound by a list": (bound(np.array([3])), "longer than 30"),
    "a loop without inputs": (lambda m: loop_of(m).ClearField("input"), "longer than 30"),
    "a loop without a body": (lambda m: loop_of(m).ClearField("attribute"), "not built like ours"),
    "a name twice": (lambda m: m.graph.node.append(m.graph.node[-1]), "twice"),
    "an input with a value": (
        lambda m: m.graph.initializer.append(tensor(np.array([1]), "pieces")),
        "twice",
    ),
    "nothing's name": (lambda m: m.graph.initializer.append(tensor(np.array([1]), "")), "twice"),
    "a tensor too large": (lambda m: m.graph.initializer[0].dims.append(1 << 20), "should have"),
    "a tensor too small": (
        lambda m: setattr(m.graph.initializer[0], "raw_data", b""),
        "should have",
    ),
    "a side below zero": (lambda m: m.graph.initializer[0].dims.extend([-1, -1]), "impossible"),
    "no rows of endless width": (
        lambda m: m.graph.initializer.append(
            onnx.TensorProto(name="more", dims=[0, 1 << 62], data_type=1)
        ),
        "imposs",
    ),
    "too many sides": (lambda m: m.graph.initializer[0].dims.extend([1] * 9), "impossible"),
    "a tensor of words": (
        lambda m: m.graph.initializer.append(tensor(np.array(["a"], dtype=object))),
        "number 6",
    ),
    "a tensor of float16": (
        lambda m: m.graph.initializer.append(tensor(np.zeros(2, dtype=np.float16))),
        "type that litotes",
    ),
    "numbers elsewhere": (lambda m: m.graph.initializer[0].float_data.append(1.0), "number 4"),
    "remarks": (lambda m: setattr(m, "doc_string", "x"), "number 6"),
    "a long name": (lambda m: setattr(m.graph.node[0], "name", "x" * (1 << 21)), "text of"),
    "names without end": (
        lambda m: [setattr(n, "name", "x" * (1 << 20)) for n in m.graph.node[:20]],
        "are tensors",
    ),
    "a name of many words": (node("Evil " * 1000), "'Evil Evil"),
    "a node's name a terminal obeys": (
        lambda m: setattr(m.graph.node[0], "name", "\x1b]0;evil\x07"),
        "name has letters",
    ),
    "a name a terminal obeys": (node("\x1b[31mEvil\n"), "op_type has letters that cannot"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_we_never_write_is_refused(kind: str) -> None:
    change, words = HOSTILE[kind]
    model = proto()
    change(model)
    content = model.SerializeToString()
    assert content != WHOLE
    assert re.search(words, refused(content)), refused(content)


def field(number: int, content: bytes) -> bytes:
    """A field of bytes."""
    length = bytes(
        [len(content) & 0x7F | 0x80, len(content) >> 7 & 0x7F | 0x80, len(content) >> 14]
    )
    return (
        bytes([number << 3 & 0x7F | 2 | 0x80 * (number > 15)])
        + (b"\x01" if number > 15 else b"")
        + length
        + content
    )


def with_more_nodes(content: bytes) -> bytes:
    """A whole file but for what stands at the end of its graph."""
    model = proto()
    graph = model.graph.SerializeToString()
    model.ClearField("graph")
    return model.SerializeToString() + field(7, graph + content)


def nested(depth: int) -> bytes:
    """Loops in loops in loops, each with a bound like ours."""
    bound, content = loop_of(proto()).input[0].encode(), b""
    for number in range(depth):
        content = field(
            1,
            field(1, bound)
            + field(2, b"%d" % number)
            + field(4, b"Loop")
            + field(5, field(6, content) + b"\xa0\x01\x05"),
        )
    return content


RAW: dict[str, bytes] = {
    "nothing": b"",
    "a word": b"not a model",
    "zeros": bytes(1000),
    "all ones": b"\xff" * 1000,
    "a zip": b"PK\x03\x04" + bytes(100),
    "a pickle": b"\x80\x04\x95" + bytes(100),
    "safetensors": (8).to_bytes(8, "little") + b'{"a":{}}',
    "the other format of ONNX Runtime": b"\x72\x20\x0a\x06ORTMxx" + bytes(200),
    "both formats at once": field(14, b"\x0a\x04ORTM")[:1] + b"\x09\x0a\x07ORTMabc" + WHOLE,
    "a length beyond the end": b"\x3a\xff\xff\xff\xff\x07" + WHOLE[:50],
    "a length of 2⁶³": b"\x3a" + b"\xff" * 8 + b"\x7f",
    "a length of 2⁶⁴": b"\x3a" + b"\xff" * 9 + b"\x01",
    "a number of 70 bits": b"\x08" + b"\xff" * 9 + b"\x7f" + WHOLE,
    "a number without end": b"\x08" + b"\x80" * 100_000,
    "groups in groups": b"\x0b" * 100_000,
    "field number 0": b"\x00\x00" + WHOLE,
    "a field number that wraps": b"\x88\x80\x80\x80\x10\x03" + WHOLE,
    "two models": WHOLE + WHOLE,
    "half a model more": WHOLE + field(7, field(2, b"more")),
    "something behind": WHOLE + b"\x00",
    "a version twice": WHOLE + b"\x08\x0b",
}


@pytest.mark.parametrize("kind", RAW)
def test_what_is_no_model_is_refused(kind: str) -> None:
    assert refused(RAW[kind])


def test_loops_in_loops() -> None:
    assert check_content(PATH, with_more_nodes(nested(1)))
    assert "not built like ours" in refused(with_more_nodes(nested(2)))
    assert "not built like ours" in refused(with_more_nodes(nested(2000)))


def test_a_file_of_a_million_fields_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_file, "MOST_FIELDS", 1000)
    assert "more than 1000 fields" in refused(b"\x42\x00" * 2000)


def test_an_enormous_file_is_not_even_read(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    with file.open("wb") as stream:
        stream.truncate(1 << 40)  # takes no room on the disk
    with pytest.raises(UserError, match="1099511627776 bytes"):
        check_file(file)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.onnx")
    with pytest.raises(UserError, match="There is no"):
        check_file(tmp_path / "model.onnx")


def test_the_whole_file_is_checked_and_is_what_is_run(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(WHOLE)
    read = check_file(file)
    assert read.content == WHOLE
    file.write_bytes(b"exchanged")  # between the check and the use
    before = OnnxSession.from_file(check_content(PATH, WHOLE)).logits([text_of(7)])["sarcasm"]
    np.testing.assert_array_equal(
        OnnxSession.from_file(read).logits([text_of(7)])["sarcasm"], before
    )


def test_what_does_not_fit_together_is_one_sentence_and_no_log(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Found by ONNX Runtime: when the file is loaded, and when a text is read."""
    model = proto()
    model.graph.node[-1].input[0] = "nobody"
    with pytest.raises(UserError, match=r"cannot run .*Export the model again"):
        OnnxSession.from_file(check_content(PATH, model.SerializeToString()))
    model = proto()
    looked_up = next(
        node for node in model.graph.node if node.op_type == "Gather" and node.input[1] == "pieces"
    )
    model.graph.initializer.append(tensor(np.zeros((3, 32), dtype=np.float32)))
    looked_up.input[0] = "more"  # a table of three pieces
    session = OnnxSession.from_file(check_content(PATH, model.SerializeToString()))
    with pytest.raises(UserError, match=r"cannot read this text .*Export the model again"):
        session.logits([text_of(9)])
    assert capfd.readouterr() == ("", "")


def written_operators() -> set[str]:
    """All that stands in the writers' source as the operator of a node."""
    found = {op for op, _ in ACTIVATIONS.values()}
    for file in WRITERS.glob("*.py"):
        for call in ast.walk(ast.parse(file.read_text("utf-8"))):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr in ("add", "add_several", "add_as")
            ):
                op = call.args[call.func.attr == "add_as"]
                found |= (
                    {op.value}
                    if isinstance(op, ast.Constant) and isinstance(op.value, str)
                    else set()
                )
    return found


def test_the_operators_that_may_run_are_those_that_are_written() -> None:
    assert written_operators() == set().union(*OPERATORS.values())
    assert not OPERATORS[""] & OPERATORS[MICROSOFT]


def test_an_operator_that_would_not_run_is_not_written() -> None:
    graph = Graph()
    graph.add("RandomNormal")
    with pytest.raises(ValueError, match="OPERATORS"):
        model_bytes(graph, {})


def test_what_is_said_twice_is_said_the_same() -> None:
    assert onnx_file.MOST_ROUNDS == simplex.MOST_ROUNDS
    assert onnx_file.DESCRIPTION == checkpoint.DESCRIPTION


@pytest.mark.slow
def test_checking_needs_neither_torch_nor_onnx() -> None:
    code = (
        "import sys, litotes.prediction.onnx_file; sys.exit(bool({'torch', 'onnx',"
        " 'onnxruntime'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


TEXT = text_of(9)
ANSWER = OnnxSession.from_file(check_content(PATH, WHOLE)).logits([TEXT])["sarcasm"]


def answer_or_refusal(content: bytes) -> object:
    """The logits, or None where a UserError says why there are none.

    Everything else is a failure.
    """
    try:
        return OnnxSession.from_file(check_content(PATH, content)).logits([TEXT])["sarcasm"]
    except UserError:
        return None


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(1, 255)), min_size=1, max_size=4)
)
def test_flipped_bytes_never_do_more_than_change_an_answer(flips: list[tuple[int, int]]) -> None:
    """Even if somebody keeps export.json in step; if nobody does, no flip passes at all
    (test_hostile_folders.py).
    """
    content = bytearray(WHOLE)
    for place, bits in flips:
        content[place] ^= bits
    answer = answer_or_refusal(bytes(content))
    assert answer is None or np.shape(answer) == ANSWER.shape


@settings(deadline=None, max_examples=150)
@given(st.integers(0, len(WHOLE) - 1))
def test_a_file_cut_off_never_passes(n_bytes: int) -> None:
    refused(WHOLE[:n_bytes])


@settings(deadline=None, max_examples=150)
@given(st.integers(0, len(WHOLE)), st.binary(min_size=1, max_size=40))
def test_bytes_put_in_between_never_do_more_than_change_an_answer(place: int, more: bytes) -> None:
    answer = answer_or_refusal(WHOLE[:place] + more + WHOLE[place:])
    assert answer is None or np.shape(answer) == ANSWER.shape
