"""The page of learned α: read from a study and from what `litotes analyze` saw of its models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reproduction.alpha_page import main

RUNS: dict[str, tuple[str, dict[str, float]]] = {
    "a": ("softmax", {}),
    "b": ("entmax", {}),
    "c": ("entmax", {"start": 1.5}),
    "d": ("entmax", {"start": 1.5}),
}


def write(file: Path, content: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content), "utf-8")


def test_numbers_of_a_start_are_gathered_over_seeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, look, out = tmp_path / "study", tmp_path / "look", tmp_path / "out"
    for place, (name, (weighting, options)) in enumerate(RUNS.items()):
        model = {"weighting": weighting, "weighting_options": options}
        write(study / "runs" / name / "facts.json", {"recipe": {"model": model}})
        seen = {"density": [[0.5, 0.3]], "divergence": [0.7], "alpha": [[1.1 + place, 1.3 + place]]}
        write(look / name / "diversity.json", seen)
    cells = [{"trained_on": row, "by_seed": [0.8, 0.9]} for row in ("softmax", "entmax", "1.5")]
    write(study / "report.json", {"experiments": [{"tables": [{"cells": cells}]}]})
    main([str(study), str(look), "--out", str(out)])
    found = json.loads((out / "learned_alpha.json").read_text("utf-8"))["weightings"]
    assert list(found) == ["1.5-entmax", "learned, from 1.5", "softmax"]
    assert found["learned, from 1.5"]["alpha"] == [[3.1, 3.3, 4.1, 4.3]]
    assert found["softmax"]["alpha"] == [[]]
    assert (out / "learned_alpha.svg").read_bytes().lstrip().startswith(b"<?xml")
    printed = capsys.readouterr().out
    assert "| learned, from 1.5 | 0.850 | 0.800, 0.900 | 0.40 | 0.70 |" in printed
    assert "| 1 | 3.70 (3.10–4.30), 0.40 |" in printed
