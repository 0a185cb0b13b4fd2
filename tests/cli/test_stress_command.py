"""`litotes stress`, and the rewrites in `litotes list`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from litotes.cli.main import main
from litotes.data.rewrites import REWRITES


def test_stress_prints_and_writes_its_numbers(
    trained_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "stress"
    command = ["stress", "--model", str(trained_folder), "--data", "sampler", "--texts", "4"]
    chosen = ["--only", "would-will, upper-case", "--out", str(out)]
    assert main([*command, *chosen, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {row["rewrite"] for row in printed["rows"]} == {"would-will", "upper-case"}
    assert json.loads((out / "stress.json").read_text("utf-8")) == printed
    assert (out / "stress.html").is_file()


def test_an_unknown_rewrite_is_answered_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["stress", "--data", "sampler", "--only", "init"]) == 2
    assert "Did you mean 'innit'" in capsys.readouterr().err


def test_every_rewrite_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "rewrites", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["rewrites"]
    assert set(listed) == set(REWRITES)
    assert listed["isnt-it"].startswith("eWAVE 165: ")
