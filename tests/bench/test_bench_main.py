"""`python -m bench` on a tiny random model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import bench.__main__ as command
from bench import limits, measure, probes
from bench.__main__ import main
from bench.gpu import groups
from bench.gpu.context import GpuBench
from bench.gpu.turns import GpuGroup
from bench.lines import BenchResult, Line
from litotes.core import machine
from litotes.data.corpus import SENTIMENT
from litotes.encoder import pretrained
from litotes.model.checkpoint import Model, save_model
from litotes.model.classifier import Classifier


@pytest.fixture(scope="module")
def dense(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    loaded = pretrained.load(str(tiny_folder))
    torch.manual_seed(0)
    classifier = Classifier(loaded.encoder, (SENTIMENT,), head="linear", dropout=0.0).eval()
    folder = tmp_path_factory.mktemp("bench") / "dense"
    save_model(Model(classifier, loaded.tokenizer, "tiny", None), folder, card="")
    return folder


@pytest.fixture(autouse=True)
def _modest(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread for torch, and a limit nobody has to wait for."""
    monkeypatch.setattr(measure, "n_cores", lambda: 1)
    monkeypatch.setattr(probes, "SHAPES", ((8, 16, 16),))
    monkeypatch.setattr(limits, "N_ROUNDS", 2)


def content_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_lines_and_machine(dense: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["classify", "--model", str(dense), "--out", str(tmp_path)]
    content = content_of(capsys, *given, "--texts", "3", "--rounds", "1")
    lines = {line["name"]: line for line in content["lines"]}
    rivals = {"hf-padded-32", "hf-1", "ort-fp32-1", "ort-int8-1"}
    assert rivals | {"litotes-dense", "litotes-pruned-int8"} <= lines.keys()
    assert all(line["ms"] > 0 and line["per_second"] > 0 for line in lines.values())
    assert content["machine"]["torch"]
    assert content["n_texts"] == 3
    assert lines["litotes-dense"]["ratios"]["ort-fp32-1"]["middle"] > 0
    assert json.loads((tmp_path / "bench.json").read_text("utf-8")) == content
    assert tuple(measure.MODEL_BENCHES) == command.MODEL_BENCHES
    assert (*measure.MODEL_BENCHES, *measure.PART_BENCHES, "gpu") == command.WHAT


def test_what_is_not_installed_is_left_out(
    dense: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert main(["classify", "--model", str(dense), "--texts", "2", "--rounds", "1"]) == 0
    captured = capsys.readouterr()
    assert "litotes-dense" in captured.out
    assert "without training: its speed is measured" in captured.out
    assert "same labels" in captured.out
    assert "classify: hf-padded-32: left out, `transformers` is not installed" in captured.err


@pytest.fixture
def fake_gpu(monkeypatch: pytest.MonkeyPatch) -> list[GpuBench]:
    """A CPU that passes for a GPU, and two groups that need neither; gives the runs asked for."""
    asked: list[GpuBench] = []

    def one(bench: GpuBench) -> GpuGroup:
        asked.append(bench)
        lines = (Line("one", "litotes-dense", 2.0, 500.0, (2.0,)),)
        return GpuGroup(BenchResult("litotes-dense", lines, {}), {}, {"litotes-dense": {"x_y": 3}})

    def two(bench: GpuBench) -> GpuGroup:
        raise RuntimeError("no kernel image")

    monkeypatch.setattr(groups, "require_gpu", lambda: torch.device("cpu"))
    monkeypatch.setattr(groups, "GROUPS", {"one": one, "two": two})
    monkeypatch.setattr(GpuBench, "as_json", lambda bench: {"n_pieces": 1})
    return asked


def test_the_gpu_bench_shows_what_it_measured_and_what_failed(
    fake_gpu: list[GpuBench], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gpu", "--out", str(tmp_path), "--csv", "7", "--model", "mine"]) == 0
    shown = capsys.readouterr()
    assert "litotes-dense" in shown.out
    assert "x y" in shown.out
    assert "two: whole group: failed: RuntimeError: no kernel image" in shown.err
    content = json.loads((tmp_path / "gpu.json").read_text("utf-8"))
    assert content["data"] == "sampler"
    assert list(content["groups"]) == ["one", "two"]
    (bench,) = fake_gpu
    assert (len(bench.texts), bench.n_rows, bench.trained) == (1024, 7, "mine")
    assert not (tmp_path / "bench.json").exists()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["classify", "--csv", "5"], "--groups, --csv and --seconds belong"),
        (["entmax", "--model", "x"], "--model and --pruned belong to classify"),
        (["gpu", "--groups", "on"], "Did you mean 'one'"),
        (["gpu", "--pruned", "x"], "--pruned belongs to classify"),
        (["gpu", "--heads", "mean"], "belong to `python -m bench train`"),
    ],
)
def test_choices_that_do_not_fit_are_refused(
    given: list[str],
    told: str,
    fake_gpu: list[GpuBench],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(given) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("has_gpu", [True, False])
def test_without_a_name_a_gpu_is_measured_where_there_is_one(
    has_gpu: bool,
    fake_gpu: list[GpuBench],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def measure_nothing(what: object, texts: list[str], **_: object) -> measure.BenchReport:
        assert "gpu" not in what  # type: ignore[operator]
        return measure.BenchReport({}, len(texts), {}, {})

    monkeypatch.setattr(measure, "measure", measure_nothing)
    monkeypatch.setattr(machine, "is_cpu", lambda name: not has_gpu)
    monkeypatch.setattr(command, "_load_subject", lambda options: None)
    content = content_of(capsys, "--texts", "2")
    assert ("gpu" in content) == has_gpu == bool(fake_gpu)
