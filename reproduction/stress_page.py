"""Writes what `litotes stress` found about the built-in model into docs/results/stress.md.

    litotes stress --data besstie:PATH --texts 100 --out runs/stress
    python -m reproduction.stress_page runs/stress

The tables between the two comments are written anew; JSON, without the examples, and figure lie
beside the others. What the tables mean is said by hand above them.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from litotes.core.numbers import format_signed
from litotes.core.storage import write_json, write_text
from litotes.evaluation.stress.measure import FEWEST
from reproduction.paragraphs import (
    paragraph,
    replace_between,
    signed_interval,
    table_lines,
)

PAGE = Path("docs/results/stress.md")
BEGIN, END = "<!-- built-in: written by reproduction/stress_page.py -->", "<!-- /built-in -->"
TASKS = ("sentiment", "sarcasm")
N_SHOWN = 12
HEAD = (
    "| rewrite | texts | flips, % (95 %) | control, % | difference, points | probability, points |"
    " less control | p | p corrected |"
)
VARIETY_HEAD = "| task | common in | rules | texts | flips, % | less control, points |"
Row = Mapping[str, Any]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(words)
    content = json.loads((options.folder / "stress.json").read_text("utf-8"))
    content.pop("examples", None)  # whole texts of the corpus
    beside = options.page.with_suffix("")
    write_json(beside / "builtin.json", content)
    shutil.copyfile(options.folder / "stress.svg", beside / "builtin.svg")
    page = options.page.read_text("utf-8")
    write_text(options.page, replace_between(page, BEGIN, END, "\n".join(tables(content))))


def tables(content: Mapping[str, Any]) -> Iterator[str]:
    whole = [row for row in content["rows"] if row["cell"] == "all"]
    for task in TASKS:
        rows = [row for row in whole if row["task"] == task]
        yield from ("", f"## {task.capitalize()}", "", paragraph(_overview(rows)), "")
        enough = [row for row in rows if row["n"] >= FEWEST]
        enough.sort(key=lambda row: -row["flips"]["value"])
        yield from table_lines(HEAD, map(_cells, enough[:N_SHOWN]))
        yield from ("", "The twelve with the most flips; p is that of the probability.")
    yield from ("", "## Features by the variety they are common in", "")
    yield (
        "Features that eWAVE marks A or B, pooled over rules and texts; intervals draw whole texts."
    )
    yield from ("", *table_lines(VARIETY_HEAD, map(_variety_cells, content["varieties"])), "")


def _overview(rows: Sequence[Row]) -> str:
    tested = [row for row in rows if _is_tested(row)]
    flips = 100 * mean(row["flips"]["value"] for row in tested)
    control = 100 * mean(row["control"]["flips"]["value"] for row in tested)
    return (
        f"{len(rows)} rewrites found a text, {len(tested)} had the {FEWEST} texts with a"
        f" control that a test needs. Over these {flips:.1f} % of answers flip, {control:.1f} %"
        " under the controls (means over rules)."
    )


def _is_tested(row: Row) -> bool:
    return bool(row["control"]) and row["control"].get("change_difference") is not None


def _cells(row: Row) -> tuple[str, ...]:
    first = (f"`{row['rewrite']}`", str(row["n"]), _percent(row["flips"]))
    change = format_signed(100 * row["change"]["value"], 1)
    if not _is_tested(row):
        return (*first, "–", "–", change, "–", "–", "–")
    control = row["control"]
    own = f"{100 * control['flips']['value']:.1f}"
    flips = signed_interval(control["flip_difference"], 100)
    less = control["change_difference"]
    p = f"{less['p']:.5f}" if less["p"] < 0.001 else f"{less['p']:.4f}"
    tested = (signed_interval(less, 100), p, f"{less['adjusted_p']:.3f}")
    return (*first, own, flips, change, *tested)


def _variety_cells(row: Row) -> tuple[str, ...]:
    counts = (str(row["n_rewrites"]), f"{row['n']:,}")
    less = signed_interval(row["difference"], 100)
    return (row["task"], row["variety"], *counts, _percent(row["flips"]), less)


def _percent(estimate: Row) -> str:
    low, high = (100 * end for end in estimate["interval"])
    return f"{100 * estimate['value']:.1f} ({low:.1f} to {high:.1f})"


if __name__ == "__main__":
    main()
