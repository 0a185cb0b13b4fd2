"""latency, profile and growth on a tiny encoder, and the whole run: which lines, of what, and where
their time went.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import measure
from bench.benchmark import OWN, Benchmark
from bench.growth import growth
from bench.kernels import Call
from bench.latency import latency
from bench.lines import BenchResult, Line
from bench.profile import PARTS, all_parts, profile
from bench.sized_texts import texts_of_length
from bench.subject import load_subject
from litotes.core.errors import UserError
from litotes.encoder import pretrained

TEXTS = [
    "the tea is great",
    "a queue",
    "it is not bad and i love the queue for the tea " * 2,
    "hate great tea and a bad queue",
] * 4


pytestmark = [pytest.mark.usefixtures("small_limit"), pytest.mark.slow]


@pytest.fixture(scope="module")
def profiled(benchmark: Benchmark) -> dict[str, Line]:
    return {line.name: line for line in profile(benchmark, lengths=(8, 64, 512), n_rounds=1).lines}


@pytest.mark.parametrize("n_pieces", [4, 96])
def test_a_text_of_a_wanted_length_has_it(n_pieces: int, tiny: pretrained.Pretrained) -> None:
    texts = texts_of_length(TEXTS, tiny.tokenizer, n_pieces, n_texts=3)
    assert [(len(read.ids), read.truncated) for read in tiny.tokenizer.encode(texts)] == [
        (n_pieces, False)
    ] * 3
    assert set(" ".join(texts).split()) <= set(" ".join(TEXTS).split())
    with pytest.raises(UserError, match="make 4 pieces"):
        texts_of_length(["abcdefgh"], tiny.tokenizer, 4, n_texts=1)


def test_latency_of_every_length_on_one_thread_and_on_all(benchmark: Benchmark) -> None:
    bench = latency(benchmark, lengths=(5,), n_runs=21, n_rounds=1)
    lines = {line.name: line for line in bench.lines}
    who = ["ort-fp32", "ort-int8", *OWN]
    endings = ["", "-all-cores"] if benchmark.n_cores > 1 else [""]
    assert set(lines) == {f"{name}-n5{ending}" for name in who for ending in endings} | {
        "hf-n5-all-cores",
        "litotes-packed-n5-all-cores",
    }
    assert set(bench.ratios(lines["litotes-pruned-int8-n5"])) == {"ort-int8-n5"}
    assert all(len(line.ms_all_rounds) == 21 for line in bench.lines)
    assert all(one["ms_p99"] >= one["ms"] and one["n_rounds"] == 21 for one in bench.as_json())


def test_parts_of_a_text_are_those_of_the_graph_and_what_is_around_it(
    profiled: dict[str, Line],
) -> None:
    lengths = {name.rpartition("-n")[2] for name in profiled if not name.startswith("limit")}
    assert lengths == {"8", "64"}, "the tiny encoder reads no 512 pieces"
    for name in OWN:
        parts = profiled[f"{name}-n64"].parts or {}
        assert (
            {"tokenizing", "embeddings", "attention", "feed_forward", "head", "around"}
            <= parts.keys()
            <= set(PARTS)
        )
        assert ("selection" in parts) == ("pruned" in name)
        assert all(ms >= 0 for ms in parts.values())
        assert list(parts) == [part for part in PARTS if part in parts]
        operations = [profiled[f"{name}-n{length}"].flops or 0 for length in (8, 64)]
        assert operations[0] < operations[1]
    kernels = {"head": 0.5, "attention": 2.0, "embeddings": 0.25}
    assert all_parts(0.1, Call(3.0, kernels)) == {"tokenizing": 0.1, **kernels, "around": 0.25}
    assert all_parts(0.1, Call(2.0, kernels))["around"] == 0


def test_growth_with_batch_and_cores(benchmark: Benchmark) -> None:
    bench = growth(benchmark, sizes=(1, 4), n_rounds=1)
    lines = {line.name: line for line in bench.lines}
    assert {
        f"{who}-b{size}"
        for who in ("hf", "ort-fp32", "ort-int8", "litotes-packed")
        for size in (1, 4)
    } <= lines.keys()
    assert {f"{who}-c{benchmark.n_cores}" for who in ("ort-fp32", "ort-int8", *OWN)} <= lines.keys()
    assert set(bench.ratios(lines["hf-b4"])) == {"hf-b1"}
    assert bench.ms_of == "4 texts"


def test_a_run_is_one_document(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "n_cores", lambda: 1)
    ran: list[str] = []

    def made(name: str) -> object:
        def bench(given: object, **options: object) -> BenchResult:
            ran.append(f"{name} {options.get('sizes')}")
            return BenchResult(
                "a", (Line(name, "a", 1.0, 1.0, (1.0,)),), {"b": "lib"}, notes=("mind",)
            )

        return bench

    for name in ("classify", "growth"):
        monkeypatch.setitem(measure.MODEL_BENCHES, name, made(name))  # type: ignore[arg-type]
    monkeypatch.setitem(measure.PART_BENCHES, "entmax", made("entmax"))  # type: ignore[arg-type]
    subject, options = load_subject(encoder=str(tiny_folder)), {"growth": {"sizes": (1,)}}
    found = measure.measure(
        ("classify", "entmax", "growth"), TEXTS, subject=subject, options=options, n_rounds=1
    )
    content = json.loads(json.dumps(found.as_json()))
    assert sorted(ran) == ["classify None", "entmax None", "growth (1,)"]
    assert [line["group"] for line in content["lines"]] == ["classify", "entmax", "growth"]
    entmax = content["groups"]["entmax"]
    assert (entmax["notes"], entmax["left_out"]) == (["mind"], {"b": "lib"})
    about = content["subject"]
    assert (content["n_texts"], about["pruning"]) == (len(TEXTS), "learned")
    assert about["is_trained"] is False
    assert found.left_out["growth: b"] == "lib"
    assert str(tiny_folder) not in json.dumps(content)
