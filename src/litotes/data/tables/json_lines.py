"""JSON lines: one object a line."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.data.tables.files import Start, read_lines
from litotes.data.tables.row import Row, as_text, require_columns

JSON_LINES = (".jsonl", ".ndjson", ".json")


def read_json_lines(path: Path, needs: Collection[str], start: Start) -> Iterator[Row]:
    """The rows of a file; blank lines are skipped."""
    for number, line in read_lines(path, start=start):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        record = _parse(line, place)
        require_columns(place, record, needs)
        found = {key: record[key] for key in needs}
        values = {key: as_text(found[key], f"{place}, column {key!r}") for key in needs}
        yield Row(str(path), number, values, found=found)


def _parse(line: str, place: str) -> dict[str, Any]:
    try:
        record = json.loads(line.rstrip())
    except (ValueError, RecursionError) as error:
        reason = str(error)
        if isinstance(error, json.JSONDecodeError):
            reason = f"{error.msg}, character {error.colno}"
        raise UserError(
            f"{place} is not JSON ({reason}). Each line must be one JSON object."
        ) from error
    if not isinstance(record, dict):
        raise UserError(
            f'{place} is not a JSON object: write each row as {{"text": …, …}} on a line of its'
            " own."
        )
    return record
