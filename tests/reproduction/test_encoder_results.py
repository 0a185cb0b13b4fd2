"""The page about stronger encoders says what its runs say."""

import json
import re
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

RESULTS = Path(__file__).parents[2] / "docs" / "results"
PAGE = (RESULTS / "encoders.md").read_text(encoding="utf-8")
RUNS: list[dict[str, Any]] = json.loads((RESULTS / "encoders.json").read_text())["runs"]


def mean_f1(kind: str, variant: str, cell: str) -> float:
    source, task = cell.split()
    scores = [
        mean(run["macro_f1"].values())
        for run in RUNS
        if (run["set"], run["variant"]) == (kind, variant)
        and (run["source"], run["task"]) == (source, task)
    ]
    return mean(scores)


def numbers_of(row: str) -> list[float]:
    """The figures of a table's row; of a span like .557 – .563 none."""
    return [float(number) for number in re.findall(r"(?<![–\d])\.\d{3}(?! –)", row)]


@pytest.mark.parametrize("cell", ["Google sentiment", "Reddit sentiment", "Reddit sarcasm"])
def test_means_are_those_of_the_runs(cell: str) -> None:
    nine, together = re.findall(rf"^\| {cell} \|.*$", PAGE, re.MULTILINE)
    variants = ["minilm", "adapted minilm", "mpnet", "adapted mpnet"]
    if cell == "Reddit sarcasm":  # of mpnet only the earlier set is whole
        expected = [mean_f1("nine", name, cell) for name in variants[:2]]
        expected.append(mean_f1("cells", "mpnet", cell))
    else:
        expected = [mean_f1("nine", name, cell) for name in variants]
    assert numbers_of(nine)[1 : 1 + len(expected)] == pytest.approx(expected, abs=0.0006)
    variants = ["minilm", "half an answer", "0.9 of an answer", "three layers", "mpnet"]
    expected = [mean_f1("together", name, cell) for name in variants]
    assert numbers_of(together) == pytest.approx(expected, abs=0.0006)
