"""What an unfinished output was made from, and how far it got: the record that lets a run resume.

A record is a JSON file beside the rows: `{"made_from": {…}, …, "sha256": …}`. `made_from` holds
everything the predictions depend on (input, columns, format, model). A run resumes only when all of
it is the same; anything else would join predictions that do not belong together, and is refused.
`sha256` is that of the rest: a record is believed only as it was written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from litotes.core.errors import UserError
from litotes.core.json_text import load_json
from litotes.core.storage import write_json

Progress = TypeVar("Progress")


def write_record(file: Path, made_from: Mapping[str, Any], **progress: Any) -> None:
    """Replaces the record in one step; what it calls safe must be on disk already."""
    content = {"made_from": made_from, **progress}
    write_json(file, {**content, "sha256": _digest(content)})


def read_record(
    file: Path, made_from: Mapping[str, Any], parse: Callable[[Mapping[str, Any]], Progress]
) -> Progress:
    """The progress of the run that wrote the record, which must be made from the same.

    parse: reads the progress from the record's content, after `made_from` was compared.
    """
    output = file.parent
    try:
        content = load_json(file)
        if content.pop("sha256") != _digest(content):
            raise ValueError("not as it was written")
        changes = _changes(dict(content["made_from"]), made_from)
        if not changes:
            return parse(content)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(f"{file} is damaged ({error}). Delete {output} to begin anew.") from error
    raise UserError(
        f"{output} holds answers of an earlier run, which had another"
        f" {' and another '.join(changes)}. Delete it to begin anew, or choose another --out."
    )


def _digest(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    changes = []
    for name, value in now.items():
        if before.get(name) == value:
            continue
        has_files = name == "input" and isinstance(before.get(name), list)
        changes.append(_input_change(before[name], value) if has_files else name)
    return changes


def _input_change(before: list[Any], now: list[Any]) -> str:
    """Names the first file that differs. Files: [name, size, time]."""
    for file in now:
        if file not in before:
            return f"input ({file[0]} has changed, come or gone)"
    gone = [file for file in before if file not in now]
    name = gone[0][0] if gone else now[0][0]  # none is gone: only their order has changed
    return f"input ({name} has changed, come or gone)"
