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


def test_tests_are_counted(script: ModuleType) -> None:
    shown = "F.s\nFAILED x\n1 failed, 12 passed, 3 skipped in 4.00s\n"
    assert script.count_tests(shown) == {"failed": 1, "passed": 12, "skipped": 3}
