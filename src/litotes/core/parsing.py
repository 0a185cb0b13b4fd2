"""Values read from a file, checked against the type they must have.

A file that was ours may come back damaged: a number may be a word, a key may be missing. What is
checked when it is read needs no second look where it is used.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from litotes.core.errors import UserError
from litotes.core.json_text import to_json
from litotes.core.storage import load_json

Parsed = TypeVar("Parsed")


def parse_as(kind: type[Parsed], content: Any) -> Parsed:
    """What was read from JSON as a value of this type; what does not fit is a ValueError."""
    # importing it takes a moment, which `litotes --help` need not wait for
    from pydantic import TypeAdapter, ValidationError

    if is_dataclass(kind) and isinstance(content, dict):
        unknown = content.keys() - {field.name for field in fields(kind)}
        if unknown:
            raise ValueError(f"{min(unknown)!r} is not known")
    try:
        # as JSON, in which a list may become a tuple and a word never becomes a number
        return TypeAdapter(kind).validate_json(to_json(content), strict=True)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, problem["loc"]))
        raise ValueError(f"{place}: {problem['msg']}" if place else problem["msg"]) from error


def read_as(file: Path, kind: type[Parsed], *, advice: str) -> Parsed:
    """The content of a JSON file. advice: what to do about a file that is damaged."""
    try:
        return parse_as(kind, load_json(file))
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: damaged ({error}). {advice}") from error
