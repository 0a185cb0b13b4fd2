"""Torch and ONNX agree on every label and to 1e-4 in probability: every head, weighting, pruning
and family, at many lengths, exits included; and a text alone is the text in any group of its
length, to 1e-5 in float32, to the last bit in int8.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from made_exits import with_exits
from tiny_exports import (
    KINDS,
    N_PIECES,
    PRUNED,
    SARCASM,
    SENTIMENT,
    encoder_of,
    model_of,
    session_of,
    text_of,
)

from litotes.encoder import pretrained
from litotes.encoder.attention import PRUNINGS, WEIGHTINGS
from litotes.encoder.attention.entmax import Entmax
from litotes.encoder.families import FAMILIES
from litotes.encoder.packing import pack
from litotes.encoder.reshaping import keep_heads, rebuild_encoder
from litotes.encoder.tokenizer import Pieces
from litotes.exporting.graph import Graph, Symbol, Value, model_bytes
from litotes.exporting.model_graph import build_onnx
from litotes.exporting.onnx_operations import OnnxOperations
from litotes.exporting.products import Float32
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import Model
from litotes.model.heads import HEADS
from litotes.model.runtime import compute_logits, compute_outputs
from litotes.prediction.onnx_file import PIECES, SEGMENTS
from litotes.prediction.onnx_runtime import OnnxSession

WEIGHTED: dict[str, list[dict[str, Any]]] = {
    "softmax": [{}],
    "entmax": [{"alpha": 1.5}, {"alpha": 2.0}, {"alpha": 1.25}, {"alpha": "learned"}],
    "top_k": [{"sparsity": 0.5}, {"sparsity": 0.95}],
    "block_top_k": [{"sparsity": 0.6, "block": 3}],
}


def test_every_table_is_covered() -> None:
    assert {choice.get("pruning", "none") for choice in PRUNED.values()} == set(PRUNINGS)
    assert set(KINDS) == set(FAMILIES)
    assert set(WEIGHTED) == set(WEIGHTINGS)


@torch.no_grad()
def assert_equal(model: Model, session: OnnxSession, texts: list[Pieces]) -> None:
    for text in texts:
        found = session.logits([text])
        for task, wanted in model.classifier(pack([text])).items():
            ours, theirs = (
                values.softmax(-1).numpy()
                for values in (torch.from_numpy(found[task][0]), wanted[0])
            )
            assert np.abs(ours - theirs).max() < 1e-4, (task, len(text.ids), ours, theirs)
            assert ours.argmax() == theirs.argmax()


def texts_of(*lengths: int) -> list[Pieces]:
    """Every second one is a pair."""
    return [text_of(length, pair=length % 2 == 0) for length in lengths]


SEEN = [text_of(length) for length in (3, 9, 40, 70)]
"""What int8 looks at."""


def group_of(length: int, n: int, seed: int = 0) -> list[Pieces]:
    ids = np.random.default_rng((seed, length)).integers(0, N_PIECES, (n, length)).tolist()
    return [
        Pieces(row, [int(place > length // 2) for place in range(length)], False) for row in ids
    ]


def change_in_company(session: OnnxSession, group: list[Pieces]) -> float:
    """By how much a text's answer in a group differs from its answer alone."""
    together = session.logits(group)
    alone = [session.logits([text]) for text in group]
    return max(
        float(np.abs(together[task] - np.concatenate([one[task] for one in alone])).max())
        for task in session.n_outputs
    )


