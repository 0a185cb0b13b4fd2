"""JSON: one object a line, or in a .json file one array of objects."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.data.tables.files import MAX_CHARS, Start, read_lines
from litotes.data.tables.row import (
    Row,
    as_text,
    character_problem,
    check_characters,
    replace_characters,
    require_columns,
)

JSON_FILES = (".jsonl", ".ndjson", ".json")
_MAX_ARRAY_CHARS = 64 * MAX_CHARS
"""Of an array, which is read as a whole."""


def read_json(path: Path, needs: Collection[str], start: Start, lenient: bool) -> Iterator[Row]:
    """The rows of a file.

    lenient: a row that cannot be used is yielded with its problem; otherwise the problem is raised.
    """
    is_first = True
    for number, unit, content in _contents(path, start, lenient):
        place = f"{path}, {unit} {number}"
        record = content if isinstance(content, dict) else {}
        try:
            values = _texts(content, needs, place)
            if lenient:  # all of it may be written again
                check_characters(json.dumps(content, ensure_ascii=False), place)
        except UserError as error:
            # of a first row without a column, it is more likely that the column has another name
            if not lenient or (is_first and record and not set(needs) <= set(record)):
                raise
            yield Row(str(path), number, {}, unit, _storable(record), str(error))
        else:
            yield Row(str(path), number, values, unit, record)
        is_first = False


def _contents(path: Path, start: Start, lenient: bool) -> Iterator[tuple[int, str, Any]]:
    """Number, unit and content of each row; of a line that is no JSON, the error."""
    if is_array(path):
        for number, record in islice(enumerate(read_array(path), start=1), start.row, None):
            yield number, "item", record
        return
    for number, line in read_lines(path, start=start, lenient=lenient):
        if line.strip():  # blank lines are skipped
            yield number, "line", _parse(line, f"{path}, line {number}")


def _texts(content: Any, needs: Collection[str], place: str) -> dict[str, str]:
    """What the columns that are needed hold, as text."""
    if isinstance(content, UserError):
        raise content
    if not isinstance(content, dict):
        raise UserError(f'{place} is not a JSON object: write each row as {{"text": …, …}}.')
    require_columns(place, content, needs)
    return {key: as_text(content[key], f"{place}, column {key!r}") for key in needs}


def _storable(record: dict[str, Any]) -> dict[str, Any]:
    storable: dict[str, Any] = json.loads(
        replace_characters(json.dumps(record, ensure_ascii=False))
    )
    return storable


def is_array(path: Path) -> bool:
    """Whether the file is one array of objects, and not one object a line."""
    is_json = path.name.lower().removesuffix(".gz").endswith(".json")
    if not is_json or not path.is_file():  # a pipe cannot be read twice
        return False
    for _, line in read_lines(path):
        if line.strip():
            return line.lstrip().startswith("[")
    return False


def read_array(path: Path) -> list[Any]:
    content, n_chars = [], 0
    for _, line in read_lines(path):
        n_chars += len(line)
        if n_chars > _MAX_ARRAY_CHARS:
            raise UserError(
                f"{path} is an array of more than {_MAX_ARRAY_CHARS // MAX_CHARS} million"
                " characters: save it as JSON lines, one object a line, which are read one by one."
            )
        content.append(line)
    try:
        records = json.loads("".join(content))
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{path} begins like an array but is not JSON ({error}). Save it again, or write one"
            " object a line."
        ) from error
    assert isinstance(records, list)  # it begins with a bracket
    return records


def _parse(line: str, place: str) -> Any:
    problem = character_problem([line], place)
    if problem is not None:
        return UserError(problem)
    try:
        return json.loads(line.rstrip())
    except (ValueError, RecursionError) as error:
        reason = str(error)
        if isinstance(error, json.JSONDecodeError):
            reason = f"{error.msg}, character {error.colno}"
        return UserError(f"{place} is not JSON ({reason}). Each line must be one JSON object.")
