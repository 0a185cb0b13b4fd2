"""Sources that are read from a path, of texts that are no corpus of labels: words with their
answers, texts side by side.

NAME:PATH[?key=value&key=value]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from litotes.core.errors import UserError
from litotes.core.registry import pick
from litotes.data.sources import check_source_options
from litotes.data.sources.query import parse_query

Texts = TypeVar("Texts")


@dataclass(frozen=True)
class FileSource(Generic[Texts]):
    """A way to read texts from a path, with options that have a line each."""

    read: Callable[[Path, Mapping[str, str]], Texts]
    about: str
    example: str
    options: Mapping[str, str] = field(default_factory=dict)


def find_source(
    spec: str, sources: Mapping[str, FileSource[Texts]], what: str
) -> tuple[FileSource[Texts], str, dict[str, str]]:
    """The source that a user names, the path as it was written, and the options, checked.

    what: the sources are called, for the error.
    """
    address, _, query = spec.partition("?")
    name, _, path = address.partition(":")
    source = pick(sources, name, what)
    options = parse_query(query)
    check_source_options(options, name, source.options)
    if not path:
        raise UserError(f"{name} needs a path: write for example {source.example}.")
    return source, path, options
