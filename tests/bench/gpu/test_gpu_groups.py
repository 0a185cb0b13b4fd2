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
from bench.gpu import groups, opponents, training
from bench.gpu.classify import buckets, classify, differences, minilm, precision
from bench.gpu.context import GpuBench, repeat_to
from bench.gpu.groups import measure_gpu
from bench.gpu.turns import GpuGroup
from bench.lines import BenchResult
from litotes.data.corpus import SENTIMENT

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
    padded = [f"hf-sdpa-padded-{kind}b{n}" for kind in ("", "compiled-") for n in (64, 256)]
    ours = [f"litotes-{kind}" for kind in ("dense", "pruned", "cascade")]
    assert names(group) == [*padded, "naive-packed-b256", *ours]
    lines = {line.name: line for line in group.result.lines}
    assert all(line.agreement == 1 for line in lines.values()), "each with its own model"
    against = {padded[1], padded[3], "naive-packed-b256", "litotes-dense"}
    assert set(group.result.ratios(lines["litotes-pruned"])) == against
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


def test_labels_are_counted_by_precision(
    bench_with: Make, runtimes: list[tuple[str, int | None]]
) -> None:
    group = precision(bench_with())
    assert not group.failed
    assert {name for name, _ in runtimes} == {"float32", "bfloat16", "float16"}
    runtimes.clear()
    by_bucket = buckets(bench_with())
    kinds = ("dense", "pruned", "cascade")
    assert names(by_bucket) == [f"litotes-{kind}-p{size}" for size in (64, 128) for kind in kinds]
    assert runtimes == [("auto", size) for size in (64, 128) for _ in kinds]
    assert group.facts.keys() == set(names(group))
    reference = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0], [3.0, 0.0]], np.float32)
    logits = np.array([[1.0, 0.0], [0.5, 0.25], [0.0, 2.0], [3.0, 0.0]], np.float32)
    other = differences(logits, reference, {"sentiment": SENTIMENT})
    assert (other["differing_per_1000"], other["largest_difference"]) == (250, 0.75)
    facts = group.facts["trained-bfloat16"]
    assert facts["differing_per_1000"] == 0
    assert facts["largest_difference"] < 1e-5 < facts["spread"]


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
    assert (repeat_to(("a", "b"), 5), repeat_to(("a",), 1)) == (("a", "b", "a", "b", "a"), ("a",))
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
