"""Texts that studies of BESSTIE are tried on."""

from __future__ import annotations

from pathlib import Path

import pytest

VARIETIES = ("en-AU", "en-IN", "en-UK")
BESSTIE = "text,variety,source,task,label\n"


@pytest.fixture
def besstie(tmp_path: Path) -> Path:
    """A small corpus in the long form, both tasks, two labels."""
    folder = tmp_path / "besstie"
    folder.mkdir()
    for split, n in (("train", 8), ("valid", 4)):
        lines = BESSTIE
        for variety in VARIETIES:
            for task in ("Sentiment", "Sarcasm"):
                for number in range(n):
                    word = f"{split}{number}{variety[-2:]}{task[:3]}"
                    text = f"They were very late and {word} was a mess."
                    lines += f"{text},{variety},Reddit,{task},{number % 2}\n"
        (folder / f"{split}.csv").write_text(lines)
    return folder
