"""A table whose entries are imported when they are asked for."""

from __future__ import annotations

import sys

import pytest

from litotes.core.registry import LazyTable


def test_names_are_known_before_anything_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "json.tool", raising=False)
    table: LazyTable[object] = LazyTable(
        "json", {"tool": "tool.main", "decoder": "decoder.scanner"}
    )
    assert list(table) == ["tool", "decoder"]
    assert "tool" in table
    assert len(table) == 2
    assert "json.tool" not in sys.modules
    assert callable(table["tool"])
    assert "json.tool" in sys.modules


def test_entries_may_be_added_and_taken_out() -> None:
    table: LazyTable[object] = LazyTable("json", {"decoder": "decoder.scanner"})
    table["mine"] = 1
    assert list(table.values()) == [table["decoder"], 1]
    del table["mine"]
    assert "mine" not in table
    with pytest.raises(KeyError):
        table["mine"]
