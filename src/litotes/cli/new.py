"""`litotes new TABLE [--out RECIPE]`: a recipe for a table, and the commands that come next."""

from __future__ import annotations

import argparse
from pathlib import Path

from litotes.cli.display import print_json, print_lines
from litotes.core.errors import UserError
from litotes.core.storage import write_text
from litotes.data.inspection import TableFacts, inspect_table
from litotes.training.starter import Starter, describe_minutes, make_starter


def new(options: argparse.Namespace) -> None:
    stem = options.table.name.partition(".")[0] or options.table.name
    out = Path(options.out or f"{stem}.toml")
    if out.exists():
        raise UserError(f"{out} is already there: name another recipe with --out, or delete it.")
    facts = inspect_table(options.table, text=options.text, label=options.label)
    starter = make_starter(facts, out)
    write_text(out, starter.recipe)
    if options.json:
        print_json(
            {
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
        )
        return
    _print(facts, starter, out)


def _print(facts: TableFacts, starter: Starter, out: Path) -> None:
    """Prints what was found, each use with its column, and the commands that come next."""
    columns = {"texts": facts.text, "labels": facts.label, "splits": facts.split}
    print_lines(f"{facts.path}, {facts.n_rows} rows")
    for use, column in {**columns, "compare by": facts.compare}.items():
        if column:
            print_lines(f"  {use}: {column.describe()}")
    if facts.ids:
        print_lines(f"  ids: {', '.join(facts.ids)}")
    print_lines(
        "",
        f"The recipe is {out}; training takes about {describe_minutes(starter.minutes)} on two slow"
        " cores. Next:",
        *(f"  {command}" for command in starter.commands),
    )
