"""bench/frontier.py: what it says of lines that have been timed and of answers that were given."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litotes.bench.lines import BenchResult, Line

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def frontier(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    for name in ("frontier", "frontier_figure"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import frontier

    monkeypatch.setattr(frontier, "N_RESAMPLES", 200)
    return frontier


def line(name: str, ms: float, *against: str) -> Line:
    rounds = tuple(ms * factor for factor in (0.9, 1.0, 1.1))
    return Line("toy", name, ms, 100 / ms * 1000, rounds, against=against)


GOLD = ["good", "bad"] * 50
WORSE = ["bad", *GOLD[1:]]


def answers(labels: list[str], **layers: int) -> dict[str, Any]:
    return {"labels": labels, "layers": layers}


def measured(frontier: Any) -> list[dict[str, Any]]:
    rival = frontier.RIVAL
    lines = (
        line(rival, 40.0),
        line("dense torch", 80.0, rival),
        line("pruned-all-2 onnx", 10.0, rival),
    )
    given = {
        "gold": GOLD,
        rival: answers(GOLD),
        "dense torch": answers(GOLD, **{"None": 100}),
        "pruned-all-2 onnx": answers(WORSE, **{"0": 25, "6": 75}),
    }
    rows: list[dict[str, Any]] = frontier._rows(BenchResult(rival, lines, {}), given)
    return rows


def test_a_row_has_its_ratio_its_loss_and_where_texts_left(frontier: Any) -> None:
    rival, dense, pruned = measured(frontier)
    assert rival["ratio"] is None
    assert dense["ratio"]["middle"] == pytest.approx(0.5)
    assert pruned["ratio"]["middle"] == pytest.approx(4)
    assert dense["loss"] == {"points": 0.0, "interval": [0.0, 0.0]}
    # one of 100 is wrong: F1 of good 98/99, of bad 100/101
    assert pruned["loss"]["points"] == pytest.approx(100 * (1 - (98 / 99 + 100 / 101) / 2))
    low, high = pruned["loss"]["interval"]
    assert low <= pruned["loss"]["points"] <= high
    assert high > 0
    assert pruned["differ"] == pytest.approx(0.01)
    assert pruned["layers"] == {"0": 0.25, "6": 0.75}
    assert dense["layers"] == {}


def test_the_figure_names_every_line(frontier: Any) -> None:
    result = {"corpora": {"toy": {"lines": measured(frontier)}}}
    drawn = frontier.draw_frontier(result).decode()
    for words in ("pruned, both, 2 %, int8", "dense, as it is, torch", "ONNX Runtime int8", "toy"):
        assert words in drawn
    assert frontier.draw_frontier(result).decode() == drawn


def test_texts_are_divided_by_themselves(
    frontier: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    splits = ["test" if number % 5 == 0 else "train" for number in range(200)]
    rows = [f"a text {number},{number % 2},{split}" for number, split in enumerate(splits)]
    rows.insert(0, "text,label,split")
    (tmp_path / "toy.csv").write_text("\n".join(rows))
    source = "table:{}/toy.csv?label.sentiment=label&split=split"
    monkeypatch.setattr(frontier, "CORPORA", {"toy": (source, 30)})
    frontier.write_texts(tmp_path / "out", str(tmp_path))
    parts = {}
    for part in ("train", "exits"):
        with (tmp_path / "out" / f"toy-{part}.csv").open(newline="") as file:
            parts[part] = list(csv.DictReader(file))
    assert len(parts["exits"]) == 200
    test = [row for row in parts["train"] if row["split"] == "test"]
    assert len(test) == 40
    n_kept = 200 - len(parts["train"])
    assert np.isclose(n_kept / 160, 0.3, atol=0.12)
    known = {tuple(row.values()) for row in parts["exits"]}
    assert all(tuple(row.values()) in known for row in parts["train"])
