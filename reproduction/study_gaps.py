"""Gaps between varieties in a study, written into docs/results/unsure.md.

    litotes study reproduction/study_encoders.toml --out runs/encoders
        --set sources.besstie=besstie:PATH
    litotes study reproduction/study_paper.toml --out runs/paper
        --set sources.besstie=besstie:PATH --set sources.twitter=twitter:PATH
        --set "sources.bicodemix=bicodemix:PATH?classes=2"
    python -m reproduction.study_gaps runs/encoders/report.json --paper runs/paper/report.json

`study` compares each group of texts with the others, row by row of its tables
(`study/group_gaps.py`). Of the encoders' study this keeps the encoders as they were published, row
by row; of the paper's study all models of a table together. What stands between the comments of the
page is written anew; docs/results/study_gaps.json and paper_gaps.json have all gaps.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from litotes.core.numbers import format_signed
from litotes.core.storage import write_json, write_text
from reproduction.paragraphs import replace_between, table_lines

PAGE = Path("docs/results/unsure.md")
NUMBERS, PAPER_NUMBERS = "study_gaps.json", "paper_gaps.json"
BEGIN, END = "<!-- study: written by reproduction/study_gaps.py -->", "<!-- /study -->"
PAPER_BEGIN, PAPER_END = "<!-- paper: written by reproduction/study_gaps.py -->", "<!-- /paper -->"
VARIETIES = ("en-AU", "en-IN", "en-UK")
ALL_ROWS = "all rows"
MACRO_F1 = "macro_f1"

SCORES_HEAD = (
    " en-AU | en-IN | en-UK | spread (by chance) | worst group, less the others | p corrected |"
    " power |"
)
HEAD = f"| platform, task | encoder | trained on |{SCORES_HEAD}"
PAPER_HEAD = f"| experiment | tested on |{SCORES_HEAD}"


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("report", type=Path)
    parser.add_argument("--paper", type=Path, metavar="REPORT")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(words)
    rows = list(rows_of(json.loads(options.report.read_text("utf-8"))))
    write_json(options.page.parent / NUMBERS, {"rows": rows})
    page = options.page.read_text("utf-8")
    page = replace_between(page, BEGIN, END, "\n".join(table(rows)))
    if options.paper is not None:
        rows = list(paper_rows(json.loads(options.paper.read_text("utf-8"))))
        write_json(options.page.parent / PAPER_NUMBERS, {"rows": rows})
        page = replace_between(page, PAPER_BEGIN, PAPER_END, "\n".join(paper_table(rows)))
    write_text(options.page, page)


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


def paper_rows(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All models of each table together."""
    for experiment in report["experiments"]:
        rows_of_table: dict[str, list[Mapping[str, Any]]] = {}
        for row in experiment["gaps"]:
            # no spread: too few texts of a class in all varieties but one
            if row["spread"] is not None and row["spread"]["column"] == "variety":
                rows_of_table.setdefault(row["table"], []).append(row)
        for title, rows in rows_of_table.items():
            # a table of one model has no row for all of them
            whole = next((row for row in rows if row["row"] == ALL_ROWS), rows[0])
            kept = {name: whole[name] for name in ("groups", "gaps", "spread")}
            yield {"experiment": experiment["name"], "table": title, **kept}


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    cells = []
    for row in rows:
        trained_on = "each" if row["trained_on"] == ALL_ROWS else row["trained_on"]
        first = (f"{row['platform']} {row['task']}", f"`{row['encoder']}`", trained_on)
        cells.append((*first, *_score_cells(row)))
    return table_lines(HEAD, cells)


def paper_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    cells = [(row["experiment"], row["table"], *_score_cells(row)) for row in rows]
    return table_lines(PAPER_HEAD, cells)


def _score_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """What each variety scores, and what is known about the worst."""
    scores = {group["name"]: group["macro_f1"] for group in row["groups"]}
    spread, worst = row["spread"], worst_gap(row)
    low, high = worst["interval"]
    return (
        *(f"{scores[name]:.3f}" for name in VARIETIES),
        f"{spread['spread']:.3f} ({spread['spread_by_chance']:.3f})",
        f"{worst['name']} {_signed(worst['difference'])} ({_signed(low)} to {_signed(high)})",
        "< 0.001" if worst["adjusted_p"] < 0.001 else f"{worst['adjusted_p']:.3f}",
        f"{worst['power']:.2f}",
    )


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
