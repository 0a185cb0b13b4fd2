"""Where the chapters of the tour are, in their order."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
TOUR = ROOT / "docs" / "tour"
CONTENTS = TOUR / "README.md"
FIGURES = TOUR / "figures"


def chapter_files() -> list[Path]:
    """The chapters, which begin with their number."""
    return sorted(TOUR.glob("[0-9][0-9]-*.md"))