NEWER: list[dict[str, Any]] = [
    KINDS["deberta-v2"] | {"position_terms": ("c2p",), "shares_projections": False},
    KINDS["deberta-v2"] | {"position_terms": ("p2c",), "n_distance_buckets": 0, "farthest": 20},
    KINDS["deberta-v2"] | {"weighting": "block_top_k", "has_positions": True, "n_segments": 1},
    KINDS["modernbert"] | {"weighting": "entmax", "attention_bias": True, "norm_bias": True},
    KINDS["modernbert"] | {"weighting": "top_k", "window": 2000},
    KINDS["modernbert"] | {"weighting": "top_k", "weighting_options": {"sparsity": 0.6}},
    KINDS["modernbert"] | {"weighting": "block_top_k", "weighting_options": {"block": 3}},
]
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    f"{head}, {pruning}": (head, PRUNED[pruning])
    for head in sorted(HEADS)
    for pruning in ("none", "fused and restored", *(PRUNED if head in ("linear", "mean") else ()))
}
CASES |= {f"{family}, few": ("linear", KINDS[family] | PRUNED["few"]) for family in KINDS}
CASES |= {
    f"{family}, restored": ("mean", KINDS[family] | PRUNED["fused and restored"])
    for family in KINDS
}
CASES |= {
    f"{name} {number}, {pruning}": (
        head,
        {"weighting": name, "weighting_options": options, **PRUNED[pruning]},
    )
    for name, several in WEIGHTED.items()
    for number, options in enumerate(several)
    for head, pruning in (("linear", "none"), ("mean", "few"))
}
CASES |= {f"newer {number}": ("mean", choices) for number, choices in enumerate(NEWER)}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_file_says_what_torch_says_of_a_text_alone_and_in_a_group(
    case: str, tmp_path: Path
) -> None:
    """A head reads rows and does not know who has left, so not every pair of the two is asked."""
    head, choices = CASES[case]
    model = model_of(encoder_of(**choices), head=head)
    exact = session_of(model, tmp_path)
    assert_equal(model, exact, texts_of(1, 2, 40, 512))
    small = session_of(model, tmp_path, precision="int8", texts=SEEN)
    for length, n in ((1, 2), (7, 5), (33, 2), (150, 3)):
        group = group_of(length, n)
        assert change_in_company(exact, group) < 1e-5, (length, n)
        assert change_in_company(small, group) == 0, (length, n)


@pytest.mark.parametrize("head", ["linear", "mean"])
@pytest.mark.parametrize("family", ["bert", "mpnet", "deberta-v2", "modernbert"])
def test_heads_removed_for_good(head: str, family: str, tmp_path: Path) -> None:
    whole = encoder_of(**KINDS[family], **PRUNED["value"])
    model = model_of(keep_heads(whole, [[0, 2], [3], [1, 2, 3]]), head=head)
    assert_equal(model, session_of(model, tmp_path), texts_of(1, 2, 40))


@pytest.mark.parametrize("seed", range(2))
def test_pruning_at_lengths_drawn_at_random(seed: int, tmp_path: Path) -> None:
    model = model_of(encoder_of(seed, **PRUNED["fused and restored"]), head="mean")
    lengths = np.random.default_rng(seed).integers(1, 513, 8).tolist()
    assert_equal(model, session_of(model, tmp_path), texts_of(*lengths))


def test_of_two_pieces_alike_the_earlier_one_stays(tmp_path: Path) -> None:
    """Without positions equal pieces tie exactly, in both."""
    encoder = encoder_of(
        pruning="cascade", pruning_options={"schedule": [0.5, 0.5, 0.5]}, n_segments=0
    )
    torch.nn.init.zeros_(encoder.embeddings.position.weight)
    model = model_of(encoder, head="bilstm")
    session = session_of(model, tmp_path)
    ids = [1, 2, 3, 2, 3, 2, 3, 2, 3]
    assert_equal(model, session, [Pieces(ids, [0] * len(ids), False)])


def test_segments_beyond_the_table_count_as_its_last(tmp_path: Path) -> None:
    model = model_of(encoder_of())
    assert_equal(model, session_of(model, tmp_path), [Pieces([5, 6, 7, 8], [0, 1, 2, 5], False)])


LEARNED = {"pruning": "learned", "pruning_options": {"shares": [0.9, 0.7, 0.5, 0.4, 0.3, 0.25]}}


@pytest.mark.slow
def test_minilm(tmp_path: Path) -> None:
    loaded = pretrained.load("minilm")
    torch.manual_seed(0)
    model = model_of(rebuild_encoder(loaded.encoder, **LEARNED), SENTIMENT, SARCASM, head="mean")
    for task in model.classifier.heads.values():
        torch.nn.init.normal_(task.output.weight, std=0.5)
    sentences = ("Lovely.", "Another delay!", "The queue was long and the tea was cold; " * 20)
    assert_equal(model, session_of(model, tmp_path), loaded.tokenizer.encode(sentences))


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
def test_no_operator_computes_otherwise_in_company() -> None:
    """Where one adds in another order, the last bit moves, and int8 makes a whole step of it: one
    text in a thousand then had another answer, by up to 0.008 in a probability.
    """
    model = model_of(encoder_of(**PRUNED["fused and restored"]))
    content = build_onnx(model, made_from={}, precision="int8", texts=SEEN)
    names, session = values_inside(content)
    for length in range(20, 60, 3):
        group = group_of(length, 4)
        alone, together = (session.run(names, feeds_of(texts)) for texts in (group[1:2], group))
        for name, one, all_four in zip(names, alone, together, strict=True):
            if one.ndim and len(all_four) == 4 * len(one):  # of each text
                part = all_four[len(one) : 2 * len(one)]
                np.testing.assert_array_equal(part, one, err_msg=f"{name}, {length} pieces")


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


