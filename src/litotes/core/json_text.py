"""JSON as its standard has it, written and read in one place.

JSON has no NaN and no Infinity, although Python writes and reads them: other programs refuse such a
file. Here they are written as null, and a file that has them is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any, NoReturn

from litotes.core.harmless import is_steering


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
    """What a JSON text says; one that is not JSON, or nested too deeply, is a ValueError."""
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
