"""`bench/trials/bit_flips.py` in small: no flipped bit changes an answer without a word."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from litotes.core.storage import sha256_of
from litotes.model.folder import Manifest

pytestmark = pytest.mark.slow


@pytest.fixture
def script(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(root / "bench" / "trials")
    return import_module("bit_flips")


def test_flips_are_refused_or_change_nothing(script: ModuleType, tmp_path: Path) -> None:
    subjects = list(script.tiny_subjects(tmp_path))
    before = {file: sha256_of(file) for subject in subjects for file in subject.files()}
    counts, failures = script.flip_bits(subjects, 24)
    assert failures == []
    assert sum(counts.values()) == 24
    for subject in subjects:
        assert counts[subject.name, script.REFUSED] > 0
    assert {file: sha256_of(file) for file in before} == before


def test_an_answer_that_changes_is_noticed(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no hash is compared, which is what the trial is there to find."""
    subject = next(script.tiny_subjects(tmp_path))
    expected, file = subject.ask(), subject.folder / "litotes.json"
    monkeypatch.setattr(Manifest, "check", lambda *_: None)
    place = file.read_text().index('"temperature": 1.7') + len('"temperature": ')
    outcome, _ = script._ask_with_flip(subject, file, 8 * place + 1, expected)  # 1.7 → 3.7
    assert outcome == script.OTHER