LEFT = [0.8, 0.6, 0.4]
SETTINGS: dict[str, dict[str, Any]] = {
    "heads": {"pruning": "cascade", "pruning_options": {"schedule": LEFT, "final_heads": 0.5}},
    "both": {"pruning": "learned", "pruning_options": {"shares": LEFT, "fuse": True}},
    "restored": {
        "pruning": "learned",
        "pruning_options": {"shares": LEFT, "restore": True, "fuse": True},
        "head": "mean",
    },
    "entmax": {"weighting": "entmax"},
    "modernbert": KINDS["modernbert"] | PRUNED["few"],
    **{name: {"pruning": name} for name in PRUNINGS},
}
CALIBRATION = {"sarcasm": Calibration(1.5, 0.6, 100)}
ALIKE = (7, 12, 30)
N_ALIKE = 6
THRESHOLD = 0.55


def exiting_model(threshold: float = THRESHOLD, head: str = "linear", **choices: Any) -> Model:
    encoder = encoder_of(**choices)
    made = model_of(encoder, SENTIMENT, SARCASM, head=head, calibration=CALIBRATION)
    return with_exits(made, (1, 2), threshold=threshold)


def groups() -> list[list[Pieces]]:
    """Texts of equal length, several of each."""
    drawn = np.random.default_rng(0)
    made = []
    for length in ALIKE:
        texts = [drawn.integers(0, 60, length).tolist() for _ in range(N_ALIKE)]
        made.append([Pieces(text, [0] * length, False) for text in texts])
    return made


@pytest.mark.parametrize("setting", sorted(SETTINGS))
def test_torch_and_the_file_agree_on_layer_and_logits(setting: str, tmp_path: Path) -> None:
    # states that are not normed make large margins
    threshold = 0.95 if setting == "modernbert" else THRESHOLD
    model = exiting_model(threshold, **SETTINGS[setting])
    session = session_of(model, tmp_path)
    layers = set()
    for group in groups():
        expected, found = compute_outputs(model, group), session.compute(group)
        assert expected.layers is not None
        layers |= set(expected.layers.tolist())
        np.testing.assert_array_equal(found.layers, expected.layers)
        for task, logits in expected.logits.items():
            np.testing.assert_allclose(found.logits[task], logits, atol=1e-4)
    assert layers == {1, 2, 3}


def test_a_text_in_the_file_is_answered_as_if_it_were_alone(tmp_path: Path) -> None:
    model = exiting_model(**SETTINGS["both"])
    session = session_of(
        model, tmp_path, precision="int8", texts=[text_of(n) for n in range(2, 40)]
    )
    group = groups()[1]
    together = session.compute(group)
    assert together.layers is not None
    assert len(set(together.layers.tolist())) > 1
    for place, text in enumerate(group):
        alone = session.compute([text])
        assert alone.layers is not None
        assert alone.layers.tolist() == [together.layers[place]]
        for task, logits in alone.logits.items():
            np.testing.assert_allclose(logits[0], together.logits[task][place], atol=1e-5)


@pytest.mark.parametrize(("threshold", "layer"), [(1.0, 3), (1e-9, 1)])
def test_all_stay_or_all_leave(threshold: float, layer: int, tmp_path: Path) -> None:
    model = exiting_model(threshold)
    found = session_of(model, tmp_path).compute(groups()[0])
    assert found.layers is not None
    assert set(found.layers.tolist()) == {layer}
    whole = compute_logits(model, groups()[0])
    for task, logits in whole.items():
        is_same = np.allclose(found.logits[task], logits.numpy(), atol=1e-4)
        assert is_same == (layer == 3)
