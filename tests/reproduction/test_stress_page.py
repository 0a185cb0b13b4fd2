"""reproduction/stress_page.py: which rows are shown, and what stands in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reproduction.stress_page import BEGIN, END, PAGE, main, tables


def estimate(value: float, **more: float) -> dict[str, Any]:
    return {"value": value, "interval": [value - 0.02, value + 0.02], **more}


def row(rewrite: str, task: str, *, n: int, flips: float, tested: bool = True) -> dict[str, Any]:
    control: dict[str, Any] = {"n": n, "flips": estimate(0.05), "change": estimate(-0.01)}
    control["flip_difference"] = estimate(0.1, p=0.03, adjusted_p=0.6) if tested else None
    control["change_difference"] = estimate(-0.04, p=0.00012, adjusted_p=0.04) if tested else None
    start = {"rewrite": rewrite, "task": task, "cell": "all", "n": n}
    return start | {"flips": estimate(flips), "change": estimate(-0.05), "control": control}


@pytest.fixture
def found(tmp_path: Path) -> Path:
    folder = tmp_path / "found"
    folder.mkdir()
    rows = [
        row("few", "sentiment", n=5, flips=0.9, tested=False),
        row("mild", "sentiment", n=40, flips=0.02),
        row("isnt-it", "sentiment", n=100, flips=0.15),
        row("isnt-it", "sentiment", n=50, flips=0.15) | {"cell": "en-IN Reddit"},
        row("emoji", "sarcasm", n=100, flips=0.1) | {"control": None},
        row("isnt-it", "sarcasm", n=100, flips=0.07),
    ]
    variety = {"variety": "en-IN", "task": "sentiment", "n_rewrites": 45, "n": 2460}
    varieties = [variety | {"flips": estimate(0.027), "difference": estimate(-0.008)}]
    content = {"rows": rows, "varieties": varieties, "examples": {"few": ["a whole text"]}}
    (folder / "stress.json").write_text(json.dumps(content), "utf-8")
    (folder / "stress.svg").write_text("<svg/>", "utf-8")
    return folder


def test_tables_stand_between_the_comments(found: Path, tmp_path: Path) -> None:
    page = tmp_path / "stress.md"
    (tmp_path / "stress").mkdir()
    page.write_text(f"# Above\n\n{BEGIN}\nold\n{END}\n\nbelow\n", "utf-8")
    main([str(found), "--page", str(page)])
    text = page.read_text("utf-8")
    assert text.startswith("# Above")
    assert text.endswith("below\n")
    assert "old" not in text
    assert "| `few` |" not in text, "too few texts to say anything"
    assert text.index("| `isnt-it` |") < text.index("| `mild` |"), "most flips first"
    assert "2 had the 20 texts" in text
    assert "Over these 8.5 % of answers flip, 5.0 % under the controls" in " ".join(text.split())
    assert "-4.0 (-6.0 to -2.0) | 0.00012 | 0.040 |" in text
    assert "| `emoji` | 100 | 10.0 (8.0 to 12.0) | – | – | -5.0 | – | – | – |" in text
    assert "| sentiment | en-IN | 45 | 2,460 | 2.7 (0.7 to 4.7) | -0.8 (-2.8 to +1.2) |" in text
    kept = json.loads((tmp_path / "stress" / "builtin.json").read_text("utf-8"))
    assert "examples" not in kept
    assert (tmp_path / "stress" / "builtin.svg").read_text("utf-8") == "<svg/>"


def test_the_page_is_what_its_numbers_say() -> None:
    content = json.loads((PAGE.with_suffix("") / "builtin.json").read_text("utf-8"))
    text = PAGE.read_text("utf-8")
    assert text[text.index(BEGIN) + len(BEGIN) + 1 : text.index(END)] == "\n".join(
        [*tables(content), ""]
    )
