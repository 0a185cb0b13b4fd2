"""`litotes predict [TEXT…] [--file F] [--model M]`"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from io import StringIO
from itertools import chain, compress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from litotes.cli.bulk import (
    add_bulk_options,
    check_bulk_options,
    reject_bulk_options,
    run_bulk,
)
from litotes.cli.kinds import command_of
from litotes.cli.lean_torch import lean_torch
from litotes.cli.options import add_model, add_runtime, add_verbose
from litotes.cli.predictors import load_predictor
from litotes.cli.streams import write_csv, write_out
from litotes.cli.table_options import add_table_options, check_table_options, table_request

if TYPE_CHECKING:
    from litotes.core.values import Answer, BadText, Prediction
    from litotes.prediction.predictor import Predictor
    from litotes.prediction.tables import AnsweredRows, InputRow, Layout, TableRequest, Tally

Write = Callable[[str], object]

_N_SHOWN = 60
"""Characters of a line that is too long to be a text."""

ABOUT = """\
Labels texts and gives each label's probability: texts typed here, lines on stdin, or a table,
which comes back with all of its columns. A killed run on a table resumes.
"""
EXAMPLE = "litotes predict --file reviews.csv --column review --out answered.csv"
USES = ("json", "out", "device")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "texts", nargs="*", metavar="TEXT", help="without any, lines are read from --file or stdin"
    )
    add_model(parser)
    parser.add_argument(
        "--variety",
        metavar="V",
        help="of all texts, for a model that was calibrated by variety: when it is unsure",
    )
    add_table_options(parser)
    add_runtime(parser)
    add_verbose(parser)
    add_bulk_options(parser)


def run(options: argparse.Namespace) -> None:
    if options.on is None and options.out is not None:
        _check_target(options)
    check_table_options(options)
    from litotes.model.folder import kind_of

    predict_other_kind = command_of(kind_of(options.model), "predict")
    if predict_other_kind is not None:
        predict_other_kind(options)
        return
    if options.on is not None:
        check_bulk_options(options)
        run_bulk(options, table_request(options))
        return
    reject_bulk_options(options)
    request = None if options.file is None else table_request(options)
    is_for_people = options.format in (None, "table") or options.json
    with lean_torch():
        predictor = load_predictor(options, options.model).for_variety(options.variety)
    if request is not None and options.out is not None and not is_for_people:
        _predict_file(predictor, request, options)
    else:
        _predict_rows(predictor, request, options)


def _check_target(options: argparse.Namespace) -> None:
    """What must not be replaced is reported before the work."""
    from litotes.core.storage import find_target
    from litotes.prediction.tables import TableRequest

    if options.file is None:
        find_target(Path(options.out))
    else:
        TableRequest(options.file).check_target(Path(options.out))


def _predict_file(predictor: Predictor, request: TableRequest, options: argparse.Namespace) -> None:
    """For files of any length; a stopped run resumes."""
    from litotes.cli.display import progress, say
    from litotes.core.storage import find_target
    from litotes.prediction.table_jobs import predict_to_file

    if find_target(Path(options.out)).is_stream:
        say([f"{options.out} is a pipe or a device: if this is stopped, it cannot resume."])
    with progress() as watch:
        result = predict_to_file(request, predictor, Path(options.out), watch=watch)
    say(result.layout.notes(options.prefix))
    _report(result.tally, options)


def _report(tally: Tally, options: argparse.Namespace) -> None:
    from litotes.cli.display import say
    from litotes.core.numbers import counted

    answered = counted(tally.n_read - tally.n_bad, "text")
    say([f"{answered} answered: {options.out}.", *tally.sentences(options.bad_rows)])


def _predict_rows(
    predictor: Predictor, request: TableRequest | None, options: argparse.Namespace
) -> None:
    """For what is printed as it comes, or fits in memory."""
    from litotes.cli.display import say
    from litotes.core.storage import write_text
    from litotes.prediction.tables import Tally, answer_rows

    layout, rows = _read_rows(predictor, request, options)
    tally = Tally()

    def answered_rows() -> Iterator[AnsweredRows]:
        nonlocal tally
        # a person who types an empty text wants to know
        bad_texts = "stop" if options.texts else "empty"
        for answered in answer_rows(predictor, rows, bad_texts=bad_texts):
            tally = tally.add(answered, layout)
            yield answered

    if options.out is None:
        is_csv = options.format == "csv" and not options.json
        _print(answered_rows(), layout, write_csv if is_csv else write_out, options)
    else:
        written = StringIO()
        _print(answered_rows(), layout, written.write, options)
        write_text(Path(options.out), written.getvalue())  # whole or not at all
    say(tally.sentences(options.bad_rows) if tally.n_bad else [])


def _read_rows(
    predictor: Predictor, request: TableRequest | None, options: argparse.Namespace
) -> tuple[Layout, Iterator[InputRow]]:
    from litotes.prediction.tables import Layout

    if request is None:
        names: tuple[str, ...] = ("text",) if options.pair is None else ("text", "pair")
        layout = Layout(
            names,
            predictor.tasks,
            names,
            all_probabilities=options.probabilities,
            keep_formulas=options.keep_formulas,
            bad_rows=options.bad_rows,
        )
        return layout, typed_rows(options)
    if request.source.is_file() or not request.source.exists():
        layout = request.layout_of([request.source], predictor.tasks)
        found = request.rows(keeps=layout.kept)
        return layout, request.input_rows(found, layout.kept)
    found = request.rows()  # of a pipe, which cannot be read twice: the first row names the columns
    first = next(found)
    if not first.found:  # later rows of JSON may have other columns
        request.check_columns(request.source, tuple(first.values))
    names = request.keep(tuple({**first.values, **first.found}))
    layout = request.lay_out(names, predictor.tasks)
    kept = None if request.columns is None and request.keep_text else layout.kept
    return layout, request.input_rows(chain([first], found), kept)


def typed_rows(options: argparse.Namespace) -> Iterator[InputRow]:
    """The texts that were typed, or the lines of stdin."""
    from litotes.core.errors import UserError
    from litotes.prediction.predictor import written_text
    from litotes.prediction.tables import InputRow

    if not options.texts and sys.stdin.isatty():
        raise UserError("There is nothing to label: give a text, --file, or lines on stdin.")
    texts = iter(options.texts) if options.texts else _read_lines(sys.stdin, options.bad_rows)
    for text in texts:
        if options.pair is None or not isinstance(text, str):
            yield InputRow({"text": written_text(text)}, text)
        else:
            yield InputRow({"text": text, "pair": options.pair}, (text, options.pair))


def _read_lines(stream: TextIO, bad_rows: str) -> Iterator[str | BadText]:
    """One text a line; an empty one counts, or every later answer would go to the wrong text."""
    from litotes.core.errors import UserError
    from litotes.core.values import BadText
    from litotes.data.tables.files import MAX_CHARS, too_long
    from litotes.data.tables.rows import character_problem, replace_characters

    number = 0
    for number, line in enumerate(_bounded_lines(stream, MAX_CHARS), start=1):
        text = (line.removeprefix("\ufeff") if number == 1 else line).rstrip("\r\n")
        place = f"stdin, line {number}"
        problem = character_problem([text], place)
        if not text.strip():
            problem = f"{place} is empty: give it a text, or take it out."
        if len(text) > MAX_CHARS:
            text, problem = f"{text[:_N_SHOWN]}…", too_long(place)
        if problem is not None and bad_rows == "stop":
            raise UserError(problem)
        yield text if problem is None else BadText(replace_characters(text), problem)
    if number == 0:
        raise UserError("There is nothing to label: stdin is empty.")


def _bounded_lines(stream: TextIO, most: int) -> Iterator[str]:
    """Lines as they are; of one with more characters than most, no more than its beginning, which
    is longer than that. What has no line ends must not fill the memory.
    """
    while line := stream.readline(most + 2):  # with the end that it may have
        yield line
        while line and not line.endswith("\n"):
            line = stream.readline(most + 2)


def _print(
    rows: Iterable[AnsweredRows], layout: Layout, write: Write, options: argparse.Namespace
) -> None:
    from litotes.core.json_text import to_json
    from litotes.prediction.tables import as_documents, header_line, row_lines

    if options.json:
        documents = [document for chunk in rows for document in as_documents(layout, chunk)]
        write(to_json(documents, indent=2) + "\n")
    elif options.format in (None, "table"):
        for chunk in rows:
            _print_blocks(chunk, layout, write, all_probabilities=options.probabilities)
    else:
        lines = header_line(layout, options.format)
        for chunk in rows:
            write(lines + row_lines(layout, options.format, chunk))
            lines = ""
        if lines:  # no row was kept
            write(lines)


def _print_blocks(
    rows: AnsweredRows, layout: Layout, write: Write, *, all_probabilities: bool
) -> None:
    """A block for each text: easy to read for a few, easy to follow for many."""
    from litotes.cli.display import visible

    for prediction in compress(rows.answers.predictions(), rows.written(layout)):
        for line in _block(prediction, all_probabilities):
            write(f"{visible(line)}\n")


def _block(prediction: Prediction, all_probabilities: bool) -> Iterator[str]:
    from litotes.core.values import UNREADABLE_NOTE

    yield prediction.text
    if prediction.pair is not None:
        yield prediction.pair
    for task, answer in prediction.answers.items():
        yield f"  {task:<10} {_answer(answer)}"
        if answer.unsure is not None:
            yield f"  {'':<10} unsure: {answer.unsure}"
        if all_probabilities or len(answer.probabilities) > 2 or isinstance(answer.label, tuple):
            for label, share in answer.probabilities.items():
                yield f"  {'':<10} {label:<10} {share:6.1%}"
    if prediction.truncated:
        yield "  (the text is longer than the model reads; its end was not seen)"
    if prediction.unreadable:
        yield f"  ({UNREADABLE_NOTE})"
    if prediction.answered_at_layer is not None:
        place = f"after layer {prediction.answered_at_layer}"
        yield f"  (answered {'by the table' if prediction.answered_at_layer == 0 else place})"
    if prediction.problem is not None:
        yield f"  (no answer: {prediction.problem})"


def _answer(answer: Answer) -> str:
    from litotes.core.values import label_text

    if not isinstance(answer.label, str):
        return label_text(answer.label, digits=3)
    return f"{answer.label:<10} {answer.probability or 0:6.1%}"
