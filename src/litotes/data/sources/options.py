"""Reading the options of a source: `?key=value&key=value`, checked before any file is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.registry import unknown_name


def choice(options: Mapping[str, str], name: str, known: Sequence[str]) -> str:
    """The option's value, one of `known`, of which the first is the default."""
    value = options.get(name, known[0])
    if value not in known:
        raise UserError(f"{name}={value}: {unknown_name(value, known, 'choice')}")
    return value


def whole_number(options: Mapping[str, str], name: str, default: int) -> int:
    """The option's value as a number of things."""
    value = options.get(name, str(default))
    if not (value.isascii() and value.isdigit()):
        raise UserError(
            f"{name}={value} is not a whole number: write for example {name}={default}."
        )
    return int(value)


def number(options: Mapping[str, str], name: str, default: float) -> float:
    """The option's value as a number that is not negative."""
    value = options.get(name, str(default))
    try:
        found = float(value)
    except ValueError:
        found = nan
    if not 0 <= found < inf:
        raise UserError(
            f"{name}={value} is not a number from 0 on: write for example {name}={default:g}."
        )
    return found


def require_path(path: Path | None) -> Path:
    """The path, of a source whose entry in the table says that it needs one."""
    if path is None:
        # `load` asks the user for it before it comes to this
        raise TypeError("this source reads a path")
    return path
