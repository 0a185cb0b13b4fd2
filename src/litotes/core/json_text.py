"""JSON as its standard has it, written and read in one place.

JSON has no NaN and no Infinity, although Python writes and reads them: other programs refuse such a
file. Here they are written as null, and a file that has them is refused. A file that was ours may
come back damaged: what is checked when it is read (`read_as`) needs no second look where it is
used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from litotes.core.errors import UserError
from litotes.core.text import is_steering


def to_json(content: Any, *, indent: int | None = None) -> str:
    r"""The content as JSON on one line, or on lines that are indented.

    A number that is not finite becomes null. Characters that steer a terminal are written as
    \uXXXX, which every reader turns back into the character.
    """
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError:
        text = json.dumps(_finite(content), ensure_ascii=False, allow_nan=False, indent=indent)
    if text.isprintable():  # almost always, and quick
        return text
    escapes = {ord(char): _escape(char) for char in set(text) if char != "\n" and is_steering(char)}
    return text.translate(escapes) if escapes else text


def from_json(text: str) -> Any:
    """Parses a JSON text; one that is not JSON, or nested too deeply, is a ValueError."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite_float)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _finite(content: Any) -> Any:
    if isinstance(content, float):
        return content if isfinite(content) else None
    if isinstance(content, Mapping):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return content


def _escape(char: str) -> str:
    return json.dumps(char)[1:-1] if ord(char) > 0x7F else f"\\u{ord(char):04x}"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite_float(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError(f"{digits[:20]} is too large a number")
    return number


MOST_JSON_BYTES = 1 << 26
"""The largest file that is read whole: a description may hold a recipe and scores."""


def read_small_file(file: Path) -> bytes:
    """The content of a file that is kept whole; one that is too large is a ValueError."""
    n_bytes = file.stat().st_size
    if n_bytes > MOST_JSON_BYTES:
        raise ValueError(f"{n_bytes} bytes")
    return file.read_bytes()


def parse_json(content: bytes) -> Any:
    """Parses JSON in UTF-8; anything else is a ValueError."""
    return from_json(content.decode("utf-8"))


def load_json(file: Path) -> Any:
    """The content of a JSON file that may hold anything; what is not JSON is a ValueError."""
    return parse_json(read_small_file(file))


def read_json_table(file: Path, *, advice: str) -> dict[str, Any]:
    """The same of a file that must hold a table of names and values, where the user can help: what
    cannot be read is an error with advice what to do.
    """
    try:
        content = load_json(file)
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: not readable ({error}). {advice}") from error
    if not isinstance(content, dict):
        raise UserError(f"{file}: not readable (not a table). {advice}")
    return content


Parsed = TypeVar("Parsed")


def parse_as(kind: type[Parsed], content: Any) -> Parsed:
    """Makes what was read from JSON a value of this type; what does not fit is a ValueError."""
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
