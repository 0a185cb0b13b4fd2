"""A text alone = the text in any group of texts of its length: to 1e-5 in float32, to the last bit
in int8.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_onnx_equality import KINDS, PRUNED, WEIGHTED
from tiny_exports import N_PIECES, encoder_of, model_of, session_of, text_of

from litotes.encoder.attention.entmax import Entmax
from litotes.encoder.tokenizer import Pieces
from litotes.exporting.graph import Graph, Symbol, Value, model_bytes
from litotes.exporting.model_graph import build_onnx
from litotes.exporting.onnx_operations import OnnxOperations
from litotes.exporting.products import Float32
from litotes.model.heads import HEADS
from litotes.prediction.onnx_file import PIECES, SEGMENTS
from litotes.prediction.onnx_runtime import OnnxSession

SEEN = [text_of(length) for length in (3, 9, 40, 70)]
"""What int8 looks at."""
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        f"{head}, {pruning}": (head, PRUNED[pruning])
        for head in sorted(HEADS)
        for pruning in ("none", "fused and restored")
    },
    **{pruning: ("linear", options) for pruning, options in PRUNED.items()},
    **{
        f"{family}, pruned": ("linear", {"family": family, **kind, **PRUNED["value"]})
        for family, kind in KINDS.items()
    },
    "mpnet": ("mean", {"family": "mpnet", **KINDS["mpnet"]}),
    **{
        f"{name} {number}": (
            "mean",
            {"weighting": name, "weighting_options": options, **PRUNED["few"]},
        )
        for name, several in WEIGHTED.items()
        for number, options in enumerate(several)
    },
}


def group_of(length: int, n: int, seed: int = 0) -> list[Pieces]:
    ids = np.random.default_rng((seed, length)).integers(0, N_PIECES, (n, length)).tolist()
    return [
        Pieces(row, [int(place > length // 2) for place in range(length)], False) for row in ids
    ]


def difference(session: OnnxSession, group: list[Pieces]) -> float:
    together = session.logits(group)
    alone = [session.logits([text]) for text in group]
    return max(
        float(np.abs(together[task] - np.concatenate([one[task] for one in alone])).max())
        for task in session.n_outputs
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", sorted(CASES))
def test_a_text_alone_is_the_text_in_a_group(case: str, tmp_path: Path) -> None:
    head, choices = CASES[case]
    model = model_of(encoder_of(**choices), head=head)
    exact = session_of(model, tmp_path)
    small = session_of(model, tmp_path, precision="int8", texts=SEEN)
    for length, n in ((1, 2), (2, 3), (7, 5), (33, 2), (64, 4), (150, 3)):
        group = group_of(length, n)
        assert difference(exact, group) < 1e-5, (length, n)
        assert difference(small, group) == 0, (length, n)


@pytest.fixture(scope="module")
def pruned(tmp_path_factory: pytest.TempPathFactory) -> tuple[OnnxSession, OnnxSession]:
    """In float32 and in int8, with everything that can happen to a piece or an attention head."""
    model = model_of(encoder_of(**PRUNED["fused"]), head="crosstalk")
    folder = tmp_path_factory.mktemp("pruned")
    return session_of(model, folder), session_of(model, folder, precision="int8", texts=SEEN)


@pytest.mark.slow
@given(
    length=st.integers(1, 90), n=st.integers(1, 6), seed=st.integers(0, 2**32 - 1), data=st.data()
)
@settings(max_examples=60, deadline=None)
def test_neighbours_do_not_matter(
    pruned: tuple[OnnxSession, OnnxSession], length: int, n: int, seed: int, data: st.DataObject
) -> None:
    """Whoever they are, how many they are and in which order they stand."""
    exact, small = pruned
    group = group_of(length, n, seed)
    order = data.draw(st.permutations(range(n)))
    for session, most in ((exact, 1e-5), (small, 0)):
        assert difference(session, group) <= most
        here, there = session.logits(group), session.logits([group[place] for place in order])
        for task in session.n_outputs:
            assert np.abs(here[task][order] - there[task]).max() <= most


def values_inside(content: bytes) -> tuple[list[str], onnxruntime.InferenceSession]:
    """A session that gives every number the file computes, and their names; not the probabilities,
    whose last bit decides nothing.
    """
    model = onnx.load_from_string(content)
    names = []
    for node in model.graph.node:
        names += [name for name in node.output if name and not name.endswith(".probabilities")]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return names, onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("pruning", ["fused", "fused and restored", "value"])
def test_no_operator_computes_otherwise_in_company(pruning: str) -> None:
    """Where one adds in another order, the last bit moves, and int8 makes a whole step of it: one
    text in a thousand then had another answer, by up to 0.008 in a probability.
    """
    model = model_of(encoder_of(**PRUNED[pruning]))
    content = build_onnx(model, made_from={}, precision="int8", texts=SEEN)
    names, session = values_inside(content)
    for length in range(20, 60, 3):
        group = group_of(length, 4)
        alone, together = (session.run(names, feeds_of(texts)) for texts in (group[1:2], group))
        for name, one, all_four in zip(names, alone, together, strict=True):
            if one.ndim and len(all_four) == 4 * len(one):  # of each text
                part = all_four[len(one) : 2 * len(one)]
                np.testing.assert_array_equal(part, one, err_msg=f"{name}, {length} pieces")


def test_entmax_in_int8_is_computed_one_text_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its logarithms, and its sums where one attention head is left, add otherwise in company."""
    sparse = encoder_of(weighting="entmax", weighting_options={"alpha": 1.25})
    for precision, sizes in (("int8", [1, 1, 1]), ("float32", [3])):
        session = session_of(model_of(sparse), tmp_path, precision=precision, texts=SEEN)
        runs: list[int] = []
        run = session._session.run
        spy = SimpleNamespace(
            run=lambda names, feeds, runs=runs, run=run: (
                runs.append(len(feeds[PIECES])),
                run(names, feeds),
            )[1]
        )
        monkeypatch.setattr(session, "_session", spy)
        assert session.logits(group_of(9, 3))["sarcasm"].shape == (3, 2)
        assert runs == sizes


def feeds_of(texts: list[Pieces]) -> dict[str, np.ndarray]:
    return {
        PIECES: np.array([text.ids for text in texts]),
        SEGMENTS: np.array([text.segments for text in texts]),
    }


@pytest.mark.parametrize("alpha", [1.5, 2.0, 1.25])
def test_rows_of_entmax_that_are_settled_do_not_wait_for_others(alpha: float) -> None:
    """Neighbours that need more rounds, or fewer, change not one bit."""
    graph = Graph()
    graph.inputs = [Value("affinity", np.float32, ("text", 4, "query", "key"))]
    ops = OnnxOperations(Float32(graph), encoder_of(), ("affinity", ""), firsts_only=True)
    weights = Entmax(4, alpha=alpha)(Symbol(graph, "affinity"), ops=ops)
    graph.outputs = [Value(weights.name, np.float32, ("text", 4, "query", "key"))]
    session = onnxruntime.InferenceSession(
        model_bytes(graph, {}), providers=["CPUExecutionProvider"]
    )
    sizes = np.array([0, 1e-3, 0.1, 1, 10, 100])[:, None, None, None]
    affinity = (np.random.default_rng(0).standard_normal((6, 4, 16, 16)) * sizes).astype(np.float32)
    (together,) = session.run(None, {"affinity": affinity})
    for text, weights in zip(affinity, together, strict=True):
        np.testing.assert_array_equal(session.run(None, {"affinity": text[None]})[0][0], weights)
