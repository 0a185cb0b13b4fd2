"""A source, and how its options are read: NAME[/SUB][:PATH][?key=value&key=value]."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, nan
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import unquote

from litotes.core.errors import UserError
from litotes.core.registry import pick, unknown_name

Texts = TypeVar("Texts")


@dataclass(frozen=True)
class Source(Generic[Texts]):
    """A way to read texts from a path, with options that have a line each.

    A source that needs no path comes with the package; it is read with an empty one.
    """

    read: Callable[[Path, Mapping[str, str]], Texts]
    about: str
    example: str
    options: Mapping[str, str] = field(default_factory=dict)
    needs_path: bool = True


FACTS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("sources.toml").read_text("utf-8")
)
"""By kind of source, and name."""


def sources_of(
    kind: str, readers: Mapping[str, Callable[[Path, Mapping[str, str]], Texts]]
) -> dict[str, Source[Texts]]:
    """Makes the table of the sources of one kind, each with its reader."""
    return {
        name: Source(
            readers[name],
            facts["about"],
            facts["example"],
            FACTS["shared"].get(facts.get("shared"), {}) | facts.get("options", {}),
            facts.get("needs_path", True),
        )
        for name, facts in FACTS[kind].items()
    }


def read_source(spec: str, sources: Mapping[str, Source[Texts]], what: str) -> Texts:
    """Reads what a user names. what: the sources are called, for the error."""
    address, _, query = spec.partition("?")
    name, _, path = address.partition(":")
    source = pick(sources, name, what)
    options = parse_query(query)
    _check_options(options, name, source.options)
    if source.needs_path and not path:
        raise UserError(f"{name} needs a path: write for example {source.example}.")
    if path and not source.needs_path:
        raise UserError(f"{name} is built in and reads no path: write {source.example}.")
    try:
        return source.read(expand_path(path), options)
    except OSError as error:  # a folder without permission, a name longer than the system allows
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from error


def expand_path(path: str) -> Path:
    """Replaces a leading ~ or ~USER by that user's folder."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:  # no such user
        raise UserError(
            f"{path} cannot be found: there is no home folder for {Path(path).parts[0]}. Write the"
            " path in full."
        ) from error


def parse_query(query: str) -> dict[str, str]:
    """Reads the options by name; %XX in a value is read as in an address."""
    options: dict[str, str] = {}
    for part in query.split("&") if query else ():
        key, _, value = part.partition("=")
        if not key or not value:
            raise UserError(
                f"The option {part!r} is not of the form key=value (write %26 for an & that belongs"
                " to a value)."
            )
        if key in options:
            raise UserError(f"The option {key!r} is given twice: give it once.")
        options[key] = unquote(value)
    return options


def _check_options(options: Mapping[str, str], name: str, known: Mapping[str, str]) -> None:
    for key in options:
        names_task = "label.TASK" in known and key.startswith("label.") and key != "label."
        if key in known or names_task:
            continue
        if known:
            raise UserError(unknown_name(key, known, f"option of {name}"))
        raise UserError(f"{name} has no options, so leave {key!r} out.")


def choice(options: Mapping[str, str], name: str, known: Sequence[str]) -> str:
    """Reads an option whose value is one of `known`, of which the first is the default."""
    value = options.get(name, known[0])
    if value not in known:
        raise UserError(f"{name}={value}: {unknown_name(value, known, 'choice')}")
    return value


def whole_number(options: Mapping[str, str], name: str, default: int) -> int:
    """Reads an option whose value is a number of things."""
    value = options.get(name, str(default))
    if not (value.isascii() and value.isdigit()):
        raise UserError(
            f"{name}={value} is not a whole number: write for example {name}={default}."
        )
    return int(value)


def number(options: Mapping[str, str], name: str, default: float) -> float:
    """Reads an option whose value is a number that is not negative."""
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
