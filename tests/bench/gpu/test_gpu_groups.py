"""The groups of `litotes bench gpu` on a tiny encoder: which lines, against which, what else is
known, and one document of them all.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from bench.gpu import classify as classify_module
from bench.gpu import groups, opponents, training, training_heads
from bench.gpu.classify import buckets, classify, differences, minilm, precision, strings
from bench.gpu.context import GpuBench, quick, repeat_to
from bench.gpu.groups import GpuReport, measure_gpu, require_gpu
from bench.gpu.models import copy_to
from bench.gpu.turns import GpuGroup
from bench.lines import BenchResult
from litotes.core.errors import UserError
from litotes.data.corpus import SENTIMENT
from litotes.model.heads import HEADS

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
    act = training.our_steps(classifier, [bench.pieces[:4]], bench.device)
    losses = [float(act(None)) for _ in range(200)]
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.slow
def test_every_head_trains_dense_and_pruned(bench_with: Make) -> None:
    group = training_heads.training_heads(bench_with())
    assert not group.failed
    assert names(group) == [f"{kind}-{head}" for head in HEADS for kind in ("dense", "cascade")]
    lines = {line.name: line for line in group.result.lines}
    assert set(group.result.ratios(lines["cascade-bilstm"])) == {"dense-bilstm"}
    assert set(group.result.ratios(lines["dense-bilstm"])) == {"dense-linear"}
    assert group.result.ms_of == "a batch of 8"


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
        "refused": {},
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
