"""The authors' schedule put on trained models: runs to their summary, and means paired by seed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reproduction import pruned_afterwards
from reproduction.pruned_afterwards import DENSE, STUDY, VARIANTS, main, summarize
from reproduction.variety_jobs import VARIETIES

TINY = """
name = "Tiny"
seeds = 2
[sources]
besstie = "none"
[recipe.data]
source = "besstie"
tasks = ["sentiment"]
[recipe.training]
epochs = 1
held_out = 0.3
[[experiment]]
name = "Reddit sentiment, dense"
grid = { "data.where.variety" = ["en-AU", "en-UK"] }
test = [{ where = { source = "Reddit" } }]
[[experiment]]
name = "Reddit sentiment, fused"
set = { "model.pruning" = "cascade" }
grid = { "data.where.variety" = ["en-AU", "en-UK"] }
test = [{ where = { source = "Reddit" } }]
"""


def test_every_dense_run_is_pruned_and_its_scores_are_kept(
    besstie: Path, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, out = tmp_path / "tiny.toml", tmp_path / "out"
    study.write_text(TINY)
    monkeypatch.setattr(pruned_afterwards, "STUDY", study)
    words = [str(out), "--epochs", "1", "--device", "cpu"]
    words += ["--set", f"sources.besstie=besstie:{besstie}"]
    words += ["--set", f"recipe.model.encoder={tiny_folder}"]
    main(words)
    files = sorted((out / "runs").glob("*.json"))
    assert len(files) == 4
    assert {path.suffix for path in (out / "runs").iterdir()} == {".json"}  # no weights stay
    for file in files:
        scores = json.loads(file.read_text())["scores"]
        assert set(scores) == {DENSE, *VARIANTS}
        assert set(scores[DENSE]) == {f"{variety} Reddit" for variety in VARIETIES}
    (row,) = json.loads((out / "summary.json").read_text())
    assert (row["experiment"], row["tested_on"]) == ("Reddit sentiment", "Reddit")
    assert all(len(values) == 2 for values in row["by_seed"].values())
    before = files[0].stat().st_mtime_ns
    main(words)
    assert files[0].stat().st_mtime_ns == before  # what is there is not run again


def test_differences_are_paired_by_seed() -> None:
    def row(seed: int, trained_on: str, dense: float, less: float) -> dict[str, Any]:
        scores = {DENSE: {"en-AU Google": dense, "en-UK Google": dense + 0.1}}
        for name in VARIANTS:
            scores[name] = {cell: value - less for cell, value in scores[DENSE].items()}
        experiment = {"experiment": "Google sentiment", "seed": seed, "trained_on": trained_on}
        return {**experiment, "scores": scores}

    rows = [row(seed, "en-AU", 0.5 + seed / 10, 0.01) for seed in range(3)]
    rows += [row(seed, "en-UK", 0.7 - seed / 10, 0.03) for seed in range(3)]
    (found,) = summarize(rows)
    assert found["by_seed"][DENSE] == pytest.approx([0.65] * 3)
    for name in VARIANTS:
        assert found["less_dense"][name]["points"] == pytest.approx(-2)
        assert found["less_dense"][name]["interval"] == pytest.approx([-2, -2])


def test_the_study_of_twelve_layers_has_dense_runs_for_every_figure() -> None:
    names = [name for name in STUDY.read_text().split("\n") if name.endswith(f', {DENSE}"')]
    assert len(names) == 6
