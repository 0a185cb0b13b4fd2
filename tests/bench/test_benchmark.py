"""Everybody who takes part in `classify` computes the same thing, is compared with the right ones,
and may be absent.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from bench.agreement import agreement
from bench.batching import Logits, in_batches, sort_by_length
from bench.benchmark import OWN, Benchmark, open_benchmark
from bench.classify import classify, padded_to
from bench.lines import BenchResult
from bench.rivals import RIVALS
from bench.subject import ONLY_DENSE, SHARES, UNTRAINED, Subject, load_subject
from litotes.core.errors import UserError
from litotes.data.tasks import SARCASM, SENTIMENT
from litotes.encoder import pretrained
from litotes.encoder.reshaping import rebuild_encoder
from litotes.model.checkpoint import Model, save_model
from litotes.model.classifier import Classifier
from litotes.pruning.cost import flops

TEXTS = [
    "the tea is great",
    "a queue",
    "it is not bad and i love the queue for the tea " * 2,
    "hate",
] * 9
ABSENT_RIVALS = {library for library, _ in RIVALS.values() if find_spec(library) is None}
MEASURED_RIVALS = [name for name in RIVALS if RIVALS[name][0] not in ABSENT_RIVALS]


def model_of(folder: Path, *, head: str = "linear", **choices: object) -> Model:
    loaded = pretrained.load(str(folder), **choices)
    torch.manual_seed(1)
    classifier = Classifier(loaded.encoder, (SENTIMENT, SARCASM), head=head, dropout=0.0).eval()
    return Model(classifier, loaded.tokenizer, "tiny", None)


pytestmark = pytest.mark.usefixtures("small_limit")


@pytest.fixture(scope="module")
def bench(benchmark: Benchmark) -> BenchResult:
    return classify(benchmark, n_rounds=1)


@pytest.mark.slow
@pytest.mark.parametrize("head", ["linear", "mean"])
def test_all_models_give_the_same_logits(head: str, tiny_folder: Path) -> None:
    model = model_of(tiny_folder, head=head)
    with open_benchmark(Subject(model, model), TEXTS[:5]) as found:
        ours = found.packed()(found.texts)
        assert ours.shape == (5, 4)
        workers = (found.onnx_runtime_workers("float32", 2), found.own_workers("litotes-dense", 2))
        for ask in (found.transformers(), found.onnx_runtime("float32", n_threads=1), *workers):
            for size in (1, 2, 5):
                np.testing.assert_allclose(in_batches(ask, size)(found.texts), ours, atol=2e-5)
        np.testing.assert_allclose(
            in_batches(found.own("litotes-dense", n_threads=2), 1)(found.texts), ours, atol=2e-5
        )
        for ask in (
            found.onnx_runtime("int8", n_threads=1),
            found.own_workers("litotes-dense-int8", 1),
        ):
            assert np.abs(ask(found.texts) - ours).max() < 0.2


def test_lines_and_what_they_are_compared_with(bench: BenchResult) -> None:
    lines = {line.name: line for line in bench.lines}
    theirs = [
        f"ort-{precision}-{how}"
        for precision in ("fp32", "int8")
        for how in ("32", "1", "1-workers")
    ]
    assert [*lines] == [
        "hf-padded-32",
        "hf-1",
        "hf-sorted-32",
        *theirs,
        *MEASURED_RIVALS,
        "litotes-packed",
        *OWN,
        "limit-float32",
        "limit-int8",
    ]
    assert set(bench.ratios(lines["litotes-dense"])) == {
        "ort-fp32-1-workers",
        "ort-fp32-1",
        "hf-padded-32",
        *[name for name in MEASURED_RIVALS if name.endswith("fp32")],
    }
    assert set(bench.ratios(lines["litotes-pruned-int8"])) == {
        "ort-int8-1-workers",
        "ort-int8-1",
        "hf-padded-32",
        "litotes-dense-int8",
        *[name for name in MEASURED_RIVALS if name.endswith("int8")],
    }
    assert set(bench.ratios(lines["litotes-packed"])) == {"hf-padded-32", "hf-1", "hf-sorted-32"}
    exact = [
        name
        for name in lines
        if not name.startswith("limit") and "int8" not in name and "pruned" not in name
    ]
    assert {lines[name].agreement for name in exact} == {1.0}
    assert all(
        bench.share_of_limit(line) for name, line in lines.items() if not name.startswith("limit")
    )
    assert bench.notes[0] == UNTRAINED
    assert len(bench.notes) == 1 + len(MEASURED_RIVALS)
    assert set(bench.left_out) == set(RIVALS) - set(MEASURED_RIVALS)
    assert bench.refused == {}


def test_operations_of_a_line_are_those_it_computes(
    benchmark: Benchmark, bench: BenchResult
) -> None:
    work = {line.name: line.flops or 0 for line in bench.lines}
    encoder, lengths = benchmark.subject.dense.classifier.encoder, benchmark.lengths
    assert (
        work["hf-padded-32"] == work["ort-int8-32"] == flops(encoder, padded_to(lengths, 32)).total
    )
    assert work["hf-1"] == work["ort-fp32-1-workers"] == flops(encoder, lengths).total
    assert (
        work["litotes-packed"]
        == work["litotes-dense-int8"]
        == flops(encoder, lengths, firsts_only=True).total
    )
    assert (
        work["hf-padded-32"]
        > work["hf-sorted-32"]
        > work["hf-1"]
        > work["litotes-dense"]
        > work["litotes-pruned"]
    )


def test_padded_lengths() -> None:
    assert padded_to([3, 5, 2, 9, 1], 2) == [5, 5, 9, 9, 1]


def test_agreement_counts_every_task() -> None:
    tasks = {"sentiment": SENTIMENT, "sarcasm": SARCASM}
    reference = np.array([[0, 1, 0, 1], [1, 0, 1, 0]], dtype=np.float32)
    other = np.array([[0, 1, 1, 0], [1, 0, 1, 0]], dtype=np.float32)
    assert agreement(other, reference, tasks) == 0.75


HF = {"hf-padded-32", "hf-1", "hf-sorted-32"}
LIMITS = {"limit-float32", "limit-int8"}
CT2 = {name for name in MEASURED_RIVALS if name.startswith("ct2")}

LEFT = {
    "transformers": {"litotes-packed", *OWN, *LIMITS},
    "onnxruntime": {*HF, *CT2, "litotes-packed"},
}


@pytest.mark.parametrize(("library", "left"), LEFT.items())
def test_whose_library_is_absent_is_left_out(
    library: str, left: set[str], tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with open_benchmark(load_subject(encoder=str(tiny_folder)), TEXTS[:3]) as found:
        bench = classify(found, n_rounds=1)
    assert {line.name for line in bench.lines} == left
    assert set(bench.left_out.values()) - ABSENT_RIVALS == {library} - ABSENT_RIVALS
    assert not left & set(bench.left_out)


def test_a_pruning_by_name_goes_down_the_same_slope(tiny_folder: Path) -> None:
    subject = load_subject(encoder=str(tiny_folder))
    # two layers instead of six
    assert subject.pruned.classifier.encoder.spec.pruning_options == {
        "shares": [SHARES[2], SHARES[5]]
    }
    dense, pruned = (
        subject.dense.classifier.heads.state_dict(),
        subject.pruned.classifier.heads.state_dict(),
    )
    assert all(torch.equal(dense[name], pruned[name]) for name in dense)


def test_folders_are_dense_and_pruned_from_it(tiny_folder: Path, tmp_path: Path) -> None:
    save_model(model_of(tiny_folder), tmp_path / "dense", card="")
    save_model(model_of(tiny_folder, pruning="cascade"), tmp_path / "pruned", card="")
    save_model(model_of(tiny_folder, head="mean", pruning="cascade"), tmp_path / "other", card="")
    subject = load_subject(tmp_path / "dense", tmp_path / "pruned")
    assert (subject.pruned.classifier.encoder.spec.pruning, subject.notes) == ("cascade", ())
    assert load_subject(tmp_path / "dense").notes == (ONLY_DENSE,)
    with pytest.raises(UserError, match="is not dense"):
        load_subject(tmp_path / "pruned")
    with pytest.raises(UserError, match="another head"):
        load_subject(tmp_path / "dense", tmp_path / "other")
    with pytest.raises(UserError, match="with --model"):
        load_subject(None, tmp_path / "pruned")
    model = model_of(tiny_folder, pruning="cascade")
    smaller = replace(
        model,
        classifier=Classifier(
            rebuild_encoder(model.classifier.encoder, n_layers=1),
            (SENTIMENT, SARCASM),
            head="linear",
            dropout=0.0,
        ),
    )
    save_model(smaller, tmp_path / "smaller", card="")
    with pytest.raises(UserError, match="another encoder"):
        load_subject(tmp_path / "dense", tmp_path / "smaller")


def test_heads_without_a_baseline_are_refused(tiny_folder: Path) -> None:
    model = model_of(tiny_folder, head="bilstm")
    with (
        open_benchmark(Subject(model, model), TEXTS[:2]) as found,
        pytest.raises(UserError, match="linear and mean have one"),
    ):
        classify(found, n_rounds=1)


def test_answers_come_in_the_texts_order() -> None:
    def ask(texts: Sequence[str]) -> Logits:
        return np.array([[len(text)] for text in texts], dtype=np.float32)

    for candidate in (in_batches(ask, 2), sort_by_length(ask)):
        assert candidate(["aaa", "b", "cc", "", "dddd"]).tolist() == [[3], [1], [2], [0], [4]]
