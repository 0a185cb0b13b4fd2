"""A record of bench/trials/load.py has the form of docs/results/performance/service.json."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest


def test_a_record_has_the_form_of_the_published_results(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(root / "bench" / "trials")
    record = import_module("load").Record()
    assert record.as_json(1.0)["memory_mb"] is None
    for status in (200, 200, 429):
        record.add(status, 10.0)
    record.memory += [5_000_000, 9_000_000, 7_000_000]
    made = record.as_json(2.0)
    published = json.loads((root / "docs/results/performance/service.json").read_text("utf-8"))[
        "at_capacity"
    ]
    assert made.keys() == published.keys()
    assert made["memory_mb"] == {"first": 5, "largest": 9, "last": 7}
    assert made["answers"] == {"200": 2, "429": 1}
