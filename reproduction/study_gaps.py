"""Gaps between varieties in a study, written into docs/results/unsure.md.

    litotes study reproduction/study_encoders.toml --out runs/encoders
        --set sources.besstie=besstie:PATH
    python -m reproduction.study_gaps runs/encoders/report.json

`study` compares each group of texts with the others, row by row of its tables
(`study/group_gaps.py`); this keeps the rows of encoders as they were published. The section between
the two comments is written anew; docs/results/study_gaps.json has all gaps.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from litotes.core.numbers import format_signed
from litotes.core.storage import write_json, write_text
from reproduction.paragraphs import replace_between

PAGE = Path("docs/results/unsure.md")
NUMBERS = "study_gaps.json"
BEGIN, END = "<!-- study: written by reproduction/study_gaps.py -->", "<!-- /study -->"
VARIETIES = ("en-AU", "en-IN", "en-UK")
ALL_ROWS = "all rows"
MACRO_F1 = "macro_f1"

HEAD = (
    "| platform, task | encoder | trained on | en-AU | en-IN | en-UK | spread (by chance) | worst"
    " group, less the others | p corrected | power |"
)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("report", type=Path)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(words)
    rows = list(rows_of(json.loads(options.report.read_text("utf-8"))))
    write_json(options.page.parent / NUMBERS, {"rows": rows})
    page = options.page.read_text("utf-8")
    write_text(options.page, replace_between(page, BEGIN, END, "\n".join(table(rows))))


def rows_of(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of each experiment's tables that tell varieties apart. An encoder that was trained
    further is a folder, whose name says so.
    """
    for experiment in report["experiments"]:
        for row in experiment["gaps"]:
            encoder, platform, task = row["table"].split(", ")
            if "adapted" in encoder or row["spread"]["column"] != "variety":
                continue
            yield {
                "platform": platform,
                "task": task,
                "encoder": Path(encoder).name,
                "trained_on": row["row"],
                **{name: row[name] for name in ("groups", "gaps", "spread")},
            }


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [HEAD, "|" + "---|" * (HEAD.count("|") - 1)]
    for row in rows:
        scores = {group["name"]: group["macro_f1"] for group in row["groups"]}
        spread, worst = row["spread"], worst_gap(row)
        low, high = worst["interval"]
        cells = (
            f"{row['platform']} {row['task']}",
            f"`{row['encoder']}`",
            "each" if row["trained_on"] == ALL_ROWS else row["trained_on"],
            *(f"{scores[name]:.3f}" for name in VARIETIES),
            f"{spread['spread']:.3f} ({spread['spread_by_chance']:.3f})",
            f"{worst['name']} {_signed(worst['difference'])} ({_signed(low)} to {_signed(high)})",
            "< 0.001" if worst["adjusted_p"] < 0.001 else f"{worst['adjusted_p']:.3f}",
            f"{worst['power']:.2f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def worst_gap(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The gap in macro-F1 between the group of the lowest score and the others."""
    worst = row["spread"]["worst"]
    own = (gap for gap in row["gaps"] if (gap["name"], gap["measure"]) == (worst, MACRO_F1))
    found: Mapping[str, Any] = next(own)
    return found


def _signed(value: float) -> str:
    return format_signed(value, 3, minus="−")


if __name__ == "__main__":
    main()
