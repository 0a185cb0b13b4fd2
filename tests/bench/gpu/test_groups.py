"""The groups of `litotes bench gpu` on a tiny encoder: which lines, against which, what else is
known, and one document of them all.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from litotes.bench.gpu import classify as classify_module
from litotes.bench.gpu import csv as csv_module
from litotes.bench.gpu import groups, opponents, selection, training, weightings
from litotes.bench.gpu.classify import buckets, classify, differences, minilm, precision, strings
from litotes.bench.gpu.context import GpuBench, quick, repeat_to
from litotes.bench.gpu.groups import GpuReport, measure_gpu, require_gpu
from litotes.bench.gpu.models import copy_to
from litotes.bench.gpu.selection import Event, part_of, summarize
from litotes.bench.gpu.turns import GpuGroup
from litotes.bench.lines import BenchResult
from litotes.core.errors import UserError
from litotes.data.tasks import SENTIMENT

Make = Callable[..., GpuBench]


@pytest.fixture(autouse=True)
def _without_gpu(monkeypatch: pytest.MonkeyPatch, one_by_one: opponents.MakeAttention) -> None:
    """There is no attention over packed texts on a CPU, and nobody waits for a compiler."""
    monkeypatch.setattr(opponents, "varlen_attention", one_by_one)
    monkeypatch.setattr(torch, "compile", lambda network, dynamic: network)


def names(group: GpuGroup) -> list[str]:
    return [line.name for line in group.result.lines]


@pytest.mark.slow
def test_classify_measures_ours_against_padding_and_packing(bench_with: Make) -> None:
    group = classify(bench_with(is_quick=False))
    assert not group.failed
    assert names(group) == [
        "hf-sdpa-padded-b64",
        "hf-sdpa-padded-b256",
        "hf-sdpa-padded-compiled-b64",
        "hf-sdpa-padded-compiled-b256",
        "naive-packed-b256",
        "litotes-dense",
        "litotes-pruned",
        "litotes-cascade",
    ]
    lines = {line.name: line for line in group.result.lines}
    assert all(line.agreement == 1 for line in lines.values()), "each with its own model"
    assert set(group.result.ratios(lines["litotes-pruned"])) == {
        "hf-sdpa-padded-b256",
        "hf-sdpa-padded-compiled-b256",
        "naive-packed-b256",
        "litotes-dense",
    }
    work = {name: line.flops or 0 for name, line in lines.items()}
    assert work["hf-sdpa-padded-b64"] > work["naive-packed-b256"] > work["litotes-dense"]
    assert work["litotes-dense"] > work["litotes-cascade"] > work["litotes-pruned"]


def test_a_line_without_its_library_is_left_out_and_one_that_fails_is_told(
    bench_with: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(layout: object) -> None:
        raise NotImplementedError("no such attention here")

    monkeypatch.setattr(opponents, "varlen_attention", fail)
    monkeypatch.setitem(sys.modules, "transformers", None)
    group = minilm(bench_with())
    assert names(group) == ["litotes-dense", "litotes-pruned", "litotes-cascade"]
    assert group.failed == {"naive-packed-b256": "NotImplementedError: no such attention here"}
    assert group.result.left_out == {"hf-sdpa-padded-b256": "transformers"}


def test_every_bucket_has_its_dense_line(
    bench_with: Make, runtimes: list[tuple[str, int | None]]
) -> None:
    group = buckets(bench_with())
    kinds = ("dense", "pruned", "cascade")
    assert names(group) == [f"litotes-{kind}-p{size}" for size in (64, 128) for kind in kinds]
    assert runtimes == [("auto", size) for size in (64, 128) for _ in kinds]
    lines = {line.name: line for line in group.result.lines}
    assert set(group.result.ratios(lines["litotes-pruned-p128"])) == {"litotes-dense-p128"}


def test_labels_are_counted_by_precision(
    bench_with: Make, runtimes: list[tuple[str, int | None]]
) -> None:
    group = precision(bench_with())
    assert not group.failed
    assert {name for name, _ in runtimes} == {"float32", "bfloat16", "float16"}
    assert group.facts.keys() == set(names(group))
    facts = group.facts["trained-bfloat16"]
    assert facts["differing_per_1000"] == 0
    assert facts["largest_difference"] < 1e-5 < facts["spread"]


def test_times_are_kept_where_there_is_nothing_to_compare_labels_with(
    bench_with: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = bench_with()
    assert bench.small
    monkeypatch.setattr(GpuBench, "reference", lambda self, model: fail(self))
    group = minilm(bench)
    assert "litotes-pruned" in names(group)
    assert all(line.agreement is None for line in group.result.lines)
    assert set(group.failed) == {"reference-dense", "reference-pruned", "reference-cascade"}
    assert not precision(bench).facts


def test_a_label_that_differs_counts() -> None:
    reference = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0], [3.0, 0.0]], np.float32)
    logits = reference.copy()
    logits[1] = [0.5, 0.25]
    found = differences(logits, reference, {"sentiment": SENTIMENT})
    assert found["differing_per_1000"] == 250
    assert found["largest_difference"] == 0.75


def test_strings_are_split_into_tokenizing_and_the_encoder(bench_with: Make) -> None:
    group = strings(bench_with())
    assert not group.failed
    assert names(group)[0] == "tokenizing"
    assert group.facts.keys() == {"large-strings", "minilm-strings"}
    assert all(share > 0 for share in group.facts["large-strings"].values())
    assert group.facts["large-strings"].keys() == {"tokenizing_share", "encoder_share"}


@pytest.mark.slow
def test_training_compares_steps(bench_with: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "BATCH", 4)
    bench = bench_with()
    group = training.training(bench)
    assert not group.failed
    assert names(group) == ["hf-padded", "litotes-dense", "litotes-pruned", "litotes-cascade"]
    lines = {line.name: line for line in group.result.lines}
    assert set(group.result.ratios(lines["litotes-pruned"])) == {"hf-padded", "litotes-dense"}
    assert group.result.ms_of == "a batch of 4"


@pytest.mark.slow
def test_our_steps_teach(bench_with: Make) -> None:
    bench = bench_with()
    classifier = copy_to(bench.small["dense"], bench.device).classifier.eval()
    optimizer = torch.optim.AdamW(classifier.parameters(), lr=1e-2)
    act = training.our_steps(classifier, optimizer, [bench.pieces[:4]], bench.device)
    losses = [float(act(None)) for _ in range(20)]
    assert losses[-1] < 0.5 * losses[0]


def test_weightings_forward_and_backward_with_errors(
    bench_with: Make, kernels: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weightings, "LENGTHS", (6,))
    monkeypatch.setattr(weightings, "N_TEXTS", 2)
    group = weightings.weightings(bench_with(n_rounds=1))
    assert not group.failed
    assert group.result.left_out == dict.fromkeys(
        ("adasplash-n6", "adasplash-n6-backward"), "adasplash"
    )
    ours = ("softmax", "entmax-1.5", "entmax-learned", "top_k", "block_top_k")
    starts = ("sdpa", "entmax-package", *(f"litotes-{name}" for name in ours))
    assert names(group) == [f"{name}-n6{end}" for end in ("", "-backward") for name in starts]
    assert group.facts.keys() == {f"litotes-{name}-n6" for name in ours}
    assert all(facts["error_float32"] < 1e-5 for facts in group.facts.values())


def test_an_attention_that_is_wrong_has_a_large_error(kernels: list[Any]) -> None:
    known, cpu = weightings.our_weightings(), torch.device("cpu")
    wrong = weightings.Ours(known["entmax-1.5"].plain, known["softmax"].rule)
    assert weightings.errors(wrong, 9, cpu, torch.float32)["error_float32"] > 0.01


def test_gradients_are_not_added_up(kernels: list[Any]) -> None:
    inputs = weightings.Inputs.draw([5, 5], 0, torch.device("cpu"), torch.float32)
    bound = weightings.our_weightings()["softmax"].bind(inputs)
    grads = []
    for _ in range(2):
        bound.forward_backward()
        grads.append(bound.leaves[0].grad)
    assert grads[0] is not None
    assert torch.equal(grads[0], grads[1])


def test_importance_is_measured_on_top_of_attention(bench_with: Make, kernels: list[Any]) -> None:
    group = selection.importance(bench_with(n_rounds=1))
    assert not group.failed
    assert {wanted.importance for wanted in kernels} == {"none", "received", "value"}
    assert group.facts.keys() == {"attention-received", "attention-value"}


@pytest.mark.slow
def test_launches_of_a_batch_before_and_after(bench_with: Make) -> None:
    group = selection.launches(bench_with())
    assert not group.failed
    kinds = ("dense", "pruned", "cascade")
    assert group.facts.keys() == {
        f"{when}-{kind}" for when in ("before", "after", "bucket") for kind in kinds
    }
    assert group.facts["after-dense"]["launches"] == 0, "on a CPU"


def test_a_profile_is_summed_up() -> None:
    host = [
        ("cudaLaunchKernel", 2),
        ("cuLaunchKernelEx", 1),
        ("cudaGraphLaunch", 1),
        ("cudaMemcpyAsync", 2),
        ("cudaStreamSynchronize", 1),
        ("cudaDeviceSynchronize", 1),
        ("aten::linear", 5),
    ]
    events = [Event(name, False, 9.0) for name, n in host for _ in range(n)]
    device = [
        ("attend_tile", 30.0),
        ("nvjet_tst_128x256", 60.0),
        ("select_kernel", 4.0),
        ("gather_kernel", 1.0),
        ("add_and_norm_rows", 5.0),
        ("Memcpy HtoD (Pinned -> Device)", 50.0),
    ]
    events += [Event(name, True, us) for name, us in device]
    assert summarize(events) == {
        "launches": 4,
        "waits": 1,
        "copies": 2,
        "kernels": 5,
        "device_ms": 0.1,
        "attention_share": 0.3,
        "products_share": 0.6,
        "selection_share": 0.05,
        "norms_share": 0.05,
    }
    assert part_of("void pytorch_flash::flash_fwd_kernel<cutlass::bfloat16_t>") == "attention"
    assert part_of("triton_poi_fused_gelu_3") == "other"


def test_a_table_is_answered_from_csv_to_csv(
    bench_with: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_module, "N_COMPARED", 7)
    group = csv_module.csv(bench_with(n_rows=30))
    assert not group.failed
    assert names(group) == ["trained-csv", "large-csv"]
    assert group.result.ms_of == "30 rows"
    assert group.facts["trained-csv"]["differing_per_1000"] == 0
    if sys.platform == "linux":
        assert group.facts["large-csv"]["peak_host_mb"] > 10


def test_labels_of_a_file_that_are_wrong_are_counted(bench_with: Make, tmp_path: Path) -> None:
    bench = bench_with()
    file = tmp_path / "out.csv"
    labels = [SENTIMENT.labels[int(n)] for n in bench.reference(bench.trained_model).argmax(1)]
    other = {SENTIMENT.labels[0]: SENTIMENT.labels[1], SENTIMENT.labels[1]: SENTIMENT.labels[0]}
    labels[0] = other[labels[0]]
    rows = [f"{text},{label}\n" for text, label in zip(bench.texts, labels, strict=True)]
    file.write_text("text,sentiment\n" + "".join(rows), "utf-8")
    found = csv_module.differing_labels(bench.trained_model, file)
    assert found["differing_per_1000"] == pytest.approx(1000 / len(rows), abs=0.1)


def group_of(*lines: str) -> Callable[[GpuBench], GpuGroup]:
    def measure(bench: GpuBench) -> GpuGroup:
        candidates = {name: lambda: classify_module.Candidate(lambda _: None) for name in lines}
        attempts = bench.attempts()
        made = classify_module.time_in_guarded_turns(
            "one", candidates, attempts, n_texts=1, n_rounds=1, watch=bench.watch
        )
        result = BenchResult(lines[0], made, {}, notes=("mind",))
        return GpuGroup(result, {"b": "broke"}, {lines[0]: {"number": 2.0}})

    return measure


def fail(bench: GpuBench) -> GpuGroup:
    raise RuntimeError("out of memory")


def test_a_run_hands_on_what_it_has_after_every_group(
    bench_with: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"one": group_of("a"), "two": fail, "three": group_of("c"), "csv": fail}
    monkeypatch.setattr(groups, "GROUPS", known)
    seen: list[dict[str, Any]] = []
    notes: list[str] = []
    bench = bench_with(watch=lambda what, done, total, note: notes.append(note))
    report = measure_gpu(bench, on_group=lambda found: seen.append(found.as_json()))
    assert [list(content["groups"]) for content in seen] == [
        ["one"],
        ["one", "two"],
        ["one", "two", "three"],
    ]
    content = json.loads(json.dumps(report.as_json()))
    assert content["groups"]["one"] == {
        "baseline": "a",
        "ms_of": "all texts",
        "notes": ["mind"],
        "left_out": {},
        "failed": {"b": "broke"},
        "facts": {"a": {"number": 2.0}},
    }
    assert report.failed == {
        "one: b": "broke",
        "two: whole group": "RuntimeError: out of memory",
        "three: b": "broke",
    }
    assert [line["name"] for line in content["lines"]] == ["a", "c"]
    assert content["subject"]["times_fewer_operations"] == pytest.approx(2.5, rel=0.1)
    assert content["machine"]["torch"]
    assert "one: 1 lines, 1 failed" in notes
    assert str(bench.encoder) not in json.dumps(content)


def test_every_group_is_one_of_the_table() -> None:
    assert list(groups.GROUPS)[:3] == ["classify", "training", "weightings"]
    assert isinstance(GpuReport({}, 0, {}, {}).failed, dict)


def test_a_machine_without_a_gpu_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match="needs a CUDA device"):
        require_gpu()


def test_few_texts_are_repeated_and_a_first_look_is_short(bench_with: Make) -> None:
    assert repeat_to(("a", "b"), 5) == ("a", "b", "a", "b", "a")
    assert repeat_to(("a", "b"), 1) == ("a", "b")
    short = quick(bench_with(is_quick=False, n_rounds=5))
    assert (short.n_rounds, short.buckets, short.is_quick) == (1, (64,), True)
