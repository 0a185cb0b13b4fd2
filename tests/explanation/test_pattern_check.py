"""The check against the eye (docs/results/effective_attention): what its file holds, and that the
shipped network still says what stands there.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from litotes.explanation.analyses.patterns import CLASSES, classify


@pytest.fixture
def check(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(root / "bench")
    return import_module("pattern_check")


@pytest.fixture(scope="module")
def content(root: Path) -> dict[str, Any]:
    file = root / "docs" / "results" / "effective_attention" / "pattern_check.json"
    return json.loads(file.read_text("utf-8"))


def test_labels_are_classes_and_coordinates_hold_no_text(content: dict[str, Any]) -> None:
    for row in content["maps"]:
        assert {row["eye"], row["rules"], row["network"]} <= set(CLASSES)
        assert isinstance(row["text"], int)
        assert all(len(value) < 20 for value in row.values() if isinstance(value, str))


@pytest.mark.parametrize("pair", ["eye/rules", "eye/network", "rules/network"])
def test_kappa_is_that_of_scikit_learn(
    pair: str, content: dict[str, Any], check: ModuleType
) -> None:
    one, other = pair.split("/")
    rows = [row for row in content["maps"] if row["sample"] == "judged"]
    stated = content["agreement"]["judged"][pair]
    assert stated["kappa"] == pytest.approx(
        cohen_kappa_score([row[one] for row in rows], [row[other] for row in rows]), abs=1e-3
    )
    assert stated["kappa_interval"][0] < stated["kappa"] < stated["kappa_interval"][1]


def test_kappa_of_those_who_always_agree(check: ModuleType) -> None:
    assert check.kappa(np.diag([3, 0, 2])) == 1
    assert check.kappa(np.diag([3, 0, 0])) == 1


@pytest.mark.slow
def test_the_network_still_says_what_stands_there(
    content: dict[str, Any], check: ModuleType, shared_data: Path
) -> None:
    maps = check.Maps(shared_data)
    rows = [row for row in content["maps"] if row["sample"] == "judged"]
    assert [check.where(row) for row in rows] == maps.sample("judged")
    sure = [row for row in rows if row["probability"] > 0.6][::10]
    assert [classify(maps.at(check.where(row))[0][None]).labels[0] for row in sure] == [
        row["network"] for row in sure
    ]
