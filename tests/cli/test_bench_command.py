"""`litotes bench` as a user meets it, on a tiny random model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from litotes.bench import MODEL_BENCHES, PART_BENCHES, limits, measure
from litotes.cli import bench as command
from litotes.cli.main import main
from litotes.data.tasks import SENTIMENT
from litotes.encoders import pretrained
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
    monkeypatch.setattr(limits, "SIZE", 32)


def content_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["bench", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_bench_can_be_asked_for() -> None:
    assert tuple(MODEL_BENCHES) == command.MODEL_BENCHES
    assert (*MODEL_BENCHES, *PART_BENCHES) == command.WHAT


@pytest.mark.slow
def test_lines_and_machine(dense: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = content_of(
        capsys,
        "classify",
        "--model",
        str(dense),
        "--texts",
        "3",
        "--rounds",
        "1",
        "--out",
        str(tmp_path),
    )
    lines = {line["name"]: line for line in content["lines"]}
    assert {
        "hf-padded-32",
        "hf-1",
        "ort-fp32-1",
        "ort-int8-1",
        "litotes-dense",
        "litotes-pruned-int8",
    } <= lines.keys()
    assert all(
        line["group"] == "classify" and line["ms"] > 0 and line["per_second"] > 0
        for line in lines.values()
    )
    assert content["machine"]["torch"]
    assert content["n_texts"] == 3
    assert lines["litotes-dense"]["ratios"]["ort-fp32-1"]["middle"] > 0
    assert json.loads((tmp_path / "bench.json").read_text("utf-8")) == content


@pytest.mark.slow
def test_the_table_says_what_is_not_claimed(
    dense: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "classify", "--model", str(dense), "--texts", "2", "--rounds", "1"]) == 0
    shown = capsys.readouterr().out
    assert "without training: its speed is measured" in shown
    assert "× ort-int8-1-workers" in shown
    assert "same labels" in shown


def test_what_is_not_installed_is_left_out(
    dense: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert main(["bench", "classify", "--model", str(dense), "--texts", "2", "--rounds", "1"]) == 0
    captured = capsys.readouterr()
    assert "litotes-dense" in captured.out
    assert "classify: hf-padded-32: left out, `transformers` is not installed" in captured.err


def test_models_belong_to_contests(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "entmax", "--model", "somewhere"]) == 2
    assert "--model and --pruned belong to classify" in capsys.readouterr().err
