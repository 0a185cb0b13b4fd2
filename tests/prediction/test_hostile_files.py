"""A `model.onnx` from anywhere: whatever our exporter does not write is refused in one sentence
before ONNX Runtime sees it.
"""

from __future__ import annotations

import os
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
from litotes.encoder import simplex
from litotes.exporting.model_graph import build_onnx
from litotes.prediction import onnx_file
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
        OnnxSession.from_bytes(PATH, content)
    line = str(caught.value)
    assert "Export the model again" in line
    assert line.isprintable()
    assert len(line) < 600
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


def reading(location: str) -> Callable[[onnx.ModelProto], None]:
    """What would add the numbers of another file to the answer."""

    def change(model: onnx.ModelProto) -> None:
        model.graph.initializer.append(outside(location))
        model.graph.node.append(helper.make_node("Cast", ["secret"], ["told"], to=7))
        model.graph.output.append(helper.make_tensor_value_info("told", 7, ["n"]))

    return change


def bound_of(model: onnx.ModelProto) -> onnx.TensorProto:
    name = loop_of(model).input[0]
    return next(one for one in model.graph.initializer if one.name == name)


def body_of(model: onnx.ModelProto) -> onnx.GraphProto:
    return loop_of(model).attribute[0].g


HOSTILE: dict[str, Callable[[onnx.ModelProto], object]] = {
    "a file of the working directory": reading("near"),
    "a file above": reading("../near"),
    "any file": reading("/etc/passwd"),
    "memory": reading("*/_ORT_MEM_ADDR_/*"),
    "a file in a loop": lambda m: body_of(m).initializer.append(outside("near")),
    "a file by a word": lambda m: setattr(m.graph.initializer[0], "data_location", 1),
    "sparse numbers of a file": lambda m: m.graph.sparse_initializer.append(sparse()),
    "an operator that reads files": node("EPContext", "com.microsoft", ep_cache_context="near"),
    "another operator of Microsoft's": node("Gelu", "com.microsoft"),
    "an operator of a stranger": node("Abs", "com.evil"),
    "an operator a terminal obeys": node("\x1b[31mEvil\n"),
    "a function": lambda m: m.functions.add(name="Abs", domain=""),
    "a scan": node("Scan", body=graph_inside()),
    "a graph where none belongs": node("Abs", body=graph_inside()),
    "graphs where none belong": node("Abs", bodies=[graph_inside()]),
    "a loop too long": bound(np.int64(31)),
    "a loop without end": bounded_by(""),
    "a loop below zero": bound(np.int64(-1)),
    "a loop as long as the text": bounded_by("pieces"),
    "a loop bound by a list": bound(np.array([3])),
    "a loop bound by another type": bound(np.float64(3)),
    "a loop without inputs": lambda m: loop_of(m).ClearField("input"),
    "a bound with two meanings": lambda m: body_of(m).initializer.append(
        tensor(np.int64(7), loop_of(m).input[0])
    ),
    "a bound of two lengths": lambda m: bound_of(m).int64_data.append(1 << 40),
    "no graph": lambda m: m.ClearField("graph"),
    "no facts": lambda m: m.ClearField("metadata_props"),
    "tasks in no JSON": fact("tasks", "{"),
    "tasks in no table": fact("tasks", "[1]"),
    "tasks nested": fact("tasks", "[" * 100_000),
    "another task": fact("tasks", '{"irony": ["literal", "sarcastic"]}'),
    "one more label": fact("tasks", '{"sarcasm": ["a", "b", "c"]}'),
    "max_pieces without end": fact("max_pieces", "9" * 5000),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_could_harm_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("near").write_bytes(bytes(64))
    model = proto()
    HOSTILE[kind](model)
    content = model.SerializeToString()
    assert content != WHOLE
    refused(content)


def measured(content: bytes) -> bytes:
    """With its length before it."""
    n = len(content)
    return bytes([n & 0x7F | 0x80, n >> 7 & 0x7F | 0x80, n >> 14]) + content


def field(number: int, content: bytes) -> bytes:
    """A field of bytes."""
    return bytes([number << 3 | 2]) + measured(content)


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
        body = field(5, field(6, content) + b"\xa0\x01\x05")
        names = field(1, bound) + field(2, b"%d" % number) + field(4, b"Loop")
        content = field(1, names + body)
    return content


RAW: dict[str, bytes] = {
    "nothing": b"",
    "a word": b"not a model",
    "zeros": bytes(1000),
    "the other format of ONNX Runtime": b"\x72\x20\x0a\x06ORTMxx" + bytes(200),
    "a length beyond the end": b"\x3a\xff\xff\xff\xff\x07" + WHOLE[:50],
    "a length of 2⁶³": b"\x3a" + b"\xff" * 8 + b"\x7f",
    "a number without end": b"\x08" + b"\x80" * 100_000,
    "groups in groups": b"\x0b" * 100_000,
    "two models": WHOLE + WHOLE,
    "something behind": WHOLE + b"\x00",
}


@pytest.mark.parametrize("kind", RAW)
def test_what_is_no_model_is_refused(kind: str) -> None:
    assert refused(RAW[kind])


@pytest.mark.parametrize("depth", [2, 2000])
def test_loops_in_loops(depth: int) -> None:
    assert "graph inside" in refused(with_more_nodes(nested(depth)))


def test_a_tag_that_wraps_hides_no_loop() -> None:
    """Protobuf keeps 32 bits of a tag: this one is that of the graph."""
    model = proto()
    bounded_by("")(model)
    graph = model.graph.SerializeToString()
    model.ClearField("graph")
    tag = b"\xba\x80\x80\x80\x10"  # 2³² + (7 << 3 | 2)
    assert "longer than" in refused(model.SerializeToString() + tag + measured(graph))


def test_an_enormous_file_and_a_pipe_are_not_even_read(tmp_path: Path) -> None:
    assert onnx_file.MOST_ROUNDS == simplex.MOST_ROUNDS
    file = tmp_path / "model.onnx"
    with file.open("wb") as stream:
        stream.truncate(1 << 40)  # takes no room on the disk
    with pytest.raises(UserError, match="1099511627776 bytes"):
        OnnxSession.load(file)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.onnx")
        with pytest.raises(UserError, match="There is no"):
            OnnxSession.load(tmp_path / "pipe.onnx")


def test_what_does_not_fit_together_is_one_sentence_and_no_log(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Found by ONNX Runtime: when the file is loaded, and when a text is read."""
    model = proto()
    model.graph.node[-1].input[0] = "nobody"
    with pytest.raises(UserError, match=r"cannot run .*Export the model again"):
        OnnxSession.from_bytes(PATH, model.SerializeToString())
    model = proto()
    looked_up = next(
        node for node in model.graph.node if node.op_type == "Gather" and node.input[1] == "pieces"
    )
    model.graph.initializer.append(tensor(np.zeros((3, 32), dtype=np.float32)))
    looked_up.input[0] = "more"  # a table of three pieces
    session = OnnxSession.from_bytes(PATH, model.SerializeToString())
    with pytest.raises(UserError, match=r"cannot read this text .*Export the model again"):
        session.logits([text_of(9)])
    assert capfd.readouterr() == ("", "")


TEXT = text_of(9)
ANSWER = OnnxSession.from_bytes(PATH, WHOLE).logits([TEXT])["sarcasm"]


def answer_or_refusal(content: bytes) -> object:
    """The logits, or None where a UserError says why there are none.

    Everything else is a failure.
    """
    try:
        return OnnxSession.from_bytes(PATH, content).logits([TEXT])["sarcasm"]
    except UserError:
        return None


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(1, 255)), max_size=4),
    st.integers(0, len(WHOLE)),
    st.binary(max_size=40),
)
def test_other_bytes_never_do_more_than_change_an_answer(
    flips: list[tuple[int, int]], where: int, more: bytes
) -> None:
    """Even if somebody keeps export.json in step; if nobody does, no flip passes at all
    (test_hostile_folders.py).
    """
    content = bytearray(WHOLE)
    for place, bits in flips:
        content[place] ^= bits
    content[where:where] = more
    answer = answer_or_refusal(bytes(content))
    assert answer is None or np.shape(answer) == ANSWER.shape


@settings(deadline=None, max_examples=150)
@given(st.integers(0, len(WHOLE) - 1))
def test_a_file_cut_off_never_passes(n_bytes: int) -> None:
    refused(WHOLE[:n_bytes])
