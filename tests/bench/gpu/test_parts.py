"""Weightings, importance, launches and tables on a CPU: which lines, and what else is known."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from bench.gpu import csv as csv_module
from bench.gpu import selection, weightings
from bench.gpu.context import GpuBench
from bench.gpu.selection import Event, part_of, summarize
from bench.gpu.turns import GpuGroup
from litotes.data.tasks import SENTIMENT

Make = Callable[..., GpuBench]


def names(group: GpuGroup) -> list[str]:
    return [line.name for line in group.result.lines]


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
    starts = ("sdpa", *(f"litotes-{name}" for name in ours), "entmax-package")
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
