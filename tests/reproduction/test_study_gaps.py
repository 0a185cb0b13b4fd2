"""reproduction/study_gaps.py: which rows are kept, and what stands in the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reproduction.study_gaps import (
    BEGIN,
    END,
    NUMBERS,
    PAPER_BEGIN,
    PAPER_END,
    PAPER_NUMBERS,
    main,
)

SCORES = {"en-AU": 0.8, "en-IN": 0.6, "en-UK": 0.75}


def row(encoder: str, trained_on: str) -> dict[str, Any]:
    gaps = [
        {
            "name": name,
            "measure": measure,
            "difference": score - 0.7 if measure == "macro_f1" else 0.5,
            "interval": [score - 0.75, score - 0.65],
            "adjusted_p": 0.0004 if name == "en-IN" else 0.2,
            "power": 0.31,
        }
        for name, score in SCORES.items()
        for measure in ("accuracy", "macro_f1")
    ]
    return {
        "table": f"{encoder}, Reddit, sarcasm",
        "row": trained_on,
        "groups": [{"name": name, "macro_f1": score} for name, score in SCORES.items()],
        "gaps": gaps,
        "spread": {"column": "variety", "worst": "en-IN", "spread": 0.2, "spread_by_chance": 0.04},
    }


@pytest.fixture
def page(tmp_path: Path) -> Path:
    file = tmp_path / "page.md"
    file.write_text(f"before\n\n{BEGIN}\nold\n{END}\n\nafter\n", "utf-8")
    return file


def write_report(folder: Path, rows: list[dict[str, Any]]) -> Path:
    file = folder / "report.json"
    file.write_text(json.dumps({"experiments": [{"gaps": rows}]}), "utf-8")
    return file


def test_published_encoders_are_kept_with_their_worst_group(page: Path) -> None:
    rows = [row("runs/mpnet", "all rows"), row("runs/adapted/mpnet", "en-AU")]
    main([str(write_report(page.parent, rows)), "--page", str(page)])
    text = page.read_text("utf-8")
    assert "adapted" not in text
    assert "old" not in text
    assert text.startswith("before")
    assert text.endswith("after\n")
    (line,) = (line for line in text.splitlines() if "`mpnet`" in line)
    assert "| Reddit sarcasm | `mpnet` | each | 0.800 | 0.600 | 0.750 | 0.200 (0.040) |" in line
    assert "en-IN −0.100 (−0.150 to −0.050) | < 0.001 | 0.31 |" in line
    assert len(json.loads((page.parent / NUMBERS).read_text("utf-8"))["rows"]) == 1


def test_twice_is_as_once(page: Path) -> None:
    report = str(write_report(page.parent, [row("minilm", "en-UK")]))
    main([report, "--page", str(page)])
    once = page.read_text("utf-8")
    main([report, "--page", str(page)])
    assert page.read_text("utf-8") == once


def test_a_page_without_a_place_for_it(page: Path) -> None:
    page.write_text("nothing", "utf-8")
    with pytest.raises(ValueError, match="The page needs"):
        main([str(write_report(page.parent, [row("minilm", "en-UK")])), "--page", str(page)])


def test_the_papers_study_has_its_own_table(page: Path) -> None:
    page.write_text(page.read_text("utf-8") + f"{PAPER_BEGIN}\n{PAPER_END}\n", "utf-8")
    own = write_report(page.parent, [row("minilm", "en-UK")])
    paper = page.parent / "paper.json"
    gaps = [row("linear", "en-AU"), row("linear", "all rows"), row("crosstalk", "en-IN")]
    gaps[0]["spread"] = gaps[0]["spread"] | {"worst": "en-UK"}
    content = {"experiments": [{"name": "Heads", "gaps": gaps}]}
    paper.write_text(json.dumps(content), "utf-8")
    main([str(own), "--paper", str(paper), "--page", str(page)])
    lines = [line for line in page.read_text("utf-8").splitlines() if line.startswith("| Heads")]
    titles = ["linear, Reddit, sarcasm", "crosstalk, Reddit, sarcasm"]
    assert [line.split(" | ")[1] for line in lines] == titles
    assert all("en-IN −0.100 (−0.150 to −0.050)" in line for line in lines)
    rows = json.loads((page.parent / PAPER_NUMBERS).read_text("utf-8"))["rows"]
    assert [one["table"] for one in rows] == titles
