"""The options of `litotes predict` about tables: what is read of them, kept and written."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from litotes.prediction.tables import TableRequest

_ABOUT_FILES = ("columns", "key", "no_text", "prefix")
_ENDINGS = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".txt": "table",
}
"""The format that the ending of --out stands for."""
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".xlsx", ".xls", ".ods")
"""Endings that no format has: a file called so would not be what its name says."""
_OTHERS = (".json", ".tsv", ".tab", ".arrow", ".feather", ".orc")
"""Endings of tables that none of the formats stands for unless --format says which."""


def add_table_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--file",
        type=Path,
        metavar="F",
        help="CSV, TSV, JSON, JSONL, Parquet, or .txt with a text a line",
    )
    parser.add_argument(
        "--column", default="text", metavar="NAME", help="the column of the text (default: text)"
    )
    parser.add_argument(
        "--pair",
        metavar="NAME",
        help="for models of pairs: the column of a second text; beside a TEXT, that text itself",
    )
    parser.add_argument(
        "--columns",
        type=_names,
        metavar="LIST",
        help="columns of F to write beside the answers: id,region (default: all)",
    )
    parser.add_argument("--key", metavar="COLUMN", help="write this column and the text alone")
    parser.add_argument("--no-text", action="store_true", help="leave the text out")
    parser.add_argument(
        "--bad-rows",
        choices=("empty", "skip", "stop"),
        default="empty",
        help=(
            "what becomes of rows without a text, or that cannot be read: an empty answer (the"
            " default), left out, or an error; they are counted"
        ),
    )
    parser.add_argument(
        "--probabilities", action="store_true", help="a column for every label's probability"
    )
    parser.add_argument(
        "--prefix",
        metavar="P",
        help="before the names of answers (default: none, or predicted_ where F has such columns)",
    )
    formats = "how to print or write (default: as --out ends, or table; with --on: parquet)"
    parser.add_argument("--format", choices=("table", "jsonl", "csv", "parquet"), help=formats)
    formulas = "write CSV cells that begin with = + - @ as they are, without an apostrophe before"
    parser.add_argument("--keep-formulas", action="store_true", help=formulas)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise argparse.ArgumentTypeError("write the names with commas between: id,region")
    return names


def check_table_options(options: argparse.Namespace) -> None:
    """Refuses options that contradict each other, and chooses the format."""
    from litotes.core.errors import UserError

    if options.texts and options.file is not None:
        raise UserError("Give texts or --file, not both.")
    for name in _ABOUT_FILES:
        if getattr(options, name) and options.file is None:
            raise UserError(
                f"--{name.replace('_', '-')} is about the columns of a table: give the --file that"
                " has it."
            )
    if options.pair is not None and options.file is None and len(options.texts) != 1:
        raise UserError(
            "--pair is the second text of one TEXT, or a column of a table: give one TEXT, or the"
            " --file that has it."
        )
    if options.key is not None and options.columns is not None:
        raise UserError("--key keeps one column, --columns several: give one of them.")
    if options.on is None and options.out is not None:
        _check_ending(Path(options.out), is_said=options.json or options.format is not None)
    if options.on is None and options.out is not None and not options.json:
        options.format = _format_of(Path(options.out), options.format)
    if options.keep_formulas and options.format != "csv":
        raise UserError("--keep-formulas is about CSV files: add --format csv.")
    if options.format == "parquet" and options.out is None:
        raise UserError("Parquet is not for a screen: name a file, --out answers.parquet.")
    if options.format == "parquet" and options.file is None:
        raise UserError("Parquet files are written for tables: give --file, or --format csv.")


def _check_ending(out: Path, *, is_said: bool) -> None:
    """Refuses the name of a table that the view for people would be written to.

    is_said: whether an option says the format.
    """
    from litotes.core.errors import UserError

    ending = out.suffix.lower()
    if ending in _PACKED or (ending in _OTHERS and not is_said):
        others = ", or add --json" if ending == ".json" else ""
        raise UserError(
            f"--out {out.name}: {ending} is not written. End it in .csv, .jsonl, .parquet, or .txt"
            f" for the view for people{others}."
        )


def _format_of(out: Path, format: str | None) -> str | None:
    """What the ending of --out says, unless --format says it; both must say the same."""
    from litotes.core.errors import UserError

    ending = _ENDINGS.get(out.suffix.lower())
    if ending is not None and format not in (None, ending):
        raise UserError(
            f"--out {out.name} is to be {ending}, --format {format} is not: leave --format out, or"
            " choose another ending."
        )
    return format or ending


def table_request(options: argparse.Namespace) -> TableRequest:
    """What the options ask of the table."""
    from litotes.prediction.tables import ROWS_PER_PART, TableRequest

    columns = options.columns
    if options.key is not None:
        columns = (options.key, options.column, *([options.pair] if options.pair else []))
    is_for_people = options.format in (None, "table")
    default = "csv" if options.on is None else "parquet"
    return TableRequest(
        options.file,
        options.column,
        options.pair,
        columns=columns,
        keep_text=not options.no_text,
        bad_rows=options.bad_rows,
        format=default if is_for_people else options.format,
        all_probabilities=options.probabilities,
        prefix=options.prefix,
        keep_formulas=options.keep_formulas,
        n_rows=options.rows_per_part or ROWS_PER_PART,
    )
