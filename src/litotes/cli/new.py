"""`litotes new TABLE [--out RECIPE]`: a recipe for a table, and the commands that come next."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from litotes.data.inspection import TableFacts
    from litotes.training.starter import Starter

ABOUT = """\
Looks at a table, finds its texts and its labels, writes a recipe for it that takes minutes, and
prints the commands that come next. Nothing is asked, nothing is replaced.
"""
EXAMPLE = "litotes new reviews.csv"
USES = ("json", "out")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "table", type=Path, metavar="TABLE", help="a CSV, TSV, JSON or Parquet file"
    )
    parser.add_argument("--text", metavar="COLUMN", help="the column of the texts (default: found)")
    parser.add_argument(
        "--label", metavar="COLUMN", help="the column of the labels (default: found)"
    )


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json
    from litotes.core.errors import UserError
    from litotes.core.storage import write_text
    from litotes.data.inspection import inspect_table
    from litotes.training.starter import make_starter

    out = Path(options.out or f"{_stem(options.table)}.toml")
    if out.exists():
        raise UserError(f"{out} is already there: name another recipe with --out, or delete it.")
    facts = inspect_table(options.table, text=options.text, label=options.label)
    starter = make_starter(facts, out)
    write_text(out, starter.recipe)
    if options.json:
        print_json(_as_json(facts, starter, out))
        return
    _print(facts, starter, out)


def _stem(table: Path) -> str:
    """The table's name without its endings."""
    return table.name.partition(".")[0] or table.name


def _columns(facts: TableFacts) -> dict[str, str]:
    """What was found: each use of a column, and the column."""
    found = {"texts": facts.text, "labels": facts.label}
    found |= {"splits": facts.split} if facts.split else {}
    found |= {"compare by": facts.compare} if facts.compare else {}
    return {use: column.describe() for use, column in found.items()}


def _as_json(facts: TableFacts, starter: Starter, out: Path) -> dict[str, Any]:
    return {
        "recipe": str(out),
        "source": starter.source,
        "rows": facts.n_rows,
        "text": facts.text.name,
        "label": facts.label.name,
        "labels": sorted(facts.label.values) if facts.label.are_few else None,
        "split": facts.split.name if facts.split else None,
        "compare": facts.compare.name if facts.compare else None,
        "ids": list(facts.ids),
        "minutes": round(starter.minutes, 1),
        "commands": list(starter.commands),
    }


def _print(facts: TableFacts, starter: Starter, out: Path) -> None:
    from litotes.cli.display import print_lines
    from litotes.training.starter import describe_minutes

    print_lines(f"{facts.path}, {facts.n_rows} rows")
    print_lines(*(f"  {use}: {column}" for use, column in _columns(facts).items()))
    if facts.ids:
        print_lines(f"  ids: {', '.join(facts.ids)}")
    print_lines(
        "",
        f"The recipe is {out}; training takes about {describe_minutes(starter.minutes)} on two slow"
        " cores. Next:",
        *(f"  {command}" for command in starter.commands),
    )
