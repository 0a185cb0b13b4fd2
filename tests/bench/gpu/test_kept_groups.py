"""Figures of groups measured one by one stand in one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.gpu.kept import add_groups
from litotes.core.errors import UserError


def measured(group: str, ms: float, **others: Any) -> dict[str, Any]:
    return {
        "data": "sampler",
        "n_texts": 4,
        "subject": {"encoder": "tiny"},
        "machine": {"gpu": "one", "load_average": [ms]},
        "groups": {group: {"failed": {}}},
        "lines": [{"group": group, "name": "dense", "ms": ms}],
    } | others


def test_a_later_group_joins_the_earlier_ones(tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    add_groups(file, measured("classify", 1.0))
    add_groups(file, measured("training", 2.0))
    content = json.loads(file.read_text("utf-8"))
    assert list(content["groups"]) == ["classify", "training"]
    assert [line["ms"] for line in content["lines"]] == [1.0, 2.0]


def test_a_group_measured_again_replaces_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    add_groups(file, measured("classify", 1.0))
    add_groups(file, measured("classify", 3.0))
    lines = json.loads(file.read_text("utf-8"))["lines"]
    assert [line["ms"] for line in lines] == [3.0]


def test_a_group_measured_again_is_of_no_earlier_run(tmp_path: Path) -> None:
    file = tmp_path / "gpu.json"
    before = measured("classify", 1.0) | {"earlier": ["classify", "training"]}
    file.write_text(json.dumps(before), encoding="utf-8")
    add_groups(file, measured("classify", 3.0))
    assert json.loads(file.read_text("utf-8"))["earlier"] == ["training"]


@pytest.mark.parametrize("other", [{"machine": {"gpu": "two"}}, {"n_texts": 5}, {"data": "else"}])
def test_figures_of_another_machine_or_texts_are_not_mixed_in(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    file = tmp_path / "gpu.json"
    add_groups(file, measured("classify", 1.0))
    with pytest.raises(UserError, match="another"):
        add_groups(file, measured("training", 2.0, **other))
    assert list(json.loads(file.read_text("utf-8"))["groups"]) == ["classify"]
