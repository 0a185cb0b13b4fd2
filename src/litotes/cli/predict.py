"""`litotes predict [TEXT…] [--file F] [--model M]`"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from litotes.cli.bulk import (
    add_bulk_options,
    reject_bulk_options,
    run_bulk,
    unreadable_sentence,
)
from litotes.cli.lean_torch import lean_torch
from litotes.cli.options import add_model, add_runtime, add_verbose
from litotes.cli.predictors import load_predictor
from litotes.cli.streams import write_csv, write_out

if TYPE_CHECKING:
    from litotes.core.values import Prediction, Task
    from litotes.prediction.predictor import Predictor
    from litotes.prediction.tables.formats import LineFormat, PredictionTable
    from litotes.prediction.tables.input import InputTable

Write = Callable[[str], object]

_ENDINGS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".txt": "table"}
"""The format that the ending of --out stands for."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "texts", nargs="*", metavar="TEXT", help="without any, lines are read from --file or stdin"
    )
    parser.add_argument(
        "--file",
        type=Path,
        metavar="F",
        help="CSV, TSV, JSONL or Parquet; --column names the text's column",
    )
    parser.add_argument(
        "--column", default="text", metavar="NAME", help="the column of the text (default: text)"
    )
    parser.add_argument(
        "--pair", metavar="NAME", help="the column of a second text, for models of pairs"
    )
    add_model(parser)
    formats = "how to print or write (default: table; with --on: parquet)"
    parser.add_argument("--format", choices=("table", "jsonl", "csv", "parquet"), help=formats)
    formulas = "write CSV cells that begin with = + - @ as they are, without an apostrophe before"
    parser.add_argument("--keep-formulas", action="store_true", help=formulas)
    add_runtime(parser)
    add_verbose(parser)
    add_bulk_options(parser)


def run(options: argparse.Namespace) -> None:
    from litotes.core.errors import UserError

    if options.pair is not None and options.file is None:
        raise UserError("--pair names a column: give the --file that has it.")
    if options.texts and options.file is not None:
        raise UserError("Give texts or --file, not both.")
    if options.on is None and options.out is not None:
        _check_target(options)
        if not options.json:
            options.format = _format_of(Path(options.out), options.format)
    if options.keep_formulas and options.format != "csv":
        raise UserError("--keep-formulas is about CSV files: add --format csv.")
    if options.on is not None:
        run_bulk(options)
        return
    reject_bulk_options(options)
    options.format = options.format or "table"
    with lean_torch():
        predictor = load_predictor(options, options.model)
    is_file_to_file = options.file is not None and options.out is not None
    if is_file_to_file and options.format != "table" and not options.json:
        _predict_file(predictor, options)
        return
    predictions = predictor.stream(_read_texts(options))
    if options.out is None:
        is_csv = options.format == "csv" and not options.json
        _print(predictions, predictor.tasks, write_csv if is_csv else write_out, options)
    else:
        _write(predictions, predictor.tasks, options)


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


def _check_target(options: argparse.Namespace) -> None:
    """What must not be replaced is reported before the work."""
    from litotes.core.targets import find_target

    if options.file is None:
        find_target(Path(options.out))
    else:
        _table(options).check_target(Path(options.out))


def _write(
    predictions: Iterable[Prediction], tasks: Mapping[str, Task], options: argparse.Namespace
) -> None:
    from litotes.core.storage import write_text

    written = StringIO()
    _print(predictions, tasks, written.write, options)
    write_text(Path(options.out), written.getvalue())  # whole or not at all


def _predict_file(predictor: Predictor, options: argparse.Namespace) -> None:
    """For files of any length; a stopped run resumes."""
    from litotes.cli.display import progress, say
    from litotes.core.targets import find_target
    from litotes.prediction.tables.to_file import predict_to_file

    if find_target(Path(options.out)).is_stream:
        say([f"{options.out} is a pipe or a device: if this is stopped, it cannot resume."])
    with progress() as watch:
        result = predict_to_file(
            predictor,
            _table(options),
            Path(options.out),
            format=options.format,
            keep_formulas=options.keep_formulas,
            watch=watch,
        )
    unreadable = unreadable_sentence(result.n_unreadable)
    say([f"{result.n_rows} texts answered: {options.out}.{unreadable}"])


def _table(options: argparse.Namespace) -> InputTable:
    from litotes.prediction.tables.input import InputTable

    return InputTable(options.file, options.column, options.pair)


def _read_texts(options: argparse.Namespace) -> Iterator[str | tuple[str, str]]:
    from litotes.core.errors import UserError

    if options.texts:
        yield from options.texts
    elif options.file is not None:
        yield from _table(options).texts()
    elif sys.stdin.isatty():
        raise UserError("There is nothing to label: give a text, --file, or lines on stdin.")
    else:
        yield from _read_lines(sys.stdin)


def _read_lines(stream: TextIO) -> Iterator[str]:
    """One text a line; skipping an empty one would shift every later answer to the wrong text."""
    from litotes.core.errors import UserError

    number = 0
    for number, line in enumerate(stream, start=1):
        if number == 1:
            line = line.removeprefix("\ufeff")
        if not line.strip():
            raise UserError(f"stdin, line {number} is empty: give it a text, or take it out.")
        yield line.rstrip("\r\n")
    if number == 0:
        raise UserError("There is nothing to label: stdin is empty.")


def _print(
    predictions: Iterable[Prediction],
    tasks: Mapping[str, Task],
    write: Write,
    options: argparse.Namespace,
) -> None:
    from litotes.core.json_text import to_json
    from litotes.prediction.columns import as_json, columns_of
    from litotes.prediction.tables.formats import LINE_FORMATS, PredictionTable

    columns = columns_of(tasks)
    if options.json:
        documents = [as_json(prediction, columns) for prediction in predictions]
        write(to_json(documents, indent=2) + "\n")
    elif options.format == "table":
        _print_table(predictions, write)
    else:
        row = PredictionTable(columns, [], keep_formulas=options.keep_formulas)
        _print_lines(predictions, row, write, LINE_FORMATS[options.format])


def _print_lines(
    predictions: Iterable[Prediction], row: PredictionTable, write: Write, line_format: LineFormat
) -> None:
    """row: without a prediction yet."""
    for number, prediction in enumerate(predictions):
        row = replace(row, predictions=[prediction])
        if number == 0:
            write(line_format.header(row))
        write(line_format.rows(row))


def _print_table(predictions: Iterable[Prediction], write: Write) -> None:
    """A block for each text: easy to read for a few, easy to follow for many."""
    from litotes.cli.display import visible

    for prediction in predictions:
        for line in _block(prediction):
            write(f"{visible(line)}\n")


def _block(prediction: Prediction) -> Iterator[str]:
    from litotes.core.values import UNREADABLE_NOTE

    yield prediction.text
    for task, answer in prediction.answers.items():
        if isinstance(answer.label, float):
            yield f"  {task:<10} {answer.label:.3f}"
        else:
            yield f"  {task:<10} {answer.label:<10} {answer.probability or 0:6.1%}"
    if prediction.truncated:
        yield "  (the text is longer than the model reads; its end was not seen)"
    if prediction.unreadable:
        yield f"  ({UNREADABLE_NOTE})"
