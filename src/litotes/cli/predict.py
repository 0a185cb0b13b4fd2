"""`litotes predict [TEXT…] [--file F] [--model M]`: typed texts, lines on stdin, tables; with --on
tables of any size, part by part.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from io import StringIO
from itertools import chain, compress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from litotes.cli.display import print_json, progress, say, visible, write_csv, write_out
from litotes.cli.inputs import for_kind, load_predictors
from litotes.cli.start import lean_torch
from litotes.core.errors import UserError
from litotes.core.json_text import to_json
from litotes.core.numbers import counted
from litotes.core.storage import find_target, write_text
from litotes.core.values import (
    UNREADABLE_NOTE,
    Answer,
    BadText,
    Prediction,
    WordPrediction,
    label_text,
)
from litotes.data.tables.files import MAX_CHARS, too_long
from litotes.data.tables.rows import character_problem, replace_characters
from litotes.prediction.predictor import BatchPredictor, Predictor, written_text
from litotes.prediction.tables import (
    ROWS_PER_PART,
    AnsweredRows,
    InputRow,
    Layout,
    TableRequest,
    Tally,
    answer_rows,
    as_documents,
    header_line,
    row_lines,
)

if TYPE_CHECKING:
    from litotes.prediction.table_jobs import FolderResult

Write = Callable[[str], object]

_N_SHOWN = 60
"""Characters of a line that is too long to be a text."""

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


def predict(options: argparse.Namespace) -> None:
    out = None if options.out is None or options.on is not None else Path(options.out)
    if out is not None:  # what must not be replaced is reported before the work
        if options.file is None:
            find_target(out)
        else:
            TableRequest(options.file).check_target(out)
        options.format = _format_of(out, options.format, is_json=options.json)
    _check_options(options)
    if (predict_other_kind := for_kind(options)) is not None:
        predict_other_kind(options)
    elif options.on is not None:
        _predict_folder(table_request(options), options)
    else:
        request = None if options.file is None else table_request(options)
        is_for_people = options.format in (None, "table") or options.json
        with lean_torch():
            (predictor,) = load_predictors(options, [options.model])
            predictor = predictor.for_variety(options.variety)
        if request is None or out is None or is_for_people:
            _predict_rows(predictor, request, options)
        else:
            _predict_file(predictor, request, out, options)


def _check_options(options: argparse.Namespace) -> None:
    if options.pair is not None and options.file is None and len(options.texts) != 1:
        raise UserError(
            "--pair is the second text of one TEXT, or a column of a table: give one TEXT, or the"
            " --file that has it."
        )
    if options.keep_formulas and options.format != "csv":
        raise UserError("--keep-formulas is about CSV files: add --format csv.")
    if options.format == "parquet" and options.file is None:
        raise UserError("Parquet files are written for tables: give --file, or --format csv.")


def _format_of(out: Path, format: str | None, *, is_json: bool) -> str | None:
    """Takes the format from --format or the ending of --out; both must say the same."""
    ending = out.suffix.lower()
    is_said = is_json or format is not None
    if ending in _PACKED or (ending in _OTHERS and not is_said):
        others = ", or add --json" if ending == ".json" else ""
        raise UserError(
            f"--out {out.name}: {ending} is not written. End it in .csv, .jsonl, .parquet, or .txt"
            f" for the view for people{others}."
        )
    stands_for = None if is_json else _ENDINGS.get(ending)
    if stands_for is not None and format not in (None, stands_for):
        raise UserError(
            f"--out {out.name} is to be {stands_for}, --format {format} is not: leave --format out,"
            " or choose another ending."
        )
    return format or stands_for


def table_request(options: argparse.Namespace) -> TableRequest:
    """Collects what the options ask of the table."""
    columns = options.columns
    if options.key is not None:
        columns = (options.key, options.column, *([options.pair] if options.pair else []))
    default = "csv" if options.on is None else "parquet"
    return TableRequest(
        options.file,
        options.column,
        options.pair,
        columns=columns,
        keep_text=not options.no_text,
        bad_rows=options.bad_rows,
        format=default if options.format in (None, "table") else options.format,
        all_probabilities=options.probabilities,
        prefix=options.prefix,
        keep_formulas=options.keep_formulas,
        n_rows=options.rows_per_part or ROWS_PER_PART,
    )


def _predict_folder(request: TableRequest, options: argparse.Namespace) -> None:
    """For tables of any size: part by part, in processes or on a Ray cluster."""
    from litotes.prediction import table_jobs  # starts processes: a text typed here needs none

    predictor = batch_predictor(options)
    say(predictor.predictor().notes)
    if options.verbose:
        say(predictor.predictor().describe())
    if options.on == "here":
        runner = table_jobs.local_runner(options.workers or 1)
    else:
        n_gpus = 1 if (options.device or "").startswith("cuda") else 0
        runner = table_jobs.ray_runner(options.workers, options.address, n_gpus=n_gpus)
    with progress() as watch:
        out = Path(options.out)
        result = table_jobs.predict_to_folder(request, predictor, out, runner=runner, watch=watch)
    say(f"failed: {name}: {reason}" for name, reason in result.failures.items())
    if options.json:
        print_json(result.as_json())
    else:
        say(result.plan.layout.notes())
        say([_summary(result), *result.tally.sentences(options.bad_rows)])
    if result.failures:
        reason = next(iter(result.failures.values()))
        raise UserError(
            f"{len(result.failures)} of {len(result.plan.spans)} parts failed, the others are in"
            f" {result.out}. {reason}"
        )


def batch_predictor(options: argparse.Namespace) -> BatchPredictor:
    """On the CPU by default, so that all workers compute the same, on any machine."""
    from litotes.core.jobs import threads_per_worker

    n_cores = 1 if options.on == "ray" else None  # all of them
    if options.on == "here" and options.workers not in (None, 1):
        n_cores = threads_per_worker(options.workers)
    names = ("runtime", "variety", "precision")
    settings = {name: getattr(options, name) for name in names}
    device = options.device or "cpu"
    return BatchPredictor(options.model, device=device, n_cores=n_cores, **settings)


def _summary(result: FolderResult) -> str:
    found = f" Parts that were there before: {result.n_found}." if result.n_found else ""
    if result.damaged:
        found += f" Damaged since, and made again: {', '.join(result.damaged)}."
    return (
        f"{result.n_answered} of {result.plan.n_rows} rows answered in {result.seconds:.0f} s:"
        f" {result.out}.{found}"
    )


def _predict_file(
    predictor: Predictor, request: TableRequest, out: Path, options: argparse.Namespace
) -> None:
    """For files of any length; a stopped run resumes."""
    from litotes.prediction.table_jobs import predict_to_file

    if find_target(out).is_stream:
        say([f"{out} is a pipe or a device: if this is stopped, it cannot resume."])
    with progress() as watch:
        result = predict_to_file(request, predictor, out, watch=watch)
    say(result.layout.notes())
    answered = counted(result.tally.n_read - result.tally.n_bad, "text")
    say([f"{answered} answered: {out}.", *result.tally.sentences(options.bad_rows)])


def _predict_rows(
    predictor: Predictor, request: TableRequest | None, options: argparse.Namespace
) -> None:
    """For what is printed as it comes, or fits in memory."""
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
    if request is None:
        typed = TableRequest(
            Path("-"),
            pair=None if options.pair is None else "pair",
            bad_rows=options.bad_rows,
            all_probabilities=options.probabilities,
            keep_formulas=options.keep_formulas,
        )
        return typed.lay_out(typed.texts, predictor.tasks), typed_rows(options)
    if request.source.is_file() or not request.source.exists():
        layout = request.layout_of([request.source], predictor.tasks)
        found = request.rows(keeps=layout.kept)
        return layout, request.input_rows(found, layout.kept)
    found = request.rows()  # of a pipe, which cannot be read twice: the first row names the columns
    first = next(found)
    if not first.found:  # later rows of JSON may have other columns
        request.check_columns(request.source, tuple(first.values))
    layout = request.lay_out(request.keep({**first.values, **first.found}), predictor.tasks)
    kept = None if request.columns is None and request.keep_text else layout.kept
    return layout, request.input_rows(chain([first], found), kept)


def typed_rows(options: argparse.Namespace) -> Iterator[InputRow]:
    """The texts that were typed, or the lines of stdin."""
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
    number = 0
    for number, line in enumerate(_bounded_lines(stream), start=1):
        text = (line.removeprefix("\ufeff") if number == 1 else line).rstrip("\r\n")
        place = f"stdin, line {number}"
        problem = line_problem(text, place)
        if len(text) > MAX_CHARS:
            text, problem = f"{text[:_N_SHOWN]}…", too_long(place)
        if problem is not None and bad_rows == "stop":
            raise UserError(problem)
        yield text if problem is None else BadText(replace_characters(text), problem)
    if number == 0:
        raise UserError("There is nothing to label: stdin is empty.")


def line_problem(text: str, place: str) -> str | None:
    """Says why a line is no text."""
    if not text.strip():
        return f"{place} is empty: give it a text, or take it out."
    return character_problem([text], place)


def _bounded_lines(stream: TextIO) -> Iterator[str]:
    """Lines as they are; of one with more than MAX_CHARS characters, no more than its beginning,
    which is longer than that. What has no line ends must not fill the memory.
    """
    while line := stream.readline(MAX_CHARS + 2):  # with the end that it may have
        yield line
        while line and not line.endswith("\n"):
            line = stream.readline(MAX_CHARS + 2)


def _print(
    rows: Iterable[AnsweredRows], layout: Layout, write: Write, options: argparse.Namespace
) -> None:
    if options.json:
        documents = [document for chunk in rows for document in as_documents(layout, chunk)]
        write(to_json(documents, indent=2) + "\n")
    elif options.format in (None, "table"):
        for chunk in rows:
            for prediction in compress(chunk.answers.predictions(), chunk.written(layout)):
                for line in _block(prediction, options.probabilities):
                    write(f"{visible(line)}\n")
    else:
        lines = header_line(layout, options.format)
        for chunk in rows:
            write(lines + row_lines(layout, options.format, chunk))
            lines = ""
        if lines:  # no row was kept
            write(lines)


def _block(prediction: Prediction, all_probabilities: bool) -> Iterator[str]:
    """A block for each text: easy to read for a few, easy to follow for many."""
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
    yield from note_lines(
        prediction, cut="the text is longer than the model reads; its end was not seen"
    )
    if prediction.answered_at_layer is not None:
        place = f"after layer {prediction.answered_at_layer}"
        yield f"  (answered {'by the table' if prediction.answered_at_layer == 0 else place})"


def note_lines(found: Prediction | WordPrediction, *, cut: str) -> Iterator[str]:
    """Yields what an answer's reader should know. cut: of one to a text not read whole."""
    no_answer = f"no answer: {found.problem}"
    notes = {cut: found.truncated, UNREADABLE_NOTE: found.unreadable, no_answer: found.problem}
    yield from (f"  ({note})" for note, holds in notes.items() if holds)


def _answer(answer: Answer) -> str:
    if not isinstance(answer.label, str):
        return label_text(answer.label, digits=3)
    return f"{answer.label:<10} {answer.probability or 0:6.1%}"
