"""The record of an unfinished output: read back only for a run that is made from the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from litotes.core.errors import UserError
from litotes.prediction.table_jobs import read_record, write_record

MADE_FROM = {"input": [["a.csv", 10, 1], ["b.csv", 20, 2]], "format": "csv", "model": ["m"]}


def n_rows(record: Mapping[str, Any]) -> int:
    return int(record["n_rows"])


def test_progress_comes_back(tmp_path: Path) -> None:
    write_record(tmp_path / "state.json", MADE_FROM, n_rows=7, n_bytes=300)
    assert list(json.loads((tmp_path / "state.json").read_text())) == [
        "made_from",
        "n_rows",
        "n_bytes",
        "sha256",
    ]
    assert read_record(tmp_path / "state.json", MADE_FROM, n_rows) == 7


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": "jsonl"}, "which had another format. Delete it"),
        ({"format": "jsonl", "model": []}, "another format and another model. Delete it"),
        ({"input": [["a.csv", 10, 1]]}, r"another input \(b\.csv has changed, come or gone\)"),
        ({"input": [["a.csv", 11, 1], ["b.csv", 20, 2]]}, r"another input \(a\.csv has changed"),
        ({"input": [["b.csv", 20, 2], ["a.csv", 10, 1]]}, r"another input \(b\.csv has changed"),
        ({"columns": ["text"]}, "another columns"),
    ],
)
def test_another_run_is_not_resumed(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    write_record(tmp_path / "state.json", MADE_FROM, n_rows=7)
    with pytest.raises(UserError, match=sentence):
        read_record(tmp_path / "state.json", {**MADE_FROM, **change}, n_rows)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "5", "{}", '{"made_from": 5}', "[" * 100_000],
)
def test_a_damaged_record_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "state.json").write_text(content)
    with pytest.raises(UserError, match="damaged"):
        read_record(tmp_path / "state.json", MADE_FROM, n_rows)


@pytest.mark.parametrize("progress", [{}, {"n_rows": "many"}, {"n_rows": None}])
def test_damaged_progress_is_refused(tmp_path: Path, progress: dict[str, Any]) -> None:
    write_record(tmp_path / "state.json", MADE_FROM, **progress)
    with pytest.raises(UserError, match=r"state\.json is damaged .* to begin anew"):
        read_record(tmp_path / "state.json", MADE_FROM, n_rows)
