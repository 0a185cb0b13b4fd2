"""A few of the mutations that `bench/trials/mutations.py` runs by the thousand."""

from __future__ import annotations

import random
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def mutations(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("pyarrow")
    monkeypatch.syspath_prepend(root / "bench" / "trials")
    return import_module("mutations")


@pytest.mark.slow
def test_damaged_files_end_in_a_sentence(mutations: ModuleType, tmp_path: Path) -> None:
    world = mutations.make_world(tmp_path)
    numbers = range(2 * len(mutations.CASES))
    outcomes = [mutations.run_case(world, number, seed=11) for number in numbers]
    assert [(one.number, one.fault) for one in outcomes if one.fault] == []
    # not everything is refused, and not everything gets through
    assert {one.code for one in outcomes} >= {0, 2}


@pytest.mark.parametrize(
    ("code", "out", "err"),
    [
        (1, "", "litotes: no.\n"),
        (2, "", ""),
        (2, "", "litotes: no tea\n"),
        (0, "tea \x1b[31m\n", ""),
        (0, "", "\u202etea\n"),
        (0, "[NaN]\n", ""),
        (2, "", "litotes: 1 of 2 parts failed. TypeError: tea.\n"),
    ],
)
def test_faults_are_seen(mutations: ModuleType, code: int, out: str, err: str) -> None:
    assert mutations._fault(code, out, err, is_json=True) is not None
    assert mutations._fault(0, "[1]\n", "", is_json=True) is None
    assert mutations._fault(2, "", "litotes: no tea. Buy some.\n", is_json=True) is None


def test_a_mutation_depends_on_its_number_alone(mutations: ModuleType) -> None:
    content = b'{"made_from": {"a": [1, 2]}, "n_rows": 4}'
    for number in range(50):
        first, second = (
            mutations.damage_json_or_bytes(random.Random(number), content) for _ in range(2)
        )
        assert first == second
