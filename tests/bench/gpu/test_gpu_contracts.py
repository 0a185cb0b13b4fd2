"""bench/gpu_contracts.py: errors by case and precision, and nothing lost to a case that fails."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

CPU = torch.device("cpu")


@pytest.fixture
def script(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(root / "bench")
    return import_module("gpu_contracts")


def test_errors_are_judged_by_their_precision_and_written_after_every_case(
    script: ModuleType,
) -> None:
    def error(case: str, device: torch.device, dtype: torch.dtype) -> float:
        if case == "broken":
            raise RuntimeError("no kernel image\nmore")
        return 5e-3 if dtype == torch.float16 else 2e-3

    written: list[Mapping[str, Any]] = []
    dtypes = ["float32", "float16"]
    by_case = (
        script.check_case(name, case, {"forward": error}, CPU, dtypes)
        for name, case in {"first": "sound", "second": "broken"}.items()
    )
    found = script.check_all(by_case, lambda one: written.append(dict(one)))
    assert [entry["is_met"] for entry in found] == [False, True, False, False]
    assert found[1] == {
        "case": "first",
        "what": "forward",
        "dtype": "float16",
        "error": 5e-3,
        "is_met": True,
    }
    assert found[2]["failed"] == "RuntimeError: no kernel image"
    assert len(written) == 2
    json.dumps(written)


def test_an_error_that_is_no_number_is_missed(script: ModuleType) -> None:
    checks = {"forward": lambda *_: float("nan")}
    (entry,) = script.check_case("nan", None, checks, CPU, ["float32"])
    assert not entry["is_met"]


def test_cases_come_in_their_order(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "check_by_name", lambda name, dtypes: [(name, *dtypes)])
    assert list(script.in_workers(["b", "a"], ["float32"], 1)) == [
        [("b", "float32")],
        [("a", "float32")],
    ]


def test_tests_are_counted(script: ModuleType) -> None:
    shown = "F.s\nFAILED x\n1 failed, 12 passed, 3 skipped in 4.00s\n"
    assert script.count_tests(shown) == {"failed": 1, "passed": 12, "skipped": 3}


def test_a_gpu_is_needed(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("sys.argv", ["gpu_contracts.py"])
    with pytest.raises(SystemExit, match="needs a CUDA device"):
        script.main()
