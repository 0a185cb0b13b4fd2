"""JSON: one object a line, or in a .json file one array of objects."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.data.tables.files import MAX_CHARS, Start, read_lines
from litotes.data.tables.row import Row, as_text, require_columns

JSON_FILES = (".jsonl", ".ndjson", ".json")
_MAX_ARRAY_CHARS = 64 * MAX_CHARS
"""Of an array, which is read as a whole."""


def read_json(path: Path, needs: Collection[str], start: Start) -> Iterator[Row]:
    """The rows of a file."""
    if is_array(path):
        records = enumerate(read_array(path), start=1)
        for number, record in islice(records, start.row, None):
            yield _row(path, number, record, needs, unit="item")
        return
    for number, line in read_lines(path, start=start):
        if line.strip():  # blank lines are skipped
            yield _row(path, number, _parse(line, f"{path}, line {number}"), needs, unit="line")


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


def _row(path: Path, number: int, record: Any, needs: Collection[str], *, unit: str) -> Row:
    place = f"{path}, {unit} {number}"
    if not isinstance(record, dict):
        raise UserError(f'{place} is not a JSON object: write each row as {{"text": …, …}}.')
    require_columns(place, record, needs)
    found = {key: record[key] for key in needs}
    values = {key: as_text(found[key], f"{place}, column {key!r}") for key in needs}
    return Row(str(path), number, values, unit, found)


def _parse(line: str, place: str) -> Any:
    try:
        return json.loads(line.rstrip())
    except (ValueError, RecursionError) as error:
        reason = str(error)
        if isinstance(error, json.JSONDecodeError):
            reason = f"{error.msg}, character {error.colno}"
        raise UserError(
            f"{place} is not JSON ({reason}). Each line must be one JSON object."
        ) from error
