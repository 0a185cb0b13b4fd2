"""reproduction/sarcasm_readings.py: what readers found, by text."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest

from litotes.core.values import Example
from litotes.data.corpus import text_key
from reproduction import sarcasm_readings
from reproduction.sarcasm_readings import FILES, FOLDER, PLAIN, _readings, reading_of

LEVELS = {0.1, 0.3, 0.5, 0.7, 0.9, 0.98}


@pytest.mark.parametrize("name", sorted(set(FILES.values())))
def test_every_row_names_a_text_and_a_level(name: str) -> None:
    found = _readings(name)
    assert all(re.fullmatch(r"[0-9a-f]{10}", key) for key in found)
    assert set(found.values()) == LEVELS


def test_a_text_is_found_however_it_is_cased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = sha256(text_key("Oh good, rain.").encode()).hexdigest()[:10]
    (tmp_path / "vader.csv").write_text(f"text,percent\n{key},70\n")
    monkeypatch.setattr(sarcasm_readings, "FOLDER", tmp_path)
    _readings.cache_clear()
    try:
        assert reading_of(Example("oh GOOD, rain.", {}, source="tweets")) == 0.7
        assert reading_of(Example("It rains.", {}, source="tweets")) == PLAIN
        assert reading_of(Example("Oh good, rain.", {}, source="Reddit")) is None
    finally:
        _readings.cache_clear()


def test_the_readme_names_the_levels_there_are() -> None:
    told = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(str(round(100 * level)) in told for level in (PLAIN, *LEVELS))
