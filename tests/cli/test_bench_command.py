"""`litotes bench` as a user meets it, on a tiny random model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from litotes.cli.main import main


@pytest.mark.slow
def test_every_way_of_answering_is_timed_side_by_side(
    trained_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["bench", "--model", str(trained_folder), "--texts", "4", "--rounds", "2"]
    assert main([*given, "--json", "--out", str(tmp_path)]) == 0
    content = json.loads(capsys.readouterr().out)
    lines = {line["name"]: line for line in content["lines"]}
    assert {"transformers", "dense", "onnx"} <= lines.keys()
    assert lines["dense"]["same_labels"] == 1.0
    assert lines[content["baseline"]]["ratio"] == pytest.approx(1.0)
    assert all(
        line["texts_per_second_low"] <= line["texts_per_second"] <= line["texts_per_second_high"]
        and line["ms"] <= line["ms_p99"]
        for line in lines.values()
    )
    assert content["n_texts"] == 4
    assert json.loads((tmp_path / "bench.json").read_text("utf-8")) == content
    assert (tmp_path / "bench.svg").is_file()


def test_what_is_not_installed_is_left_out_and_said(
    trained_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert main(["bench", "--model", str(trained_folder), "--texts", "2", "--rounds", "1"]) == 0
    captured = capsys.readouterr()
    assert "dense" in captured.out
    assert "transformers: left out" in captured.err
